/**
 * Finds the period of a stream in its history: a local maximum of the autocorrelation of the detrended
 * values that explains enough of their variance. Undefined if none does. Pure.
 */
import { autocovariances } from '#statistics/autocorrelation.ts'

const lagMin = 4
const correlationMin = 0.3
/** Candidates with this share of the best correlation are as good. */
const nearBest = 0.9
/** The seasonal part explains at least this share of the variance. */
const strengthMin = 0.4
/** The history has at least so many periods. */
export const periodsMin = 3

/** Values without their straight trend. */
function detrended(values: Float64Array): Float64Array {
  const count = values.length
  const centre = (count - 1) / 2
  let mean = 0
  let product = 0
  for (let i = 0; i < count; i++) {
    mean += values[i]! / count
    product += (i - centre) * values[i]!
  }
  const slope = (12 * product) / (count * (count ** 2 - 1))
  return values.map((value, i) => value - mean - slope * (i - centre))
}

/** The share of variance that the mean by phase explains, with the degrees of freedom taken off. */
function seasonalStrength(values: Float64Array, period: number): number {
  const sums = new Float64Array(period)
  const counts = new Float64Array(period)
  let mean = 0
  for (let i = 0; i < values.length; i++) {
    sums[i % period]! += values[i]!
    counts[i % period]!++
    mean += values[i]! / values.length
  }
  let all = 0
  let rest = 0
  for (let i = 0; i < values.length; i++) {
    all += (values[i]! - mean) ** 2
    rest += (values[i]! - sums[i % period]! / counts[i % period]!) ** 2
  }
  const freedom = (values.length - 1) / Math.max(1, values.length - period)
  return all > 0 ? Math.max(0, 1 - (rest * freedom) / all) : 0
}

/** The period of these values in samples. A period near a preferred one (a day, a week) goes first. */
export function detectPeriod(values: Float64Array, preferred: readonly number[] = []): number | undefined {
  const series = detrended(values)
  const lagMax = Math.floor(values.length / periodsMin)
  if (lagMax <= lagMin) return undefined
  const covariances = autocovariances(series, lagMax)
  if (!(covariances[0]! > 0)) return undefined
  const least = Math.max(correlationMin, (3 * 1.96) / Math.sqrt(values.length))
  const candidates: { lag: number; correlation: number }[] = []
  for (let lag = lagMin; lag < lagMax; lag++) {
    const [before, here, after] = [covariances[lag - 1]!, covariances[lag]!, covariances[lag + 1]!]
    // The biased estimate falls with the lag; the share of values that are compared makes up for it.
    const correlation = (here / covariances[0]!) * (values.length / (values.length - lag))
    if (here > before && here >= after && correlation > least) candidates.push({ lag, correlation })
  }
  // Multiples of a period correlate as well as the period: the shortest of about the best ones is it.
  const best = Math.max(...candidates.map(({ correlation }) => correlation))
  const isNearBest = (correlation: number): boolean => correlation >= nearBest * best
  const isPreferred = (lag: number): boolean => preferred.some((one) => Math.abs(lag - one) <= one * 0.05)
  candidates.sort(
    (a, b) =>
      Number(isPreferred(b.lag)) - Number(isPreferred(a.lag)) ||
      Number(isNearBest(b.correlation)) - Number(isNearBest(a.correlation)) ||
      a.lag - b.lag,
  )
  return candidates
    .slice(0, 5)
    .map(({ lag }) => refined(series, lag, lagMax))
    .find((lag) => seasonalStrength(series, lag) > strengthMin)
}

/** The lag near this one that explains most over all periods: one slot off adds up over many of them. */
function refined(series: Float64Array, lag: number, lagMax: number): number {
  let best = lag
  for (let near = lag - 2; near <= lag + 2; near++)
    if (near >= lagMin && near <= lagMax && seasonalStrength(series, near) > seasonalStrength(series, best))
      best = near
  return best
}
