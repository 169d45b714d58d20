/**
 * How an endpoint that answers may be sent to: all at once while it goes well, one at a time and with growing
 * pauses while it fails. A failure is charged to the pair alone when the endpoint took something else meanwhile,
 * and to the endpoint otherwise, so that one bad entity never slows the rest and a bad endpoint is left in peace.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from './backoff.ts'
import type { Flight } from './queue.ts'
import { consequenceOf, type Failure } from './verdict.ts'

export interface Pace {
  /** Requests that may be in flight at once. */
  width(): number
  /** Nothing leaves before this, monotonic ms. */
  pausedUntil(): number
  /** Failures in a row of the endpoint as a whole. */
  failures(): number
  /** Since when it fails, wall-clock ms. */
  failingSince(): number | undefined
  /** A delivery was taken. */
  succeeded(): void
  /** A delivery failed. Returns until when its pair has to wait alone, or undefined when all wait. */
  failed(flight: Flight, failure: Failure): number | undefined
  /** Nothing leaves for this long, ms, whatever happens. */
  hold(ms: number): void
}

/** `dice` gives numbers in [0, 1). */
export function createPace(clock: Clock, dice: () => number): Pace {
  let failures = 0
  let failingSince = { wall: 0, monotonic: 0 }
  let lastFailedAt = 0
  let succeededAt = Number.NEGATIVE_INFINITY
  let pausedUntil = 0

  function chargePair({ pair }: Flight, now: number): number {
    if (pair.failures === 0) pair.failingSince = now
    return now + backoffMs(++pair.failures, now - pair.failingSince, dice())
  }
  /** What was in flight together failed together: it counts once. */
  function chargeEndpoint({ startedAt }: Flight, now: number): void {
    if (failures > 0 && startedAt < lastFailedAt) return
    if (failures === 0) failingSince = { wall: clock.now(), monotonic: now }
    failures++
    lastFailedAt = now
    pausedUntil = Math.max(pausedUntil, now + backoffMs(failures, now - failingSince.monotonic, dice()))
  }
  function hold(ms: number): void {
    pausedUntil = Math.max(pausedUntil, clock.monotonic() + Math.min(ms, limits.deliveryPauseMsMax.value))
  }

  return Object.freeze({
    width: () => (failures > 0 ? 1 : limits.deliveriesInFlightMax.value),
    pausedUntil: () => pausedUntil,
    failures: () => failures,
    failingSince: () => (failures > 0 ? failingSince.wall : undefined),
    succeeded() {
      failures = 0
      succeededAt = clock.monotonic()
    },
    failed(flight, failure) {
      const now = clock.monotonic()
      const othersGoWell = succeededAt > (flight.pair.failedAt ?? flight.startedAt)
      flight.pair.failedAt = now
      if (failure.retryAfterMs !== undefined) hold(failure.retryAfterMs)
      else if (othersGoWell || consequenceOf(failure) === 'poison') return chargePair(flight, now)
      chargeEndpoint(flight, now)
      return undefined
    },
    hold,
  } satisfies Pace)
}
