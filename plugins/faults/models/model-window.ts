/**
 * The last values of one stream and its scale, from which the input rows of fault models are made. The scale
 * is learned again regularly, but not from values that a fault covers. Pure: no clock, no I/O; the state is
 * one JSON object.
 */
import { type StreamScale, scaleOf, scaleValuesMin } from './stream-scale.ts'
import { featureCount, windowLength, writeFeatures } from './window-features.ts'

/** Values from which a scale is learned. */
const historyMax = 512
/** Values after which the scale is learned again. */
const learnEvery = 128

export interface WindowState {
  /** The last values, oldest first. */
  values: number[]
  /** The slot of each value. */
  slots: number[]
  scale: StreamScale | null
  /** Values since the scale was learned. */
  since: number
}

export const createWindowState = (): WindowState => ({ values: [], slots: [], scale: null, since: 0 })

export interface WindowSample {
  readonly value: number
  /** Intervals since the sample before. */
  readonly slots: number
  /** Whether the stream is in the state fault; its values teach nothing then. */
  readonly isFault: boolean
}

/** Adds a sample. */
export function takeWindow(state: WindowState, { value, slots, isFault }: WindowSample): void {
  state.values.push(value)
  state.slots.push((state.slots.at(-1) ?? 0) + Math.max(1, Math.round(slots)))
  if (state.values.length > historyMax + learnEvery) {
    state.values.splice(0, learnEvery)
    state.slots.splice(0, learnEvery)
  }
  if (isFault) {
    state.since = 0
    return
  }
  state.since++
  const isDue = state.scale === null ? state.values.length >= scaleValuesMin : state.since >= learnEvery
  if (!isDue) return
  // The newest window is left out: an anomaly that is not yet a fault must not widen the scale.
  const until = Math.max(scaleValuesMin, state.values.length - windowLength)
  const learned = state.since === state.values.length ? state.values : state.values.slice(0, until)
  state.scale = scaleOf(learned) ?? state.scale
  state.since = 0
}

/** The features of the newest window; undefined while the stream is too young or never varied. */
export function newestFeatures({ values, slots, scale }: WindowState): Float32Array | undefined {
  if (scale === null || values.length < windowLength) return undefined
  const target = new Float32Array(featureCount)
  const window = { values: values.slice(-windowLength), slots: slots.slice(-windowLength) }
  writeFeatures(window, scale, { target, offset: 0 })
  return target
}
