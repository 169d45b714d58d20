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

/** Shared by the paces of all endpoints. */
export interface PacePorts {
  readonly clock: Clock
  /** Returns numbers in [0, 1). */
  readonly random: () => number
}

/** A class, because thousands of endpoints have one each. */
export class Pace {
  private readonly ports: PacePorts
  private failureCount = 0
  /** Wall-clock and monotonic ms of the first of these failures. */
  private failingSinceWall = 0
  private failingSinceMonotonic = 0
  private lastFailedAt = 0
  private succeededAt = Number.NEGATIVE_INFINITY
  private resumesAt = 0

  constructor(ports: PacePorts) {
    this.ports = ports
  }

  /** Maximum number of requests in flight. */
  width(): number {
    return this.failureCount > 0 ? 1 : limits.deliveriesInFlightMax.value
  }
  /** No request starts before this time, monotonic ms. */
  pausedUntil(): number {
    return this.resumesAt
  }
  /** Consecutive failures of the endpoint as a whole. */
  failures(): number {
    return this.failureCount
  }
  /** Time of the first of these failures, wall-clock ms. */
  failingSince(): number | undefined {
    return this.failureCount > 0 ? this.failingSinceWall : undefined
  }
  /** Records a successful delivery. */
  succeeded(): void {
    this.failureCount = 0
    this.succeededAt = this.ports.clock.monotonic()
  }
  /**
   * Records a failed delivery. Returns until when its pair must wait, or undefined if the whole endpoint
   * waits.
   */
  failed(flight: Flight, failure: Failure): number | undefined {
    const now = this.ports.clock.monotonic()
    const othersGoWell = this.succeededAt > (flight.pair.failedAt ?? flight.startedAt)
    flight.pair.failedAt = now
    if (failure.retryAfterMs !== undefined) this.hold(failure.retryAfterMs)
    else if (othersGoWell || consequenceOf(failure) === 'poison') return this.chargePair(flight, now)
    this.chargeEndpoint(flight, now)
    return undefined
  }
  /** Starts no request for this long, ms, even after a success. */
  hold(ms: number): void {
    const heldMs = Math.min(ms, limits.deliveryPauseMsMax.value)
    this.resumesAt = Math.max(this.resumesAt, this.ports.clock.monotonic() + heldMs)
  }

  private chargePair({ pair }: Flight, now: number): number {
    if (pair.failures === 0) pair.failingSince = now
    return now + backoffMs(++pair.failures, now - pair.failingSince, this.ports.random())
  }
  /** Requests that were in flight together and failed together count as one failure. */
  private chargeEndpoint({ startedAt }: Flight, now: number): void {
    if (this.failureCount > 0 && startedAt < this.lastFailedAt) return
    if (this.failureCount === 0) {
      this.failingSinceWall = this.ports.clock.now()
      this.failingSinceMonotonic = now
    }
    this.failureCount++
    this.lastFailedAt = now
    const failingMs = now - this.failingSinceMonotonic
    const pauseMs = backoffMs(this.failureCount, failingMs, this.ports.random())
    this.resumesAt = Math.max(this.resumesAt, now + pauseMs)
  }
}
