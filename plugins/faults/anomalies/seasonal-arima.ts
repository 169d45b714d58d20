/**
 * Predicts a stream by a fitted seasonal ARIMA, value by value: seasonal shape, latest remainders and
 * innovations, and those of a period ago. A missing value is replaced by its prediction, and the uncertainty
 * grows with the gap. The seasonal shape follows the stream slowly. An outlier moves nothing by more than
 * four deviations. Pure.
 */
import type { ArimaModel } from './seasonal-arima-fit.ts'

const clipDeviations = 4
/** How fast each phase of the seasonal shape follows, and the level of a stream without a period. */
const shapeFactor = 0.1
const levelFactor = 0.0001
const deviationFactor = 0.0005
const spreadFactor = 0.005
/** Gaps are counted up to this. */
const gapMax = 64

interface NextValue {
  readonly expected: number
  readonly deviation: number
}

const clippedTo = (limit: number, value: number): number => Math.max(-limit, Math.min(limit, value))

export function createSeasonalArima(model: ArimaModel, firstSlot: number) {
  const { period, differences, autoregressive, movingAverage } = model
  const shape = model.shape.slice()
  const ring = Math.max(period, autoregressive.length, movingAverage.length, 1)
  const remainders = new Float32Array(ring)
  const innovations = new Float32Array(ring)
  const gapFactors = gapFactorsOf(model)
  let slot = firstSlot
  let count = 0
  let level = 0
  let gap = 0
  /** Usual distance of values from the seasonal shape. */
  let spread = Math.max(2 * model.deviation, 1e-6)
  let deviation = Math.max(model.deviation, 1e-9)

  const past = (of: Float32Array, lag: number): number => (lag > count ? 0 : of[(count - lag) % ring]!)

  function predicted(): number {
    let sum = 0
    for (let i = 0; i < autoregressive.length; i++) sum += autoregressive[i]! * past(remainders, i + 1)
    for (let i = 0; i < movingAverage.length; i++) sum += movingAverage[i]! * past(innovations, i + 1)
    if (period === 0) return sum
    return (
      sum +
      model.seasonalAutoregressive * past(remainders, period) +
      model.seasonalMovingAverage * past(innovations, period)
    )
  }

  function push(remainder: number, innovation: number): void {
    remainders[count % ring] = remainder
    innovations[count % ring] = innovation
    count++
    slot++
  }

  function learn(innovation: number, phase: number, remainder: number): void {
    const clipped = clippedTo(clipDeviations * deviation, innovation)
    deviation = Math.max(Math.sqrt(deviation ** 2 + deviationFactor * (clipped ** 2 - deviation ** 2)), 1e-9)
    const followed = clippedTo(clipDeviations * spread, remainder)
    spread = Math.sqrt(spread ** 2 + spreadFactor * (followed ** 2 - spread ** 2))
    shape[phase]! += (period > 0 ? shapeFactor : levelFactor) * followed
  }

  return Object.freeze({
    /** The next value, before it is known. */
    predict(): NextValue {
      const base = shape[slot % shape.length]! + (differences === 1 ? level : 0)
      return { expected: base + predicted(), deviation: deviation * gapFactors[Math.min(gap, gapMax)]! }
    },
    /** Takes the value of the slot; undefined is a missing one. */
    take(value: number | undefined, learns: boolean): void {
      const phase = slot % shape.length
      const expected = predicted()
      if (value === undefined) {
        gap++
        level += differences === 1 ? expected : 0
        push(expected, 0)
        return
      }
      gap = 0
      const remainder = value - shape[phase]!
      const moved = differences === 1 ? remainder - level : remainder
      level = remainder
      const innovation = moved - expected
      push(moved, clippedTo(clipDeviations * deviation, innovation))
      if (learns) learn(innovation, phase, remainder)
    },
  })
}

/**
 * How much larger the deviation is after a gap of so many values: the root of the sum of squared impulse
 * responses.
 */
function gapFactorsOf({ autoregressive, movingAverage, differences }: ArimaModel): Float64Array {
  const responses = new Float64Array(gapMax + 1)
  const factors = new Float64Array(gapMax + 1)
  let level = 0
  let squares = 0
  for (let h = 0; h <= gapMax; h++) {
    let response = h === 0 ? 1 : (movingAverage[h - 1] ?? 0)
    for (let i = 0; i < autoregressive.length && i < h; i++)
      response += autoregressive[i]! * responses[h - 1 - i]!
    responses[h] = response
    level = differences === 1 ? level + response : response
    squares += level ** 2
    factors[h] = Math.sqrt(squares)
  }
  return factors
}
