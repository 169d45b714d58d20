/**
 * Repeats an operation at another broker until it succeeds. An unreachable broker is probed by connecting, so
 * that the operation is repeated within a second of its return. A broker that responds with failures is
 * retried after growing pauses. Uses monotonic time.
 */
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from '#delivery/backoff.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import { originOf, probe } from '#delivery/probe.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import { problemTypeIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Pauses } from './pause.ts'

/** The result of an attempt. */
export type Attempt =
  | { readonly kind: 'done' }
  /** The broker refuses it as it is; an early retry is pointless. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'later'; readonly reason: string; readonly isUnreachable: boolean }

export const done: Attempt = Object.freeze({ kind: 'done' })

/** Client errors that time or a change at the broker may resolve. */
const transientStatuses = new Set([401, 403, 408, 425, 429])
/** A proxy in front of a starting broker may also return these. */
const ambiguousStatuses = new Set([404, 405, 410])

/** The result of an unsuccessful response. */
export function failedAttempt(answer: PeerAnswer, reason: string): Attempt {
  if ('failure' in answer) return { kind: 'later', reason, isUnreachable: true }
  const { status, text } = answer
  const isUnreliable = status < 400 || (ambiguousStatuses.has(status) && problemTypeIn(text) === '')
  return status >= 500 || transientStatuses.has(status) || isUnreliable
    ? { kind: 'later', reason, isUnreachable: false }
    : { kind: 'refused', reason }
}

export interface RetryingPorts {
  readonly clock: Clock
  readonly pauses: Pauses
  /** Random numbers in [0, 1), to spread pauses. */
  readonly random: () => number
  /** Called when attempts begin to fail and when they succeed again. */
  readonly onChange: (trouble: string | undefined) => void
}

export function createRetrying(url: string, { clock, pauses, random, onChange }: RetryingPorts) {
  const address = originOf(url)?.address
  let trouble: string | undefined

  function setTrouble(reason: string | undefined): void {
    const isChange = (trouble === undefined) !== (reason === undefined)
    trouble = reason
    if (isChange) onChange(reason)
  }

  /** Waits until the broker accepts connections. */
  async function awaitReachable(since: number): Promise<void> {
    while (!pauses.isClosed() && address !== undefined && !(await probe(address)))
      await pauses.sleep(probeIntervalMs(clock.monotonic() - since))
  }

  return Object.freeze({
    /** Repeats the attempt until it succeeds or is refused; undefined when closed. */
    async until(attempt: () => Promise<Attempt>): Promise<Attempt | undefined> {
      let tries = 0
      const since = clock.monotonic()
      while (!pauses.isClosed()) {
        const tried = await attempt()
        setTrouble(tried.kind === 'done' ? undefined : tried.reason)
        if (tried.kind !== 'later') return tried
        tries++
        // After the first failure a probe suffices; a server that accepts connections but does not respond
        // gets pauses.
        if (!tried.isUnreachable || tries > 1)
          await pauses.sleep(backoffMs(tries, clock.monotonic() - since, random()))
        if (tried.isUnreachable) await awaitReachable(since)
      }
      return undefined
    },
    trouble: (): string | undefined => trouble,
  })
}
