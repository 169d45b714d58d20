/**
 * How many requests of one lane may be under way at once. Where answers take longer than the quickest did, those
 * over there stand in line for what is sent from here, with everything else that the other side does; so there are fewer then,
 * one at least, and more again when it is idle. A long way costs nothing: only what is added to it counts. Monotonic time.
 */
import { limits } from '#base/limits/limits.ts'

export interface Concurrency {
  /** Settles when a request may go; each has to `leave` with how long its answer took (ms), undefined where none came. */
  acquire(): Promise<void>
  release(tookMs: number | undefined): void
  /** How many may be under way now. */
  limit(): number
}

export function createConcurrency(monotonic: () => number): Concurrency {
  const most = limits.uplinkRequestsInFlight.value
  let limit = 1
  let inFlight = 0
  let reducedAt = Number.NEGATIVE_INFINITY
  /** The quickest of this period and of the one before: ways change. */
  let [fastest, fastestBefore] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  let since = monotonic()
  let waiting: (() => void)[] = []

  function adapt(tookMs: number): void {
    const now = monotonic()
    if (now - since > limits.uplinkQuickestMs.value) {
      ;[fastestBefore, fastest, since] = [fastest, Number.POSITIVE_INFINITY, now]
    }
    fastest = Math.min(fastest, tookMs)
    const isBusy = tookMs > Math.min(fastest, fastestBefore) + limits.uplinkDelayMs.value
    if (!isBusy) limit = Math.min(most, limit + 1 / limit)
    // What was sent before it was narrowed tells nothing of how it is since then.
    else if (now - tookMs > reducedAt) {
      limit = Math.max(1, limit * reduction)
      reducedAt = now
    }
  }

  return Object.freeze({
    async acquire() {
      while (inFlight >= Math.floor(limit)) await new Promise<void>((resolve) => waiting.push(resolve))
      inFlight++
    },
    release(tookMs) {
      inFlight--
      if (tookMs !== undefined) adapt(tookMs)
      const all = waiting
      waiting = []
      for (const resume of all) resume()
    },
    limit: () => Math.floor(limit),
  } satisfies Concurrency)
}

const reduction = 0.7
