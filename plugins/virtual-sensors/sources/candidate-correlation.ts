/**
 * Decides which candidates correlate with the broken sensor. A candidate needs 50 common slots and a Pearson
 * correlation of at least 0.5 at one of the lags -3 to 3. The correlation must be significant at 1 %, after
 * Bonferroni's correction.
 *
 * In a smooth series each value is close to the one before, so many values say no more than a few independent
 * ones. The test of significance uses that smaller number (`effectivePairs`). Smooth series rarely pass it,
 * so the changes from slot to slot are tested too, and either test suffices. Pure.
 */
import { correlationOf, effectivePairs, probabilityOf } from '#statistics/correlation.ts'

/** Fewer common slots are not enough data. */
export const commonSlotsMin = 50
const correlationMin = 0.5
const significance = 0.01
/**
 * Without a floor, two equal smooth series would not pass. At this floor a correlation of about 0.93
 * passes.
 */
const independentMin = 8
const lags = [0, 1, -1, 2, -2, 3, -3]

export interface CandidateCorrelation {
  readonly commonSlots: number
  /** The largest over the lags. */
  readonly correlation: number
  readonly isCorrelated: boolean
}

/** Tests one of `candidateCount` candidates; both series in the same slots. */
export function testCorrelation(
  target: Float64Array,
  source: Float64Array,
  candidateCount: number,
): CandidateCorrelation {
  const commonSlots = correlationOf(target, source).pairs
  const best = strongest(target, source)
  const probabilityMax = significance / (lags.length * candidateCount)
  const isCorrelated =
    commonSlots >= commonSlotsMin &&
    best.correlation >= correlationMin &&
    (best.probability <= probabilityMax ||
      strongest(changesOf(target), changesOf(source)).probability <= probabilityMax)
  return { commonSlots, correlation: best.correlation, isCorrelated }
}

/** The largest correlation over the lags. */
function strongest(target: Float64Array, source: Float64Array) {
  const found = lags.map((lag) => correlationOf(target, source, lag))
  const { correlation, pairs } = found.reduce((best, one) =>
    one.correlation > best.correlation ? one : best,
  )
  const independent = Math.max(Math.min(independentMin, pairs), effectivePairs(pairs, target, source))
  return { correlation, probability: correlation > 0 ? probabilityOf(correlation, independent) : 1 }
}

const changesOf = (values: Float64Array): Float64Array =>
  values.map((value, i) => (i === 0 ? Number.NaN : value - values[i - 1]!))
