/**
 * Timers of throttled subscriptions. When a window with held entities ends, a timer submits the work that
 * notifies of them. A work that fails because of the disk is retried.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { toGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Matcher, Registered } from './matcher.ts'

export interface ThrottlingPorts extends ClockAndLog {
  readonly door: Pick<Door, 'commit'>
  readonly matcher: Pick<Matcher, 'get' | 'release'>
}

export function createThrottling({ door, matcher, clock, log }: ThrottlingPorts) {
  const timers = new Map<number, NodeJS.Timeout>()

  const remainingMs = ({ subscription: { throttling = 0 }, lastMatchAt }: Registered): number =>
    lastMatchAt + throttling * 1000 - clock.monotonic()
  const startTimer = (i: number, ms: number): void =>
    void timers.set(
      i,
      setTimeout(() => void end(i), Math.min(Math.max(ms, 1), timerMsMax)),
    )

  async function end(i: number): Promise<void> {
    timers.delete(i)
    const registered = matcher.get(i)
    if (registered === undefined || registered.held.size === 0) return
    const ms = remainingMs(registered)
    if (ms > 0) {
      startTimer(i, ms)
      return
    }
    try {
      await door.commit((stage) => {
        const current = matcher.get(i)
        if (current !== undefined) matcher.release(stage, current)
      })
    } catch (error) {
      const { code } = toGatewayError(error)
      log.warn('delivery.period-failed', { subscription: registered.subscription.id, code })
      if (code !== 'store.closed') startTimer(i, limits.throttledRetryMs.value)
    }
  }

  return Object.freeze({
    /** Starts the timer of a subscription that holds an entity. */
    watch(registered: Registered): void {
      if (!timers.has(registered.i)) startTimer(registered.i, remainingMs(registered))
    },
    stop(): void {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  })
}

/** The longest delay of a Node timer, ms. */
const timerMsMax = 2 ** 31 - 1
