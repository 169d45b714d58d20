/** The series into which the evaluation of fault detection injects faults. */
import { estimatesOf } from './fault-estimates.ts'
import { predictionErrors, robustDeviation } from './fault-injection.ts'
import { dayMs, type FaultSeries } from './fault-runs.ts'
import type { ResultCache } from './result-cache.ts'
import type { SensorSet } from './sensor-sets.ts'

export interface FaultSet {
  /** The name of its sensor set begins with it. */
  readonly word: string
  /** Every so many sensors are used. */
  readonly every: number
  /** The part of the time that is history. */
  readonly share: number
  /** Slots of D, the unit of lengths of faults. */
  readonly day: number
  /** Limits that a data sheet states. */
  readonly limits: { readonly min: number; readonly max: number }
  /** Per 1,000 samples. */
  readonly falseAlarmsMax: number
}

const air = { every: 1, share: 0.6, day: 24, falseAlarmsMax: 1 }

export const faultSets: readonly FaultSet[] = [
  { ...air, word: 'PM2.5', limits: { min: 0, max: 1000 } },
  { ...air, word: 'NO2', limits: { min: 0, max: 500 } },
  { ...air, word: 'O3', limits: { min: 0, max: 1200 } },
  { ...air, word: 'temperature', limits: { min: -40, max: 125 } },
  { word: 'speed', every: 4, share: 0.64, day: 36, limits: { min: 0, max: 150 }, falseAlarmsMax: 3 },
]

/** Indices of the sensors whose series are used. */
export const seriesOf = ({ every }: FaultSet, { sensors }: SensorSet): number[] =>
  [...sensors.keys()].filter((index) => index % every === 0)

export async function faultSeries(
  of: FaultSet,
  set: SensorSet,
  { index, cache }: { readonly index: number; readonly cache: ResultCache },
): Promise<FaultSeries> {
  const target = set.sensors[index]!
  const known = Math.floor(target.values.length * of.share)
  const history = target.values.subarray(0, known)
  return {
    slotMs: set.slotMs,
    begin: set.begin,
    values: target.values,
    estimates: await cache.resultOf([set, index, known], async () => estimatesOf(set, target, known)),
    known,
    day: of.day,
    limits: of.limits,
    sigma: robustDeviation([...history].filter((value) => !Number.isNaN(value))),
    step: robustDeviation(predictionErrors(history, Math.round(dayMs / set.slotMs))),
  }
}
