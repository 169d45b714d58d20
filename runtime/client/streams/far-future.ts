/**
 * Observations of a device whose clock is far ahead. A plugin ignores them, since the newest value of a
 * stream would stay the newest for as long as it is ahead.
 */
import { limits } from '#base/limits/limits.ts'

/** @param time observedAt, ms. @param arrivedAt when the gateway received the observation, ms. */
export const isFarAhead = (time: number, arrivedAt: number): boolean =>
  time > arrivedAt + limits.observationAheadMs.value
