/**
 * Whether a reading becomes an observation, and when it was made: the time in the payload if it is plausible, else
 * the reception. Pure: the only clock is that of the frame. A retained frame without a time of the device's own is
 * old news of unknown age and never an observation; a time outside the window is a broken clock.
 */
import { limits } from '#base/limits/limits.ts'
import type { Frame, Reading, TimeSource } from '#contract'
import { objectionTo } from '#contract/decoding.ts'

/** When an observation was made, and how that is known. */
export interface Stamp {
  /** Milliseconds since 1970 UTC. */
  readonly observedAt: number
  readonly timeSource: TimeSource
  readonly refused?: undefined
}

export interface Refusal {
  /** value: not a value at all; retained: old news of unknown age; time-window: implausible time. */
  readonly refused: 'value' | 'retained' | 'time-window'
  readonly reason: string
}

export type Verdict = Stamp | Refusal

/**
 * Total; throws nothing. The window is [2000-01-01, reception + 24 h], both ends included. Of a reception by a clock that
 * is unsynced nothing is concluded: then any time may be right that a clock could be set to.
 */
export function judgeReading(reading: Reading, frame: Frame, isSynced = true): Verdict {
  const objection = objectionTo(reading)
  if (objection !== undefined) return { refused: 'value', reason: objection }
  if (frame.retained && !hasOwnTime(reading))
    return { refused: 'retained', reason: 'a retained frame without a time is no observation' }
  const { observedAt, timeSource } = reading
  if (observedAt === undefined) return { observedAt: frame.receivedAt, timeSource: 'gateway' }
  if (isPlausible(observedAt, frame.receivedAt, isSynced))
    return { observedAt, timeSource: timeSource ?? 'gateway' }
  return { refused: 'time-window', reason: `the time ${timeText(observedAt)} is outside the window` }
}

/** Whether the time of a reading survives a redelivery: it is not counted from the reception. */
export function hasOwnTime({ observedAt, timeSource }: Reading): boolean {
  return observedAt !== undefined && (timeSource === 'device' || timeSource === 'network')
}

function isPlausible(observedAt: number, receivedAt: number, isSynced: boolean): boolean {
  const latest = receivedAt + (isSynced ? limits.futureSkewMs.value : limits.clockAheadMsMax.value)
  return observedAt >= limits.observedAtFloorMs.value && observedAt <= latest
}

/** Furthest time a Date can tell (ECMA-262 21.4.1.1). */
const dateMax = 8.64e15

const timeText = (time: number): string =>
  Math.abs(time) <= dateMax ? new Date(time).toISOString() : `${time} ms`
