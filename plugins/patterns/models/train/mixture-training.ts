/**
 * Fits a Gaussian mixture with full covariances by expectation maximization (Bishop, 9.2.2), starting from
 * clusters. Pure.
 */

import { type GaussianMixture, weighed } from '#plugins/patterns/models/gaussian-mixture.ts'
import { choleskyOf } from '#statistics/cholesky.ts'
import type { Clusters } from './k-means-training.ts'

export interface FittedMixture {
  readonly weights: Float64Array
  readonly means: readonly Float64Array[]
  readonly covariances: readonly (readonly Float64Array[])[]
  /** Log likelihood of all points. */
  readonly likelihood: number
}

const iterationsMax = 300
/** Gain of the mean log likelihood by an iteration at which the fit ends. */
const gainMin = 1e-6
/**
 * Added to the variances, as a share of the points' mean variance: a component of a few points must not
 * shrink to a line.
 */
const regularization = 1e-3

export function fitMixture(points: readonly Float64Array[], { centroids, members }: Clusters): FittedMixture {
  const ridge = regularization * meanVariance(points) || regularization
  let shares: readonly Float64Array[] = points.map((_, i) =>
    Float64Array.from(centroids, (_, k) => Number(members[i] === k)),
  )
  let fitted = maximized(points, shares, ridge)
  for (let i = 0; i < iterationsMax; i++) {
    const expected = expectation(points, fitted)
    const gain = expected.likelihood - fitted.likelihood
    shares = expected.shares
    fitted = { ...maximized(points, shares, ridge), likelihood: expected.likelihood }
    if (gain < gainMin * points.length) break
  }
  return { ...fitted, likelihood: expectation(points, fitted).likelihood }
}

/** The Bayesian information criterion (Schwarz, 1978); lower is better. */
export function mixtureCriterion({ means, likelihood }: FittedMixture, points: number): number {
  const size = means[0]!.length
  const parameters = means.length * (1 + size + (size * (size + 1)) / 2) - 1
  return parameters * Math.log(points) - 2 * likelihood
}

function expectation(points: readonly Float64Array[], { weights, means, covariances }: FittedMixture) {
  // The ridge keeps each covariance positive definite.
  const factors = covariances.map((covariance) => choleskyOf(covariance)!)
  const mixture: GaussianMixture = { logWeights: weights.map((weight) => Math.log(weight)), means, factors }
  let likelihood = 0
  const shares = points.map((point) => {
    const result = weighed(mixture, point)
    likelihood += result.logDensity
    return result.shares
  })
  return { shares, likelihood }
}

function maximized(
  points: readonly Float64Array[],
  shares: readonly Float64Array[],
  ridge: number,
): FittedMixture {
  const size = points[0]!.length
  const count = shares[0]!.length
  const totals = Float64Array.from({ length: count }, (_, k) =>
    shares.reduce((sum, share) => sum + share[k]!, 10 * Number.EPSILON),
  )
  const means = Array.from(totals, (total, k) => {
    const mean = new Float64Array(size)
    points.forEach((point, i) => {
      for (let j = 0; j < size; j++) mean[j]! += (shares[i]![k]! * point[j]!) / total
    })
    return mean
  })
  const covariances = means.map((mean, k) => {
    const rows = Array.from(mean, () => new Float64Array(size))
    points.forEach((point, i) => {
      const share = shares[i]![k]! / totals[k]!
      for (let a = 0; a < size; a++)
        for (let b = 0; b <= a; b++) rows[a]![b]! += share * (point[a]! - mean[a]!) * (point[b]! - mean[b]!)
    })
    for (let a = 0; a < size; a++) {
      for (let b = 0; b < a; b++) rows[b]![a] = rows[a]![b]!
      rows[a]![a]! += ridge
    }
    return rows
  })
  const sum = totals.reduce((a, b) => a + b)
  return {
    weights: totals.map((total) => total / sum),
    means,
    covariances,
    likelihood: Number.NEGATIVE_INFINITY,
  }
}

function meanVariance(points: readonly Float64Array[]): number {
  const size = points[0]!.length
  let variance = 0
  for (let j = 0; j < size; j++) {
    const mean = points.reduce((sum, point) => sum + point[j]!, 0) / points.length
    variance += points.reduce((sum, point) => sum + (point[j]! - mean) ** 2, 0) / points.length / size
  }
  return variance
}
