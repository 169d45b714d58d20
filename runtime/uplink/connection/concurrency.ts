/**
 * Limits the number of concurrent requests of one lane. If responses take longer than the fastest one,
 * requests queue at the centre and delay its other work. Then the limit is reduced, to one at least. It grows
 * again while the centre is idle. Only the added delay counts, so a long round trip does not reduce it. Uses
 * monotonic time.
 */
import { limits } from '#base/limits/limits.ts'

export function createConcurrency(monotonic: () => number) {
  const most = limits.uplinkRequestsInFlight.value
  let limit = 1
  let inFlight = 0
  let reducedAt = Number.NEGATIVE_INFINITY
  /** Fastest response of this period and of the previous one, because routes change. */
  let fastest = Number.POSITIVE_INFINITY
  let fastestBefore = Number.POSITIVE_INFINITY
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
    // Responses to requests sent before the last reduction are ignored.
    else if (now - tookMs > reducedAt) {
      limit = Math.max(1, limit * reduction)
      reducedAt = now
    }
  }

  return Object.freeze({
    /**
     * Resolves when a request may be sent; the caller must `release` it with the response time (ms),
     * undefined if there was no response.
     */
    async acquire(): Promise<void> {
      while (inFlight >= Math.floor(limit)) await new Promise<void>((resolve) => waiting.push(resolve))
      inFlight++
    },
    release(tookMs: number | undefined): void {
      inFlight--
      if (tookMs !== undefined) adapt(tookMs)
      const all = waiting
      waiting = []
      for (const resume of all) resume()
    },
    /** The current limit. */
    limit: () => Math.floor(limit),
  })
}

const reduction = 0.7
