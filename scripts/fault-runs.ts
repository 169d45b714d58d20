/**
 * Runs of the evaluation of fault detection on one series: the detector learns the history and follows the
 * untouched rest once; each run restores the detector as it was before the fault and feeds it the fault
 * instead. Runs go on side by side, so that a model judges many of them in one call.
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
import { type Follower, judged } from './fault-followers.ts'
import { type InjectedFault, injectedFaults } from './fault-injection.ts'
import { copiedAdvice, createAdvice, type FaultModel } from './fault-opinions.ts'

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
  /** Name of the injected fault. */
  readonly fault: string
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

export interface SeedRange {
  readonly first: number
  readonly last: number
}

export const dayMs = 86_400_000
/** Samples after a fault in which an alarm still counts. */
const after = 5
const attempts = 200
/** Runs that go on side by side. */
const batchRuns = 256

interface PlannedRun {
  readonly fault: InjectedFault
  readonly onset: number
  readonly length: number
  readonly random: () => number
}

interface Untouched {
  readonly alarms: readonly { readonly class: string; readonly slot: number }[]
  readonly cleanSamples: number
  readonly faultSlots: ReadonlySet<number>
  /** The state before the sample of a slot, for each onset. */
  readonly saved: ReadonlyMap<number, Pick<Follower, 'advice'> & { readonly state: SavedState }>
}

type SavedState = ReturnType<StreamDetector['saved']>

export interface RunOptions {
  readonly seeds: SeedRange
  readonly model: FaultModel | undefined
}

export async function runSeries(series: FaultSeries, { seeds, model }: RunOptions): Promise<SeriesResult> {
  const profile: DetectionProfile = {
    intervalMs: series.slotMs,
    periodMs: dayMs,
    ...series.limits,
    anomalies: 'none',
    settings: defaultDetectionSettings,
  }
  const planned = plannedRuns(series, seeds)
  const onsets = new Set(planned.map(({ onset }) => onset))
  const untouched = await followUntouched(series, { profile, onsets, model })
  const { persistenceSamples } = machineLimits(profile, series.slotMs)
  const runs: FaultRun[] = []
  for (let from = 0; from < planned.length; from += batchRuns) {
    const batch = planned.slice(from, from + batchRuns).map((plan): RunningFault => {
      const { state, advice } = untouched.saved.get(plan.onset)!
      const follower = {
        detector: createStreamDetector(profile, state),
        advice: advice && copiedAdvice(advice),
      }
      return runningFault(plan, follower, untouched)
    })
    await runBatch(series, batch, model)
    runs.push(
      ...batch.map(({ plan, delay, isRightClass, becameFault }) => ({
        fault: plan.fault.name,
        isLasting: plan.length >= 2 * persistenceSamples,
        delay,
        isRightClass,
        becameFault,
      })),
    )
  }
  const { alarms, cleanSamples } = untouched
  return { alarms, cleanSamples, runs }
}

interface Following {
  readonly profile: DetectionProfile
  readonly onsets: ReadonlySet<number>
  readonly model: FaultModel | undefined
}

/** Learns the history and judges the untouched rest. */
async function followUntouched(
  series: FaultSeries,
  { profile, onsets, model }: Following,
): Promise<Untouched> {
  const { values, known, slotMs } = series
  const detector = createStreamDetector(profile)
  const history = Array.from({ length: known }, (_, slot) => sampleAt(series, slot, values[slot]!))
  detector.learn(history)
  const advice = model === undefined ? undefined : createAdvice(history)
  const saved = new Map<number, Pick<Follower, 'advice'> & { readonly state: SavedState }>()
  const alarms: { class: string; slot: number }[] = []
  const faultSlots = new Set<number>()
  let cleanSamples = 0
  for (let slot = known; slot < values.length; slot++) {
    if (onsets.has(slot)) saved.set(slot, { state: detector.saved(), advice: advice && copiedAdvice(advice) })
    const [judgement] = await judged([{ detector, advice }], {
      samples: [sampleAt(series, slot, values[slot]!)],
      model,
      slotMs,
    })
    for (const { class: found } of judgement?.begun ?? []) alarms.push({ class: found, slot })
    if (judgement?.state === 'fault') faultSlots.add(slot)
    if (!Number.isNaN(values[slot]!)) cleanSamples++
  }
  return { alarms, cleanSamples, faultSlots, saved }
}

interface RunningFault {
  readonly plan: PlannedRun
  readonly follower: Follower
  /** Classes that the untouched series raises in the same time. */
  readonly known: ReadonlySet<string>
  readonly faultSlots: ReadonlySet<number>
  delay: number | undefined
  isRightClass: boolean
  becameFault: boolean
}

function runningFault(plan: PlannedRun, follower: Follower, { alarms, faultSlots }: Untouched): RunningFault {
  const to = plan.onset + plan.length + after
  const known = new Set(alarms.filter(({ slot }) => slot >= plan.onset && slot <= to).map((one) => one.class))
  return { plan, follower, known, faultSlots, delay: undefined, isRightClass: false, becameFault: false }
}

/** Feeds each run its fault, sample by sample. */
async function runBatch(
  series: FaultSeries,
  batch: readonly RunningFault[],
  model: FaultModel | undefined,
): Promise<void> {
  const { slotMs } = series
  for (let index = 0, active = batch; active.length > 0; index++) {
    const judgements = await judged(
      active.map(({ follower }) => follower),
      { samples: active.map(({ plan }) => faultySample(series, plan, index)), model, slotMs },
    )
    active.forEach((run, i) => {
      noteRun(run, index, judgements[i])
    })
    active = active.filter(({ plan }) => index < plan.length + after)
  }
}

function noteRun(run: RunningFault, index: number, judgement: Judgement | undefined): void {
  const { plan, known, faultSlots } = run
  if (judgement?.state === 'fault' && !faultSlots.has(plan.onset + index)) run.becameFault = true
  const found = judgement?.begun.find((one) => !known.has(one.class))
  if (found === undefined || run.delay !== undefined) return
  run.delay = index
  run.isRightClass = plan.fault.classes.includes(found.class)
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

/** One run per fault and seed, at a random place without gaps. */
function plannedRuns({ values, known, day }: FaultSeries, { first, last }: SeedRange): PlannedRun[] {
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
