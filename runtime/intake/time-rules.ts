/**
 * Decides whether a reading becomes an observation, and at which time: the time in the payload if it is
 * plausible, otherwise the time of reception. Pure: the only clock is that of the frame. A retained frame
 * without a device time is of unknown age and never an observation. A time outside the window comes from a
 * wrong clock.
 */
import { limits } from '#base/limits/limits.ts'
import type { Frame, Reading, TimeSource } from '#contract'
import { objectionTo } from '#contract/decoding.ts'

/** The time of an observation and its source. */
export interface Stamp {
  /** Milliseconds since 1970 UTC. */
  readonly observedAt: number
  readonly timeSource: TimeSource
  readonly refused?: undefined
}

export interface ReadingRefusal {
  /** value: not a value at all; retained: a stale value of unknown age; time-window: implausible time. */
  readonly refused: 'value' | 'retained' | 'time-window'
  readonly reason: string
}

export type TimeVerdict = Stamp | ReadingRefusal

/**
 * Never throws. The window is [2000-01-01, reception + 24 h], both ends included. While the gateway's clock
 * is not set, the window ends where a clock could be set to, because the reception time means nothing.
 */
export function judgeReading(reading: Reading, frame: Frame, isSynced = true): TimeVerdict {
  const objection = objectionTo(reading)
  if (objection !== undefined) return { refused: 'value', reason: objection }
  if (frame.retained && !hasOwnTime(reading))
    return { refused: 'retained', reason: 'a retained frame without a time is not an observation' }
  const { observedAt, timeSource } = reading
  if (observedAt === undefined) return { observedAt: frame.receivedAt, timeSource: 'gateway' }
  if (isPlausible(observedAt, frame.receivedAt, isSynced))
    return { observedAt, timeSource: timeSource ?? 'gateway' }
  return { refused: 'time-window', reason: `the time ${timeText(observedAt)} is outside the accepted window` }
}

/**
 * True when the time of a reading is independent of the reception, so that a redelivery has the same time.
 */
export function hasOwnTime({ observedAt, timeSource }: Reading): boolean {
  return observedAt !== undefined && (timeSource === 'device' || timeSource === 'network')
}

function isPlausible(observedAt: number, receivedAt: number, isSynced: boolean): boolean {
  const latest = receivedAt + (isSynced ? limits.futureSkewMs.value : limits.clockAheadMsMax.value)
  return observedAt >= limits.observedAtFloorMs.value && observedAt <= latest
}

/** Latest time of a Date (ECMA-262 21.4.1.1). */
const dateMax = 8.64e15

const timeText = (time: number): string =>
  Math.abs(time) <= dateMax ? new Date(time).toISOString() : `${time} ms`
