/**
 * Ridge regression of the last column of a table on others, from the moments of the table. The penalty
 * acts on columns scaled to unit variance, and can shrink towards weights that are known beforehand
 * instead of towards zero. Columns without variance get the weight of the prior. Pure.
 */
import { choleskyOf, solveByCholesky } from './cholesky.ts'
import type { Moments } from './moments.ts'
import { eigenpairsOf } from './symmetric-eigen.ts'

export interface RidgeTask {
  readonly moments: Moments
  /** The columns that the regression uses. */
  readonly columns: readonly number[]
  /** The weights to shrink towards, per entry of `columns`; zero if absent. */
  readonly prior?: readonly number[]
}

export interface LinearFit {
  /** Per entry of `columns`. */
  readonly weights: Float64Array
  readonly intercept: number
}

/** From nearly ordinary least squares to nearly the prior. */
const penalties = Array.from({ length: 13 }, (_, i) => 10 ** (i / 2 - 5))

/** The regression with this penalty, which is relative to the variance of a column. */
export function ridgeOf(task: RidgeTask, penalty: number): LinearFit {
  const { columns, prior, moments } = task
  const { varying, correlations, targets, scales } = standardised(task)
  correlations.forEach((row, i) => {
    row[i]! += penalty
  })
  const factor = choleskyOf(correlations)
  const solved = factor === undefined ? undefined : solveByCholesky(factor, targets)
  const weights = Float64Array.from(columns, (_, i) => prior?.[i] ?? 0)
  varying.forEach((position, i) => {
    weights[position]! += (solved?.[i] ?? 0) / scales[i]!
  })
  const intercept = columns.reduce(
    (rest, column, i) => rest - weights[i]! * moments.means[column]!,
    moments.means.at(-1)!,
  )
  return { weights, intercept }
}

/** The penalty with the least generalised cross-validation error (Golub, Heath and Wahba 1979). */
export function penaltyByGcv(task: RidgeTask): number {
  const { correlations, targets, rest } = standardised(task)
  const pairs = eigenpairsOf(correlations)
  const projections = pairs.map(({ vector }) => vector.reduce((sum, v, i) => sum + v * targets[i]!, 0))
  const errors = penalties.map((penalty) => {
    let error = rest
    let freedom = 1
    pairs.forEach(({ value }, i) => {
      const shrunk = Math.max(value, 0) + penalty
      error -= (projections[i]! ** 2 * (shrunk + penalty)) / shrunk ** 2
      freedom += Math.max(value, 0) / shrunk
    })
    const left = 1 - freedom / task.moments.rows
    return left <= 0 ? Number.POSITIVE_INFINITY : Math.max(error, 0) / left ** 2
  })
  return penalties[errors.indexOf(Math.min(...errors))] ?? 1
}

/** The task per row, with columns of unit variance; the target is what the prior leaves. */
function standardised({ moments: { rows, products, means }, columns, prior }: RidgeTask) {
  const target = means.length - 1
  const covariance = (i: number, j: number): number => products[i]![j]! / rows
  const varying = columns.flatMap((column, i) =>
    isVarying(covariance(column, column), means[column]!) ? [i] : [],
  )
  const scales = varying.map((i) => Math.sqrt(covariance(columns[i]!, columns[i]!)))
  /** The covariance of a column with what the prior explains. */
  const explained = (column: number): number => {
    if (prior === undefined) return 0
    return columns.reduce((sum, other, i) => (prior[i] ? sum + prior[i] * covariance(column, other) : sum), 0)
  }
  const correlations = varying.map((i, a) => {
    const row = products[columns[i]!]!
    const scaled = new Float64Array(varying.length)
    for (let b = 0; b < scaled.length; b++)
      scaled[b] = row[columns[varying[b]!]!]! / rows / (scales[a]! * scales[b]!)
    return scaled
  })
  const targets = Float64Array.from(
    varying,
    (i, a) => (covariance(columns[i]!, target) - explained(columns[i]!)) / scales[a]!,
  )
  const ofPrior = columns.reduce((sum, column, i) => sum + (prior?.[i] ?? 0) * explained(column), 0)
  const rest = covariance(target, target) - 2 * explained(target) + ofPrior
  return { varying, correlations, targets, scales, rest }
}

/** Whether a variance is more than the rounding of sums around this mean. */
const isVarying = (variance: number, mean: number): boolean =>
  variance > 1e-20 * mean ** 2 && variance > 1e-200
