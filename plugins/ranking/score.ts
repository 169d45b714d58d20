/**
 * The ranking itself: r = w1*p1 + ... + wn*pn over the values of candidates, their order, and what each term gave to it.
 * Pure. A value that is missing is NaN here and counts 0; nothing else is ever NaN, and no score is infinite. Scores are rounded to 12
 * decimals, so that those which are equal on paper are equal here, and equal ones stay in the order they came in.
 */

export interface Weight {
  /** Finite; any sum of weights will do. */
  readonly weight: number
  /** Small is good: p is 1 minus the value. */
  readonly isFalling: boolean
}

export interface Candidate<T> {
  readonly item: T
  /** By term; NaN where there is none. */
  readonly values: Float64Array
}

export interface Ranked<T> extends Candidate<T> {
  readonly score: number
}

/** The least value of a term and how far the greatest is from it. */
export interface Span {
  readonly least: number
  readonly width: number
}

/** Ends between which the values of each term lie, over all candidates. */
export function spansOf(count: number, candidates: readonly Candidate<unknown>[]): readonly Span[] {
  return Array.from({ length: count }, (_, term) => {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const { values } of candidates) {
      const value = bounded(values[term]!)
      if (value < least) least = value
      if (value > most) most = value
    }
    return { least, width: most - least }
  })
}

/**
 * What a term adds to the score.
 * @param span where given, the value counts by its place in it, 0 to 1; where all are equal, 1.
 */
export function shareOf({ weight, isFalling }: Weight, value: number, span?: Span): number {
  if (Number.isNaN(value)) return 0
  const plain = bounded(value)
  if (span === undefined) return weight * (isFalling ? 1 - plain : plain)
  if (!(span.width > 0)) return weight
  const place = (plain - span.least) / span.width
  return weight * (isFalling ? 1 - place : place)
}

export function scoreOf(weights: readonly Weight[], values: Float64Array, spans?: readonly Span[]): number {
  let sum = 0
  for (let term = 0; term < weights.length; term++)
    sum += shareOf(weights[term]!, values[term]!, spans?.[term])
  return rounded(sum)
}

/** The best ones first, at most `keep`. */
export function bestOf<T>(ranked: readonly Ranked<T>[], keep: number): Ranked<T>[] {
  return ranked.toSorted((a, b) => b.score - a.score).slice(0, keep)
}

/** The decimals of a sum of products that mean something. */
export const rounded = (value: number): number =>
  Math.abs(value) < 1000 ? Math.round(value * 1e12) / 1e12 + 0 : value

/** Products and differences of what lies within these ends are finite. */
const end = 1e300
const bounded = (value: number): number => Math.min(end, Math.max(-end, value))
