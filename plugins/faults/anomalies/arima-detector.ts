/**
 * Scores the values of a stream by a fitted seasonal ARIMA: the mean of the latest innovations, in their
 * deviations. One innovation alone shows a spike; their mean also shows a small deviation that lasts. Pure.
 */
import { createSeasonalArima } from './seasonal-arima.ts'
import type { ArimaModel } from './seasonal-arima-fit.ts'

const innovationCount = 3
/** The most that one innovation counts, so that a score has an end. */
const deviationsMax = 1000

export interface ArimaStart {
  readonly model: ArimaModel
  /** The history up to now, which sets the state of the model. */
  readonly values: Float64Array
  readonly firstSlot: number
}

export function createArimaDetector({ model, values, firstSlot }: ArimaStart) {
  const arima = createSeasonalArima(model, firstSlot)
  const latest = new Float64Array(innovationCount)
  let count = 0
  for (const value of values) arima.take(Number.isNaN(value) ? undefined : value, false)

  return Object.freeze({
    predict: arima.predict,
    /** The score of the value of the slot; undefined if it is missing. */
    take(value: number | undefined, learns: boolean): number | undefined {
      const { expected, deviation } = arima.predict()
      arima.take(value, learns)
      if (value === undefined) return undefined
      const standardised = (value - expected) / deviation
      latest[count % innovationCount] = Math.max(-deviationsMax, Math.min(deviationsMax, standardised))
      count++
      const used = Math.min(count, innovationCount)
      let sum = 0
      for (let i = 0; i < used; i++) sum += latest[i]!
      return Math.abs(sum / used)
    },
  })
}

export type ArimaDetector = ReturnType<typeof createArimaDetector>
