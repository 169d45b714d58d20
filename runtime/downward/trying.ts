/**
 * Doing something at another broker until it is done: who cannot be reached is probed by connecting, so that it is tried
 * within a second of the way's return; who answers with failures is left alone for growing pauses. Monotonic time only.
 */
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from '#delivery/backoff.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import { originOf, probe } from '#delivery/probe.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Pauses } from './pause.ts'

/** What came of a try. */
export type Tried =
  | { readonly kind: 'done' }
  /** It will not be taken as it is; trying again soon is no use. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'later'; readonly reason: string; readonly isUnreachable: boolean }

export const done: Tried = Object.freeze({ kind: 'done' })

/** Client errors that time or a change over there heals. */
const healing = new Set([401, 403, 408, 425, 429])
/** Somebody on the way answers so, too, as a proxy does while its broker starts. */
const anybodys = new Set([404, 405, 410])

/** What an answer without success means. */
export function setback(answer: PeerAnswer, reason: string): Tried {
  if ('failure' in answer) return { kind: 'later', reason, isUnreachable: true }
  const { status, text } = answer
  const isOfNobody = status < 400 || (anybodys.has(status) && problemTypeIn(text) === '')
  return status >= 500 || healing.has(status) || isOfNobody
    ? { kind: 'later', reason, isUnreachable: false }
    : { kind: 'refused', reason }
}

export interface TryingPorts {
  readonly clock: Clock
  readonly pauses: Pauses
  /** Numbers in [0, 1), to spread pauses. */
  readonly dice: () => number
  /** Told when it begins to fail, and when it works again. */
  readonly onChange: (trouble: string | undefined) => void
}

export interface Trying {
  /** Tries until it is done or refused; what is refused is left alone. Undefined when it was closed meanwhile. */
  until(attempt: () => Promise<Tried>): Promise<Tried | undefined>
  trouble(): string | undefined
}

export function createTrying(url: string, { clock, pauses, dice, onChange }: TryingPorts): Trying {
  const address = originOf(url)?.address
  let trouble: string | undefined

  function turn(reason: string | undefined): void {
    const isChange = (trouble === undefined) !== (reason === undefined)
    trouble = reason
    if (isChange) onChange(reason)
  }

  /** Waits until somebody listens. */
  async function reach(since: number): Promise<void> {
    while (!pauses.isClosed() && address !== undefined && !(await probe(address)))
      await pauses.rest(probeIntervalMs(clock.monotonic() - since))
  }

  return Object.freeze({
    async until(attempt) {
      let tries = 0
      const since = clock.monotonic()
      while (!pauses.isClosed()) {
        const tried = await attempt()
        turn(tried.kind === 'done' ? undefined : tried.reason)
        if (tried.kind !== 'later') return tried
        tries++
        // The first time it is only probed; who accepts connections and does not answer is left alone, too.
        if (!tried.isUnreachable || tries > 1)
          await pauses.rest(backoffMs(tries, clock.monotonic() - since, dice()))
        if (tried.isUnreachable) await reach(since)
      }
      return undefined
    },
    trouble: () => trouble,
  } satisfies Trying)
}
