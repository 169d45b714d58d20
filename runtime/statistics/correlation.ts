/**
 * Pearson's correlation of two series with gaps, at lags, and its test with the number of independent
 * values that autocorrelated series are worth (Bretherton et al. 1999). Missing values are NaN. Pure.
 */

export interface Correlation {
  readonly correlation: number
  /** Pairs with both values. */
  readonly pairs: number
}

/** Correlates a[i] with b[i - lag]: with a positive lag, b precedes a. Zero for a constant series. */
export function correlationOf(a: Float64Array, b: Float64Array, lag = 0): Correlation {
  let pairs = 0
  let meanA = 0
  let meanB = 0
  let squaresA = 0
  let squaresB = 0
  let products = 0
  for (let i = Math.max(0, lag); i < Math.min(a.length, b.length + lag); i++) {
    const [left, right] = [a[i]!, b[i - lag]!]
    if (Number.isNaN(left) || Number.isNaN(right)) continue
    pairs++
    const [deltaA, deltaB] = [left - meanA, right - meanB]
    meanA += deltaA / pairs
    meanB += deltaB / pairs
    squaresA += deltaA * (left - meanA)
    squaresB += deltaB * (right - meanB)
    products += deltaA * (right - meanB)
  }
  const scale = Math.sqrt(squaresA * squaresB)
  return { correlation: scale > 0 ? Math.max(-1, Math.min(1, products / scale)) : 0, pairs }
}

/** The number of independent pairs, from the lag-1 autocorrelations of the two series. */
export function effectivePairs(pairs: number, a: Float64Array, b: Float64Array): number {
  const product = correlationOf(a, a, 1).correlation * correlationOf(b, b, 1).correlation
  return Math.min(pairs, (pairs * (1 - product)) / (1 + product))
}

/**
 * The two-sided probability that uncorrelated normal series give at least this correlation, by Fisher's
 * transformation; 1 with fewer than 4 independent pairs.
 */
export function probabilityOf(correlation: number, independentPairs: number): number {
  if (independentPairs < 4) return 1
  const score =
    Math.abs(Math.atanh(Math.min(Math.abs(correlation), 1 - 1e-12))) * Math.sqrt(independentPairs - 3)
  return normalTail(score) * 2
}

/**
 * The probability that a standard normal value exceeds x >= 0 (Abramowitz and Stegun 26.2.17, error below
 * 1e-7).
 */
function normalTail(x: number): number {
  const t = 1 / (1 + 0.2316419 * x)
  const series =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) * series
}
