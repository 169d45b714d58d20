/**
 * Calibrated 90 % intervals by conformal prediction: the quantile of the residuals of validation,
 * relative to a scale that grows with the predicted value and with the disagreement of the sources.
 * Missing sources widen the interval by a factor from predictions with sources left out. The residuals
 * differ between blocks of the history, and the next block may be a bad one: the worst two decide. Pure.
 */
import { momentsOf } from '#statistics/moments.ts'
import { ridgeOf } from '#statistics/ridge.ts'

export interface IntervalModel {
  /**
   * The expected absolute error: intercept + level * prediction + spread * standard deviation of the
   * sources.
   */
  readonly intercept: number
  readonly level: number
  readonly spread: number
  readonly scaleMin: number
  readonly scaleMax: number
  /** Half of the interval's width, in scales. */
  readonly quantile: number
  /** The root mean square error, in scales. */
  readonly deviation: number
  /** Factors of the width with 0, 1, 2 ... missing sources. */
  readonly factors: readonly number[]
}

/** A prediction of validation. */
export interface ValidationCase {
  readonly predicted: number
  /** Standard deviation of the sources' values. */
  readonly spread: number
  readonly residual: number
}

const coverage = 0.9
/** Fewer cases say little about the difference between blocks. */
const casesMin = 300
const penalty = 0.01
/** Errors are taken as at least this large, relative to the values. */
const roundingError = 1e-9
/** The scale stays within these factors of its mean. */
const scaleBounds = [0.3, 4] as const

/** `blocks` are the cases of each block of the validation. */
export function intervalModelOf(
  blocks: readonly (readonly ValidationCase[])[],
  factors: readonly number[],
): IntervalModel {
  const cases = blocks.flat()
  const rows = cases.map(({ predicted, spread, residual }) =>
    Float64Array.of(predicted, spread, Math.abs(residual)),
  )
  const moments = momentsOf(rows)
  const { weights, intercept } = ridgeOf({ moments, columns: [0, 1] }, penalty)
  const mean = Math.max(moments.means[2]!, roundingError * Math.max(1, Math.abs(moments.means[0]!)))
  const shape = {
    intercept,
    level: weights[0]!,
    spread: weights[1]!,
    scaleMin: mean * scaleBounds[0],
    scaleMax: mean * scaleBounds[1],
  }
  const relative = (block: readonly ValidationCase[]): number[] =>
    block.map((one) => Math.abs(one.residual) / scaleOf(shape, one.predicted, one.spread))
  return {
    ...shape,
    quantile: quantileOfBlocks(blocks.map(relative)),
    deviation: rootMeanSquare(relative(cases)),
    factors,
  }
}

/** The worst block decides if there are few cases, the mean of the worst two otherwise. */
function quantileOfBlocks(blocks: readonly (readonly number[])[]): number {
  const [second = 0, worst = second] = blocks
    .map((block) => quantileOf(block, coverage))
    .toSorted((a, b) => a - b)
    .slice(-2)
  return blocks.flat().length < casesMin ? worst : (second + worst) / 2
}

type Shape = Omit<IntervalModel, 'quantile' | 'deviation' | 'factors'>

function scaleOf(
  { intercept, level, spread, scaleMin, scaleMax }: Shape,
  predicted: number,
  deviation: number,
) {
  return Math.min(scaleMax, Math.max(scaleMin, intercept + level * predicted + spread * deviation))
}

/** The standard error and half of the width of the interval of a prediction. */
export function intervalAround(
  model: IntervalModel,
  {
    predicted,
    spread,
    missing,
  }: { readonly predicted: number; readonly spread: number; readonly missing: number },
) {
  const factor = model.factors[Math.min(missing, model.factors.length - 1)] ?? 1
  const scale = factor * scaleOf(model, predicted, spread)
  return { error: scale * model.deviation, halfWidth: scale * model.quantile }
}

/** The standard deviation of the known values among the first `sources` of a row. */
export function spreadOf(row: Float64Array, sources: number): number {
  const known = row.subarray(0, sources).filter((value) => !Number.isNaN(value))
  const mean = known.reduce((a, b) => a + b, 0) / known.length
  return known.length === 0
    ? 0
    : Math.sqrt(known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / known.length)
}

export function rootMeanSquare(values: ArrayLike<number>): number {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]! ** 2
  return Math.sqrt(sum / Math.max(1, values.length))
}

/** The value that the share of the values does not exceed, for a next value (conformal rank). */
export function quantileOf(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * (sorted.length + 1)) - 1)] ?? 0
}
