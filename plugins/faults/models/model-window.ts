/**
 * The last values of one stream and its scale, from which the input rows of fault models are made. The scale
 * is learned again regularly, but not from values that a fault covers. Pure: no clock, no I/O; the state is
 * one JSON object.
 */
import { type StreamScale, scaleValuesMin, streamScaleOf } from './stream-scale.ts'
import { featureCount, windowLength, writeFeatures } from './window-features.ts'

/** Values from which a scale is learned. */
const historyMax = 512
/** Values after which the scale is learned again. */
const learnEvery = 128

export interface WindowState {
  /** The last values, oldest first. */
  values: number[]
  /** observedAt of each value, ms. */
  times: number[]
  scale: StreamScale | null
  /** Values since the scale was learned. */
  since: number
  /** When the fault began that covers the newest values, ms. */
  faultBegin: number | null
  /** The usual time between values, ms. */
  usualMs: number | null
}

export const createWindowState = (): WindowState => ({
  values: [],
  times: [],
  scale: null,
  since: 0,
  faultBegin: null,
  usualMs: null,
})

export interface WindowSample {
  readonly value: number
  /** observedAt, ms. */
  readonly time: number
  /** When the fault began that the stream is in, ms; such values are dropped once it is over. */
  readonly faultBegin?: number | undefined
}

/** A change of pace by this factor or more begins a new window. */
const paceRatio = 16
const paceWeight = 0.1

/** Adds a sample. */
export function takeWindow(state: WindowState, { value, time, faultBegin }: WindowSample): void {
  if (faultBegin === undefined && state.faultBegin !== null) dropFrom(state, state.faultBegin)
  state.faultBegin = faultBegin ?? null
  takePace(state, time)
  state.values.push(value)
  state.times.push(time)
  if (state.values.length > historyMax + learnEvery) {
    state.values.splice(0, learnEvery)
    state.times.splice(0, learnEvery)
  }
  if (faultBegin !== undefined) {
    state.since = 0
    return
  }
  state.since++
  const isDue = state.scale === null ? state.values.length >= scaleValuesMin : state.since >= learnEvery
  if (!isDue) return
  // The newest window is left out: an anomaly that is not yet a fault must not widen the scale.
  const until = Math.max(scaleValuesMin, state.values.length - windowLength)
  const learned = state.since === state.values.length ? state.values : state.values.slice(0, until)
  state.scale = streamScaleOf(learned) ?? state.scale
  state.since = 0
}

/**
 * Begins a new window after a long silence. If the values come much faster than before, as after an imported
 * history, the scale is learned anew, too.
 */
function takePace(state: WindowState, time: number): void {
  const last = state.times.at(-1)
  if (last === undefined) return
  const gap = time - last
  const usual = state.usualMs ?? gap
  if (gap > usual / paceRatio && gap < usual * paceRatio) {
    state.usualMs = usual + paceWeight * (gap - usual)
    return
  }
  state.values = []
  state.times = []
  if (gap >= usual) return
  state.scale = null
  state.since = 0
  state.usualMs = gap
}

function dropFrom(state: WindowState, time: number): void {
  const kept = state.times.findIndex((one) => one >= time)
  if (kept === -1) return
  state.values.length = kept
  state.times.length = kept
}

/**
 * The features of the newest window; undefined while the stream is too young or never varied.
 * @param intervalMs the usual time between values; if it is unknown, gaps do not count.
 */
export function newestFeatures(
  { values, times, scale }: WindowState,
  intervalMs: number | undefined,
): Float32Array | undefined {
  if (scale === null || values.length < windowLength) return undefined
  const target = new Float32Array(featureCount)
  const newest = times.slice(-windowLength)
  const slots = newest.map((time, i) =>
    intervalMs === undefined ? i : Math.round((time - newest[0]!) / intervalMs),
  )
  writeFeatures({ values: values.slice(-windowLength), slots }, scale, { target, offset: 0 })
  return target
}

/** Longest run of equal values of a stream on which equal values are unusual. */
const usualRunMax = 4

export const isCoarse = ({ scale }: WindowState): boolean => (scale?.longestRun ?? 0) > usualRunMax

/** observedAt of the first of the equal values at the end of the window. */
export function runBegin({ values, times }: WindowState): number {
  const last = values.length - 1
  let first = last
  while (first > 0 && values[first - 1] === values[last]) first--
  return times[first]!
}
