/**
 * Runs of the evaluation of fault detection on one series: the detector learns the history and follows the
 * untouched rest once; each run restores the detector as it was before the fault and feeds it the fault
 * instead.
 */
import { defaultDetectionSettings, machineLimits } from '#plugins/faults/detection/detection-settings.ts'
import {
  createStreamDetector,
  type DetectionProfile,
  type Judgement,
  type StreamDetector,
  type StreamSample,
} from '#plugins/faults/detection/stream-detector.ts'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import type { Estimates } from './fault-estimates.ts'
import { type InjectedFault, injectedFaults } from './fault-injection.ts'

export interface FaultSeries {
  readonly slotMs: number
  readonly begin: number
  readonly values: Float64Array
  readonly estimates: Estimates | undefined
  /** Slots of history; faults are injected behind them. */
  readonly known: number
  /** Slots of D, the unit of lengths of faults. */
  readonly day: number
  readonly limits: { readonly min: number; readonly max: number }
  readonly sigma: number
  readonly step: number
}

export interface FaultRun {
  readonly fault: InjectedFault
  /** Samples from the onset to the first new alarm; undefined without one. */
  readonly delay: number | undefined
  readonly isRightClass: boolean
  /** True if the stream entered the state fault where the untouched series does not. */
  readonly becameFault: boolean
  /** True if the fault lasts at least twice as long as an anomaly needs to become a fault. */
  readonly isLasting: boolean
}

export interface SeriesResult {
  /** Alarms on the untouched series. */
  readonly alarms: readonly { readonly class: string; readonly slot: number }[]
  readonly cleanSamples: number
  readonly runs: readonly FaultRun[]
}

export const dayMs = 86_400_000
/** Samples after a fault in which an alarm still counts. */
const after = 5
const attempts = 200

interface PlannedRun {
  readonly fault: InjectedFault
  readonly onset: number
  readonly length: number
  readonly random: () => number
}

export function runSeries(
  series: FaultSeries,
  seeds: { readonly first: number; readonly last: number },
): SeriesResult {
  const { values, known } = series
  const profile: DetectionProfile = {
    intervalMs: series.slotMs,
    periodMs: dayMs,
    ...series.limits,
    anomalies: 'none',
    settings: defaultDetectionSettings,
  }
  const detector = createStreamDetector(profile)
  detector.learn(Array.from({ length: known }, (_, slot) => sampleAt(series, slot, values[slot]!)))
  const planned = plannedRuns(series, seeds)
  const onsets = new Set(planned.map(({ onset }) => onset))
  const saved = new Map<number, ReturnType<StreamDetector['saved']>>()
  const alarms: { class: string; slot: number }[] = []
  const faultSlots = new Set<number>()
  let cleanSamples = 0
  for (let slot = known; slot < values.length; slot++) {
    if (onsets.has(slot)) saved.set(slot, detector.saved())
    const judgement = feed(detector, sampleAt(series, slot, values[slot]!))
    for (const { class: found } of judgement?.begun ?? []) alarms.push({ class: found, slot })
    if (judgement?.state === 'fault') faultSlots.add(slot)
    if (!Number.isNaN(values[slot]!)) cleanSamples++
  }
  const { persistenceSamples } = machineLimits(profile, series.slotMs)
  const runs = planned.map((plan): FaultRun => {
    const copy = createStreamDetector(profile, saved.get(plan.onset))
    const from = plan.onset
    const to = plan.onset + plan.length + after
    const known = new Set(alarms.filter(({ slot }) => slot >= from && slot <= to).map((one) => one.class))
    const outcome = runFault(series, plan, { copy, known, faultSlots })
    return { fault: plan.fault, isLasting: plan.length >= 2 * persistenceSamples, ...outcome }
  })
  return { alarms, cleanSamples, runs }
}

interface RunContext {
  readonly copy: StreamDetector
  /** Classes that the untouched series raises in the same time. */
  readonly known: ReadonlySet<string>
  readonly faultSlots: ReadonlySet<number>
}

function runFault(series: FaultSeries, plan: PlannedRun, { copy, known, faultSlots }: RunContext) {
  const { fault, onset, length } = plan
  let delay: number | undefined
  let isRightClass = false
  let becameFault = false
  for (let index = 0; index <= length + after; index++) {
    const judgement = feed(copy, faultySample(series, plan, index))
    if (judgement?.state === 'fault' && !faultSlots.has(onset + index)) becameFault = true
    const found = judgement?.begun.find((one) => !known.has(one.class))
    if (found === undefined || delay !== undefined) continue
    delay = index
    isRightClass = fault.classes.includes(found.class)
  }
  return { delay, isRightClass, becameFault }
}

function faultySample(series: FaultSeries, { fault, onset, length, random }: PlannedRun, index: number) {
  const { values, limits, sigma, step, slotMs } = series
  const slot = onset + index
  const value = values[slot]!
  if (index >= length) return sampleAt(series, slot, value)
  const faulty = fault.value({ value, last: values[onset - 1]!, index, length, random, sigma, step, limits })
  // Quantities of this kind are not reported beyond their limits, unless that is the fault.
  const reported = fault.isUnlimited === true ? faulty : Math.min(limits.max, Math.max(limits.min, faulty))
  const sample = sampleAt(series, slot, reported)
  return { ...sample, time: sample.time + (fault.timeShift ?? 0) * slotMs }
}

function sampleAt({ begin, slotMs, estimates }: FaultSeries, slot: number, value: number): StreamSample {
  const neighbour = estimates?.[slot]
  return { time: begin + slot * slotMs, value, ...(neighbour !== undefined && { neighbour }) }
}

/** Feeds one slot; in a slot without a value only time passes. */
const feed = (detector: StreamDetector, sample: StreamSample): Judgement | undefined =>
  Number.isNaN(sample.value) ? detector.advance(sample.time) : detector.take(sample)

/** One run per fault and seed, at a random place without gaps. */
function plannedRuns(
  { values, known, day }: FaultSeries,
  { first, last }: { readonly first: number; readonly last: number },
): PlannedRun[] {
  const gapsBefore = new Int32Array(values.length + 1)
  values.forEach((value, slot) => {
    gapsBefore[slot + 1] = gapsBefore[slot]! + Number(Number.isNaN(value))
  })
  const runs: PlannedRun[] = []
  for (let seed = first; seed <= last; seed++)
    for (const [i, fault] of injectedFaults.entries()) {
      const random = createSeededRandom(seed * 1009 + i * 31 + 7)
      const length = fault.length(day)
      for (let attempt = 0; attempt < attempts; attempt++) {
        const onset = known + after + Math.floor(random() * (values.length - known - length - 3 * after))
        if (gapsBefore[onset + length + after + 1]! !== gapsBefore[onset - after]!) continue
        runs.push({ fault, onset, length, random })
        break
      }
    }
  return runs
}
