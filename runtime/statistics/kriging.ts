/**
 * Ordinary kriging weighs sensors at known distances, to estimate the value at a place without a sensor.
 * Its exponential correlogram is fitted to the correlations of pairs of sensors. The weights add up to 1.
 * Pure.
 */
import { choleskyOf, solveByCholesky } from './cholesky.ts'

/** The correlation of two sensors at distance h > 0: level * exp(-h / range). */
export interface Correlogram {
  readonly level: number
  readonly range: number
}

export interface KrigingTask {
  /** Distances between the sensors. */
  readonly between: readonly (readonly number[])[]
  /** Distances from the sensors to the place. */
  readonly toPlace: readonly number[]
  readonly correlogram: Correlogram
}

export interface KrigingWeights {
  readonly weights: Float64Array
  /** The expected squared error, relative to the variance of a sensor. */
  readonly variance: number
}

export interface PairCorrelation {
  readonly distance: number
  readonly correlation: number
}

/** A level of 1 would make sensors at one place equal, and the equations singular. */
const levelMax = 0.999
const levelMin = 0.05

/** By least squares: the range from a grid, the level in closed form. */
export function correlogramOf(pairs: readonly PairCorrelation[]): Correlogram {
  const longest = Math.max(1, ...pairs.map(({ distance }) => distance))
  let best: Correlogram = { level: 0.9, range: longest }
  let least = Number.POSITIVE_INFINITY
  for (let step = 0; step <= 40; step++) {
    const range = longest * 10 ** (step / 10 - 2)
    const shapes = pairs.map(({ distance }) => Math.exp(-distance / range))
    const squares = shapes.reduce((sum, shape) => sum + shape ** 2, 0)
    const product = shapes.reduce((sum, shape, i) => sum + shape * pairs[i]!.correlation, 0)
    const level = Math.min(levelMax, Math.max(levelMin, squares > 0 ? product / squares : levelMin))
    const error = shapes.reduce((sum, shape, i) => sum + (level * shape - pairs[i]!.correlation) ** 2, 0)
    if (pairs.length > 0 && error < least) [least, best] = [error, { level, range }]
  }
  return best
}

/** Undefined without sensors. A sensor at the place itself gets all the weight. */
export function krigingWeightsOf({ between, toPlace, correlogram }: KrigingTask): KrigingWeights | undefined {
  const correlationAt = (distance: number): number =>
    correlogram.level * Math.exp(-distance / correlogram.range)
  const matrix = between.map((row, i) =>
    Float64Array.from(row, (distance, j) => (i === j ? 1 : correlationAt(distance))),
  )
  const near = Float64Array.from(toPlace, (distance) => (distance === 0 ? 1 : correlationAt(distance)))
  const factor = matrix.length === 0 ? undefined : choleskyOf(matrix)
  if (factor === undefined) return undefined
  const ofNear = solveByCholesky(factor, near)
  const ofOnes = solveByCholesky(factor, new Float64Array(near.length).fill(1))
  const multiplier = (1 - sumOf(ofNear)) / sumOf(ofOnes)
  const weights = ofNear.map((weight, i) => weight + multiplier * ofOnes[i]!)
  let variance = 1
  weights.forEach((weight, i) => {
    variance -= 2 * weight * near[i]!
    weights.forEach((other, j) => {
      variance += weight * other * matrix[i]![j]!
    })
  })
  return { weights, variance: Math.max(variance, 0) }
}

const sumOf = (values: Float64Array): number => values.reduce((a, b) => a + b, 0)
