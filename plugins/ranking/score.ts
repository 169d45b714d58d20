/**
 * The scoring formula: r = w1*p1 + ... + wn*pn over the values of candidates, their order, and the share of
 * each term. Pure functions. A missing value is NaN and counts as 0; no other value is NaN, and no score is
 * infinite. Scores are rounded to 12 decimals, so that mathematically equal scores are equal, and ties keep
 * their order.
 */

export interface Weight {
  /** Finite; the sum of weights is arbitrary. */
  readonly weight: number
  /** Small values are good: p is 1 minus the value. */
  readonly isFalling: boolean
}

export interface Candidate<T> {
  readonly item: T
  /** By term; NaN without a value. */
  readonly values: Float64Array
}

export interface Ranked<T> extends Candidate<T> {
  readonly score: number
}

/** The least value of a term, and the distance to the greatest. */
export interface ValueRange {
  readonly least: number
  readonly width: number
}

/** The range of each term's values over all candidates. */
export function spansOf(count: number, candidates: readonly Candidate<unknown>[]): readonly ValueRange[] {
  return Array.from({ length: count }, (_, term) => {
    let least = Number.POSITIVE_INFINITY
    let most = Number.NEGATIVE_INFINITY
    for (const { values } of candidates) {
      const value = bounded(values[term]!)
      if (value < least) least = value
      if (value > most) most = value
    }
    return { least, width: most - least }
  })
}

/**
 * The contribution of a term to the score.
 * @param span if given, the value is scaled to 0 to 1 within it; 1 if all values are equal.
 */
export function shareOf({ weight, isFalling }: Weight, value: number, span?: ValueRange): number {
  if (Number.isNaN(value)) return 0
  const plain = bounded(value)
  if (span === undefined) return weight * (isFalling ? 1 - plain : plain)
  if (!(span.width > 0)) return weight
  const place = (plain - span.least) / span.width
  return weight * (isFalling ? 1 - place : place)
}

export function scoreOf(
  weights: readonly Weight[],
  values: Float64Array,
  spans?: readonly ValueRange[],
): number {
  let sum = 0
  for (let term = 0; term < weights.length; term++)
    sum += shareOf(weights[term]!, values[term]!, spans?.[term])
  return rounded(sum)
}

/** The best candidates first, at most `keep`. */
export function bestOf<T>(ranked: readonly Ranked<T>[], keep: number): Ranked<T>[] {
  return ranked.toSorted((a, b) => b.score - a.score).slice(0, keep)
}

/** Rounds to the significant decimals of a sum of products. */
export const rounded = (value: number): number =>
  Math.abs(value) < 1000 ? Math.round(value * 1e12) / 1e12 + 0 : value

/** Products and differences of values within these bounds are finite. */
const end = 1e300
const bounded = (value: number): number => Math.min(end, Math.max(-end, value))
