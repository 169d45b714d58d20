/**
 * How many requests of one lane may be under way at once. Where answers take longer than the quickest did, those
 * over there stand in line for what is sent from here, with everything else that the other side does; so there are fewer then,
 * one at least, and more again when it is idle. A long way costs nothing: only what is added to it counts. Monotonic time.
 */
import { limits } from '#base/limits/limits.ts'

export interface Breadth {
  /** Settles when a request may go; each has to `leave` with how long its answer took (ms), undefined where none came. */
  enter(): Promise<void>
  leave(tookMs: number | undefined): void
  /** How many may be under way now. */
  width(): number
}

export function createBreadth(monotonic: () => number): Breadth {
  const most = limits.uplinkRequestsInFlight.value
  let width = 1
  let underWay = 0
  let narrowedAt = Number.NEGATIVE_INFINITY
  /** The quickest of this period and of the one before: ways change. */
  let [quickest, quickestBefore] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  let since = monotonic()
  let waiting: (() => void)[] = []

  function learn(tookMs: number): void {
    const now = monotonic()
    if (now - since > limits.uplinkQuickestMs.value) {
      ;[quickestBefore, quickest, since] = [quickest, Number.POSITIVE_INFINITY, now]
    }
    quickest = Math.min(quickest, tookMs)
    const isBusy = tookMs > Math.min(quickest, quickestBefore) + limits.uplinkDelayMs.value
    if (!isBusy) width = Math.min(most, width + 1 / width)
    // What was sent before it was narrowed tells nothing of how it is since then.
    else if (now - tookMs > narrowedAt) {
      width = Math.max(1, width * narrowing)
      narrowedAt = now
    }
  }

  return Object.freeze({
    async enter() {
      while (underWay >= Math.floor(width)) await new Promise<void>((resolve) => waiting.push(resolve))
      underWay++
    },
    leave(tookMs) {
      underWay--
      if (tookMs !== undefined) learn(tookMs)
      const all = waiting
      waiting = []
      for (const go of all) go()
    },
    width: () => Math.floor(width),
  } satisfies Breadth)
}

const narrowing = 0.7
