/**
 * Predicts the value of a virtual sensor from the last known values of its sources. Sources that are
 * silent for longer than three of their own intervals are left out. Pure.
 */

import { intervalAround, spreadOf } from './intervals.ts'
import { type ModelBase, predictionOf, presentSources } from './members.ts'
import { featureRow } from './predictors.ts'
import type { ValueBounds, VirtualSensorModel } from './virtual-sensor-model.ts'

export interface SourceReading {
  /** In milliseconds. */
  readonly time: number
  readonly value: number
}

/** The last known reading of a source, and earlier ones, from which values of earlier slots are taken. */
export interface LatestReading extends SourceReading {
  /**
   * In any order; those of the last `lookbackMs(model)` are used. Without them, earlier slots count as
   * missing.
   */
  readonly earlier?: readonly SourceReading[]
}

export interface Prediction {
  readonly value: number
  /** The standard error. */
  readonly error: number
  /** The bounds of the 90 % interval. */
  readonly low: number
  readonly high: number
  /** Ids of the sources that had a value. */
  readonly used: readonly string[]
}

/** `latest` stands in the order of `model.sources`; undefined if every source is silent. */
export function predict(
  model: VirtualSensorModel,
  latest: readonly (LatestReading | undefined)[],
  at: number,
): Prediction | undefined {
  const fresh = rowOf(model, latest, { at, freshShare: model.freshShare ?? 1 })
  return predictRow(
    model,
    presentSources(model, fresh).length > 0 ? fresh : rowOf(model, latest, { at, freshShare: 1 }),
    at,
  )
}

interface Moment {
  readonly at: number
  readonly freshShare: number
}

function rowOf(
  model: VirtualSensorModel,
  latest: readonly (LatestReading | undefined)[],
  { at, freshShare: share }: Moment,
): Float64Array {
  return featureRow(model.sources.length, at, (source, lag) => {
    const hold = model.holdMs[source]!
    const reading = latest[source]
    if (reading === undefined || at - reading.time > hold) return Number.NaN
    return lag === 0 ? valueAt(reading, at, hold * share) : valueAt(reading, at - lag * model.slotMs, hold)
  })
}

/** How far back readings of a source are of use. */
export const lookbackMs = (model: VirtualSensorModel): number => model.slotMs + Math.max(0, ...model.holdMs)

/** The last value known at a time, NaN if there is none or it is too old. */
function valueAt(latest: LatestReading, at: number, holdMs: number): number {
  let best: SourceReading | undefined
  for (const reading of [latest, ...(latest.earlier ?? [])]) {
    const isUsable = reading.time <= at && at - reading.time <= holdMs && Number.isFinite(reading.value)
    if (isUsable && (best === undefined || reading.time > best.time)) best = reading
  }
  return best?.value ?? Number.NaN
}

/** Predicts from a row of features. */
function predictRow(model: VirtualSensorModel, row: Float64Array, at: number): Prediction | undefined {
  const present = presentSources(model, row)
  const raw = present.length === 0 ? Number.NaN : blendedValue(model, row, at)
  if (!Number.isFinite(raw)) return undefined
  const missing = model.sources.length - present.length
  const spread = spreadOf(row, model.sources.length)
  const { error, halfWidth } = intervalAround(model.interval, { predicted: raw, spread, missing })
  return {
    value: clipped(raw, model.range),
    error,
    low: clipped(raw - halfWidth, model.range),
    high: clipped(raw + halfWidth, model.range),
    used: present.map((i) => model.sources[i]!),
  }
}

/** The part of a model that predicts values, without intervals. */
export type BlendedModel = ModelBase & Pick<VirtualSensorModel, 'members'>

/** The predictions of the members that can predict, by weight. */
export function blendedValue(model: BlendedModel, row: Float64Array, at: number): number {
  let sum = 0
  let weights = 0
  for (const { member, weight } of model.members) {
    const value = predictionOf(model, member, row, at)
    if (!Number.isFinite(value)) continue
    sum += weight * value
    weights += weight
  }
  return sum / weights
}

export const clipped = (value: number, { min, max }: ValueBounds): number =>
  Math.min(max ?? Number.POSITIVE_INFINITY, Math.max(min ?? Number.NEGATIVE_INFINITY, value))
