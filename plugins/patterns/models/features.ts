/**
 * The features of a window: a vector that a model classifies. Pure. Features of a stream that is constant, or
 * 0, are finite numbers too.
 */
import { eigenpairsOf } from '#statistics/symmetric-eigen.ts'

/** `originals`: the main direction of variation; `segments`: piecewise aggregate means. */
export type FeatureKind = 'originals' | 'segments'

/** Means per stream of a window in the features `segments`. */
export const segmentsPerStream = 8

export const featureCountOf = (kind: FeatureKind, streams: number): number =>
  kind === 'originals' ? streams : streams * segmentsPerStream

/** @param window a series of values per stream, all of the same length of at least one row. */
export function featuresOf(kind: FeatureKind, window: readonly Float64Array[]): Float64Array {
  return kind === 'originals' ? mainDirection(window) : segmentMeans(window)
}

/**
 * The features of the original pattern extractor: each series divided by its Euclidean norm, the covariance
 * matrix of the series, and its eigenvector with the eigenvalue of largest magnitude.
 *
 * An eigenvector has no sign of its own. For two streams this is the sign that `numpy.linalg.eig` returns, by
 * which the original models were fitted. LAPACK defines no sign beyond two streams: there the largest
 * component is positive.
 */
function mainDirection(window: readonly Float64Array[]): Float64Array {
  const centred = window.map((series) => centredOf(series))
  const covariance = centred.map((a) => Float64Array.from(centred, (b) => productOf(a, b)))
  const { vector } = eigenpairsOf(covariance)[0]!
  return vector.map((value) => value * signOf(vector, covariance))
}

/** Divided by its norm, minus its mean. All zeros for a constant series, without rounding errors. */
function centredOf(series: Float64Array): Float64Array {
  if (series.every((value) => value === series[0])) return new Float64Array(series.length)
  const largest = series.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  const scaled = series.map((value) => value / largest)
  const norm = Math.sqrt(productOf(scaled, scaled))
  const mean = scaled.reduce((sum, value) => sum + value, 0) / scaled.length
  return scaled.map((value) => (value - mean) / norm)
}

function signOf(vector: Float64Array, covariance: readonly Float64Array[]): number {
  const largest = vector.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0)
  if (vector.length !== 2) return Math.sign(largest)
  const [first, second] = covariance
  const isNegative = second![1]! > first![0]! && first![1] !== 0
  return isNegative ? -Math.sign(vector[1]!) : Math.sign(largest)
}

function productOf(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/**
 * Piecewise aggregate approximation (Keogh et al., 2001): the means of eight segments of equal length per
 * stream. A row at the border of two segments counts in both, by its parts. The levels stay: a model that
 * compares streams of different units scales them itself.
 */
function segmentMeans(window: readonly Float64Array[]): Float64Array {
  const features = new Float64Array(window.length * segmentsPerStream)
  window.forEach((series, stream) => {
    const length = series.length / segmentsPerStream
    for (let segment = 0; segment < segmentsPerStream; segment++)
      features[stream * segmentsPerStream + segment] = meanBetween(
        series,
        segment * length,
        (segment + 1) * length,
      )
  })
  return features
}

/** The mean of a series between two positions, which may lie within a row. */
function meanBetween(series: Float64Array, from: number, to: number): number {
  let sum = 0
  for (let row = Math.floor(from); row < Math.min(Math.ceil(to), series.length); row++) {
    const share = Math.min(row + 1, to) - Math.max(row, from)
    sum += series[row]! * (share / (to - from))
  }
  return sum
}
