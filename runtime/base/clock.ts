/**
 * Time, as a port. Wall-clock time is for stamps that people and peers read; monotonic time is for every
 * interval and deadline, because the wall clock of a board without a battery jumps.
 */

export interface Clock {
  /** Wall-clock time in integer milliseconds since 1970 UTC. */
  now(): number
  /** Milliseconds on a clock that never goes back and knows no date. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
