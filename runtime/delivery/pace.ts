/**
 * Paces requests to a reachable endpoint: concurrently while they succeed, one at a time with growing pauses
 * while they fail. If other deliveries succeeded meanwhile, only the pair of the failed delivery backs off;
 * otherwise the whole endpoint does. So one bad entity never slows the others, and a failing endpoint is not
 * flooded.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { backoffMs } from './backoff.ts'
import type { Flight } from './queue.ts'
import { consequenceOf, type Failure } from './verdict.ts'

export type Pace = ReturnType<typeof createPace>

/** `random` returns numbers in [0, 1). */
export function createPace(clock: Clock, random: () => number) {
  let failures = 0
  let failingSince = { wall: 0, monotonic: 0 }
  let lastFailedAt = 0
  let succeededAt = Number.NEGATIVE_INFINITY
  let pausedUntil = 0

  function chargePair({ pair }: Flight, now: number): number {
    if (pair.failures === 0) pair.failingSince = now
    return now + backoffMs(++pair.failures, now - pair.failingSince, random())
  }
  /** Requests that were in flight together and failed together count as one failure. */
  function chargeEndpoint({ startedAt }: Flight, now: number): void {
    if (failures > 0 && startedAt < lastFailedAt) return
    if (failures === 0) failingSince = { wall: clock.now(), monotonic: now }
    failures++
    lastFailedAt = now
    pausedUntil = Math.max(pausedUntil, now + backoffMs(failures, now - failingSince.monotonic, random()))
  }
  function hold(ms: number): void {
    pausedUntil = Math.max(pausedUntil, clock.monotonic() + Math.min(ms, limits.deliveryPauseMsMax.value))
  }

  return Object.freeze({
    /** Maximum number of requests in flight. */
    width: () => (failures > 0 ? 1 : limits.deliveriesInFlightMax.value),
    /** No request starts before this time, monotonic ms. */
    pausedUntil: () => pausedUntil,
    /** Consecutive failures of the endpoint as a whole. */
    failures: () => failures,
    /** Time of the first of these failures, wall-clock ms. */
    failingSince: (): number | undefined => (failures > 0 ? failingSince.wall : undefined),
    /** Records a successful delivery. */
    succeeded(): void {
      failures = 0
      succeededAt = clock.monotonic()
    },
    /**
     * Records a failed delivery. Returns until when its pair must wait, or undefined if the whole endpoint
     * waits.
     */
    failed(flight: Flight, failure: Failure): number | undefined {
      const now = clock.monotonic()
      const othersGoWell = succeededAt > (flight.pair.failedAt ?? flight.startedAt)
      flight.pair.failedAt = now
      if (failure.retryAfterMs !== undefined) hold(failure.retryAfterMs)
      else if (othersGoWell || consequenceOf(failure) === 'poison') return chargePair(flight, now)
      chargeEndpoint(flight, now)
      return undefined
    },
    /** Starts no request for this long, ms, even after a success. */
    hold,
  })
}
