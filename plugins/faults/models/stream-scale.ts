/**
 * The scale of one stream: its usual level, its usual step from value to value at low and high levels, its
 * extremes and its longest run of equal values. A fault model sees values only in this scale, so that one
 * model serves every property. Pure: the same history gives the same scale.
 */

export interface StreamScale {
  readonly level: number
  readonly spread: number
  /** The usual step, as a standard deviation. */
  readonly step: number
  /** The usual step around each of these levels, in ascending order of level. */
  readonly stepAt: readonly { readonly level: number; readonly step: number }[]
  readonly low: number
  readonly high: number
  /** Values of the longest run of equal values; at least 1. */
  readonly longestRun: number
}

/** A scale needs this many values. */
export const scaleValuesMin = 64
const levelBins = 4
const madToDeviation = 1.4826
/** Mean absolute value of a normal distribution to its standard deviation. */
const meanToDeviation = 1.2533
const trimmedShare = 0.95
const stepShareMin = 0.2

/** Returns undefined for fewer than 64 values and for values that never varied. NaN is a missing value. */
export function streamScaleOf(history: ArrayLike<number>): StreamScale | undefined {
  const values: number[] = []
  const steps: { readonly from: number; readonly size: number }[] = []
  let run = 1
  let longestRun = 1
  let previous = Number.NaN
  for (let i = 0; i < history.length; i++) {
    const value = history[i]!
    if (Number.isFinite(value)) {
      values.push(value)
      if (Number.isFinite(previous)) {
        steps.push({ from: previous, size: Math.abs(value - previous) })
        run = value === previous ? run + 1 : 1
        longestRun = Math.max(longestRun, run)
      }
    }
    previous = value
  }
  if (values.length < scaleValuesMin || steps.length < scaleValuesMin / 2) return undefined
  const sorted = Float64Array.from(values).sort()
  const step = usualStep(steps)
  if (step === 0) return undefined
  return {
    level: quantile(sorted, 0.5),
    spread: Math.max(spreadOf(sorted), step / 4),
    step,
    stepAt: stepsByLevel(steps, step),
    low: sorted[0]!,
    high: sorted.at(-1)!,
    longestRun,
  }
}

/** The usual step of a stream at a level, interpolated between the levels of its scale. */
export function stepNear({ stepAt }: StreamScale, level: number): number {
  const above = stepAt.findIndex((bin) => bin.level >= level)
  if (above === -1) return stepAt.at(-1)!.step
  if (above === 0) return stepAt[0]!.step
  const upper = stepAt[above]!
  const lower = stepAt[above - 1]!
  const share = (level - lower.level) / (upper.level - lower.level)
  return lower.step + share * (upper.step - lower.step)
}

function spreadOf(sorted: Float64Array): number {
  const median = quantile(sorted, 0.5)
  const deviations = sorted.map((value) => Math.abs(value - median)).sort()
  const robust = madToDeviation * quantile(deviations, 0.5)
  // More than half of the values are equal: the range of 90 % of a normal distribution is 3.29 deviations.
  return robust > 0 ? robust : (quantile(sorted, 0.95) - quantile(sorted, 0.05)) / 3.29
}

function usualStep(steps: readonly { readonly size: number }[]): number {
  const sizes = Float64Array.from(steps, ({ size }) => size).sort()
  const count = Math.max(1, Math.floor(sizes.length * trimmedShare))
  let sum = 0
  for (let i = 0; i < count; i++) sum += sizes[i]!
  return sum > 0 ? (meanToDeviation * sum) / count : (meanToDeviation * sizes.at(-1)!) / sizes.length
}

function stepsByLevel(steps: readonly { readonly from: number; readonly size: number }[], usual: number) {
  const byLevel = steps.toSorted((a, b) => a.from - b.from)
  const bins: { level: number; step: number }[] = []
  for (let bin = 0; bin < levelBins; bin++) {
    const part = byLevel.slice(
      Math.floor((bin * byLevel.length) / levelBins),
      Math.floor(((bin + 1) * byLevel.length) / levelBins),
    )
    const level = part[part.length >> 1]!.from
    const step = Math.max(usualStep(part), stepShareMin * usual)
    // Levels that are equal, as of a stream that is mostly zero, are one bin.
    const last = bins.at(-1)
    if (last !== undefined && last.level === level) last.step = Math.max(last.step, step)
    else bins.push({ level, step })
  }
  return bins
}

function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)]!
  return below + (place - Math.floor(place)) * (sorted[Math.ceil(place)]! - below)
}
