/**
 * Rate: values that the sensor cannot have reached from the last plausible one in the time between. Beyond a
 * stated limit a value is a definite fault. Beyond twice the largest change that the history lets expect, two
 * different values are an anomaly; a single one is left to the spike rule, equal ones to the stuck rule.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import type { Match } from './finding.ts'
import type { Observed } from './observed.ts'

export interface RateState {
  /** The last plausible value and its time; null before the first. */
  value: number | null
  time: number
  /** The newest value and its time. */
  newest: number
  newestTime: number
  /** Values in succession that were not plausible, and how many of the newest follow each other. */
  count: number
  following: number
  /** Time of the first of them. */
  begin: number
}

/** Values that follow each other plausibly are the new course: a sensor may have been moved. */
const acceptedSamples = 5
/** Share by which a change may exceed the limit: times and values are rounded. */
const tolerance = 1e-6
/** Largest changes of the history, times this, are not exceeded by the environment. */
const beyondHistory = 2

export const createRateState = (): RateState => ({
  value: null,
  time: 0,
  newest: 0,
  newestTime: 0,
  count: 0,
  following: 0,
  begin: 0,
})

type Point = Pick<Observed, 'time' | 'value'>

/** Takes a value, and the limit in units per ms. Returns how many values in succession were not plausible. */
function takePoint(state: RateState, { value, time }: Point, limit: number): number {
  const most = limit * (1 + tolerance)
  const isComparable = state.value !== null && time > state.time
  const isPlausible = !isComparable || Math.abs(value - state.value!) <= most * (time - state.time)
  if (isPlausible) state.count = 0
  else {
    const follows = Math.abs(value - state.newest) <= most * (time - state.newestTime)
    state.following = state.count > 0 && follows ? state.following + 1 : 1
    if (state.count === 0) state.begin = time
    state.count++
  }
  const { count } = state
  state.newest = value
  state.newestTime = time
  if (isPlausible || state.following >= acceptedSamples) {
    state.value = value
    state.time = time
    state.count = 0
    state.following = 0
  }
  return count
}

/** @param maxRate the stated limit in units per second. */
export function takeRate(state: RateState, point: Point, maxRate: number): Match | undefined {
  const count = takePoint(state, point, maxRate / 1000)
  if (count === 0) return undefined
  return { class: 'rate', kind: 'definite', begin: state.begin, likelihood: 0 }
}

/** The largest changes of the history, by interval. */
export interface UsualRate {
  rate: RateState
  extremes: Extremes
}

export const createUsualRate = (): UsualRate => ({ rate: createRateState(), extremes: createExtremes() })

/**
 * Compares a change over so many intervals of so many ms with the history. Returns the time of the first
 * value of an impossible course.
 */
export function takeUsualRate(
  { rate, extremes }: UsualRate,
  { time, value, change, slots, slotMs }: Point & { change: number; slots: number; slotMs: number },
  learns: boolean,
): number | undefined {
  const size = Math.abs(change) / slots
  const threshold = thresholdOf(extremes)
  const count = takePoint(rate, { time, value }, (beyondHistory * threshold) / slotMs)
  // Larger ones are learned, too: the largest of all is left out, and a course that repeats becomes usual.
  if (learns) learnExtreme(extremes, size)
  return count >= 2 && change !== 0 ? rate.begin : undefined
}

/** Forgets the last plausible value: the next one does not follow it. */
export function interruptUsualRate({ rate }: UsualRate): void {
  rate.value = null
  rate.count = 0
  rate.following = 0
}
