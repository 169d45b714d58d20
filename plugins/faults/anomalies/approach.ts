/**
 * Chooses the approach of a stream from its history: seasonal ARIMA if a period is given or found and the
 * history is long and complete enough, else the Dirichlet-process state model. Fits the ARIMA. Pure; a fit
 * takes some 20 ms.
 */
import { medianOf } from '#statistics/median.ts'
import { detectPeriod, periodsMin } from './period.ts'
import { type ArimaModel, fitSeasonalArima } from './seasonal-arima-fit.ts'

export type Approach = 'seasonal-arima' | 'dirichlet-process'

/** The history of a stream; can be posted to a worker. */
export interface ApproachTask {
  /** By slot, from the oldest; NaN is a missing value. */
  readonly values: Float64Array
  readonly firstSlot: number
  /** Slots of a known period. */
  readonly periodSlots?: number
  /** Slots of a day and a week. */
  readonly preferredPeriods?: readonly number[]
  /** Fits an ARIMA even without a period. */
  readonly isArimaForced: boolean
}

export interface ApproachChoice {
  readonly approach: Approach
  readonly model?: ArimaModel
}

/**
 * Makes a choice later: takes the task when it is free for it, and reports the choice, undefined if none
 * could be made.
 */
export type ChooseApproach = (
  task: () => ApproachTask,
  adopt: (choice: ApproachChoice | undefined) => void,
) => void

const historyMin = 200
const completenessMin = 0.8
/** Outliers would hide a period: values are limited to so many robust deviations. */
const periodDeviations = 3

export function chooseApproach(task: ApproachTask): ApproachChoice {
  const { values, firstSlot, isArimaForced } = task
  const known = values.filter((value) => !Number.isNaN(value))
  const isComplete = known.length >= historyMin && known.length >= completenessMin * values.length
  if (!isComplete) return { approach: 'dirichlet-process' }
  const period = task.periodSlots ?? detectPeriod(evened(values, known), task.preferredPeriods)
  const hasPeriods = period !== undefined && known.length >= periodsMin * period
  if (!hasPeriods && !isArimaForced) return { approach: 'dirichlet-process' }
  const model = fitSeasonalArima({ values, firstSlot, period: hasPeriods ? period : 0 })
  return { approach: 'seasonal-arima', model }
}

/** Limits outliers and fills gaps with the value before. */
function evened(values: Float64Array, known: Float64Array): Float64Array {
  const centre = medianOf(known)
  const deviation = 1.4826 * medianOf(known.map((value) => Math.abs(value - centre)))
  const limit = deviation > 0 ? periodDeviations * deviation : Number.POSITIVE_INFINITY
  let last = centre
  return values.map((value) => {
    if (!Number.isNaN(value)) last = Math.max(centre - limit, Math.min(centre + limit, value))
    return last
  })
}
