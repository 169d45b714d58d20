/**
 * Whether the other broker may be asked now. While nobody can be reached the way is probed every second, so that sending
 * begins within a second of its return without anything new to send; who answers with failures is left alone for growing
 * pauses. Only monotonic time counts here.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import { backoffMs } from '#delivery/backoff.ts'
import { probeIntervalMs } from '#delivery/breaker.ts'
import type { Outcome } from './outcome.ts'

export interface LinkPorts {
  readonly clock: Clock
  /** Whether a connection can be made. */
  readonly probe: () => Promise<boolean>
  /** Numbers in [0, 1), to spread pauses. */
  readonly dice: () => number
  readonly onChange: (isUp: boolean, reason: string) => void
  /** Whether the way is not to be used now, although it may be there. */
  readonly isShut: () => boolean
}

export interface Link {
  /** Settles when something may be sent; false when the link was closed. */
  ready(): Promise<boolean>
  succeeded(): void
  failed(outcome: Outcome & { kind: 'later' }): void
  /** Since when (wall-clock ms) and why nothing gets through. */
  trouble(): { readonly since: number; readonly reason: string } | undefined
  /** Waits, at most until it is closed. */
  rest(ms: number): Promise<void>
  isClosed(): boolean
  /** Settles with an answer, or with `otherwise` when it is closed before. */
  unlessClosed<T>(answer: Promise<T>, otherwise: T): Promise<T>
  close(): void
}

export function createLink({ clock, probe, dice, onChange, isShut }: LinkPorts): Link {
  let trouble: { since: number; monotonic: number; reason: string } | undefined
  let tries = 0
  let mustProbe = false
  let pausedUntil = 0
  let isClosed = false
  const resting = new Set<() => void>()

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (isClosed) return resolve()
      const end = (): void => {
        clearTimeout(timer)
        resting.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      resting.add(end)
    })

  async function ready(): Promise<boolean> {
    while (!isClosed) {
      const pause = pausedUntil - clock.monotonic()
      if (isShut()) await rest(limits.uplinkShutMs.value)
      else if (pause > 0) await rest(pause)
      else if (!mustProbe) return true
      else if (await probe()) mustProbe = false
      else await rest(probeIntervalMs(clock.monotonic() - (trouble?.monotonic ?? clock.monotonic())))
    }
    return false
  }

  return Object.freeze({
    ready,
    rest,
    succeeded() {
      tries = 0
      if (trouble === undefined) return
      trouble = undefined
      onChange(true, '')
    },
    failed({ reason, isUnreachable, retryAfterMs }) {
      const now = clock.monotonic()
      tries++
      if (trouble === undefined) {
        trouble = { since: clock.now(), monotonic: now, reason }
        onChange(false, reason)
      }
      trouble.reason = reason
      mustProbe = isUnreachable
      // The first time it is only probed; who accepts connections and does not answer is left alone, too.
      const pause = isUnreachable && tries === 1 ? 0 : backoffMs(tries, now - trouble.monotonic, dice())
      pausedUntil = Math.max(pausedUntil, now + Math.max(retryAfterMs ?? 0, pause))
    },
    trouble: () => trouble,
    isClosed: () => isClosed,
    unlessClosed: (answer, otherwise) =>
      new Promise<typeof otherwise>((resolve, reject) => {
        const end = (): void => resolve(otherwise)
        resting.add(end)
        answer.finally(() => resting.delete(end)).then(resolve, reject)
        if (isClosed) end()
      }),
    close() {
      isClosed = true
      for (const end of [...resting]) end()
    },
  } satisfies Link)
}
