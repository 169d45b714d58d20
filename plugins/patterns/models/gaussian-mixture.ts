/**
 * A Gaussian mixture with full or diagonal covariances: reads its JSON, and computes the share of each
 * component at a point.
 */
import { limits } from '#base/limits/limits.ts'
import { isList, type JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { choleskyOf, logDensity } from '#statistics/cholesky.ts'
import { itemsIn, matrixIn, type Placed, positiveIn, vectorIn } from './model-json.ts'
import { features } from './preparation.ts'

export interface GaussianMixture {
  readonly logWeights: Float64Array
  readonly means: readonly Float64Array[]
  /** Cholesky factor of each covariance. */
  readonly factors: readonly (readonly Float64Array[])[]
}

/** Digits that files of models keep of their weights. */
const weightTolerance = 0.001

/**
 * The share of each component in the density at a point, from 0 to 1 (responsibilities: Bishop, Pattern
 * Recognition and Machine Learning, 9.13). Also far from all components, where each density is 0 as a number.
 */
export function sharesOf(mixture: GaussianMixture, point: Float64Array): Float64Array {
  const { shares } = weighed(mixture, point)
  return shares
}

/** The shares, and the log density of the whole mixture at the point. */
export function weighed(
  { logWeights, means, factors }: GaussianMixture,
  point: Float64Array,
): { readonly shares: Float64Array; readonly logDensity: number } {
  const logs = logWeights.map((weight, i) => {
    const log = weight + logDensity(point, means[i]!, factors[i]!)
    // A square that overflows makes it infinite, or not a number.
    return Number.isFinite(log) ? log : -Number.MAX_VALUE
  })
  const most = logs.reduce((a, b) => Math.max(a, b))
  const relative = logs.map((log) => Math.exp(log - most))
  const sum = relative.reduce((a, b) => a + b, 0)
  return { shares: relative.map((share) => share / sum), logDensity: most + Math.log(sum) }
}

/** @throws ngsi-ld.bad-request-data with the path of the mistake */
export function parseGaussianMixture(json: JsonObject): GaussianMixture {
  const most = limits.patternComponentsMax.value
  const means = matrixIn({ json: json['means'], path: 'means' }, { most, what: 'components' }, features)
  const count = { least: means.length, most: means.length, what: 'components' }
  const weights = vectorIn({ json: json['weights'], path: 'weights' }, count)
  const negative = weights.findIndex((weight) => weight < 0)
  if (negative !== -1)
    throw badRequestData(`must be at least 0, got ${weights[negative]}`, `weights[${negative}]`)
  const sum = weights.reduce((a, b) => a + b)
  if (Math.abs(sum - 1) > weightTolerance) throw badRequestData(`must add up to 1, got ${sum}`, 'weights')
  const size = means[0]!.length
  const factors = itemsIn({ json: json['covariances'], path: 'covariances' }, count).map((one) =>
    factorIn(one, size),
  )
  return { logWeights: weights.map((weight) => Math.log(weight / sum)), means, factors }
}

/** A matrix, or the variances if the covariance is diagonal. */
function factorIn(placed: Placed, size: number): readonly Float64Array[] {
  const lengths = { least: size, most: size, what: 'numbers' }
  const isFull = isList(placed.json) && isList(placed.json[0])
  if (!isFull) return diagonalFactor(Float64Array.from(itemsIn(placed, lengths), positiveIn))
  const rows = matrixIn(placed, { ...lengths, what: 'rows' }, lengths)
  rows.forEach((row, i) => {
    positiveIn({ json: row[i], path: `${placed.path}[${i}][${i}]` })
  })
  for (const [i, row] of rows.entries()) {
    const j = row.findIndex((value, column) => !isSame(value, rows[column]![i]!, scaleOf(rows, i, column)))
    if (j === -1) continue
    throw badRequestData(`must be symmetric: [${i}][${j}] is not equal to [${j}][${i}]`, placed.path)
  }
  const factor = choleskyOf(rows)
  if (factor !== undefined) return factor
  throw badRequestData('is singular; add a small number such as 1e-6 to its diagonal', placed.path)
}

const isSame = (a: number, b: number, scale: number): boolean => Math.abs(a - b) <= 1e-9 * scale
const scaleOf = (rows: readonly Float64Array[], i: number, j: number): number =>
  Math.sqrt(rows[i]![i]!) * Math.sqrt(rows[j]![j]!)

const diagonalFactor = (variances: Float64Array): readonly Float64Array[] =>
  Array.from(variances, (variance, i) => {
    const row = new Float64Array(variances.length)
    row[i] = Math.sqrt(variance)
    return row
  })
