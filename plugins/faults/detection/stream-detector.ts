/**
 * Fault detection for one stream: combines the rules and the state machine. Everything follows stream time,
 * so a replayed feed gets the verdicts of a live one. Pure: no clock, no I/O; the whole state is one JSON
 * object.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { type ChainOptions, createAnomalyChain } from '#plugins/faults/anomalies/anomaly-chain.ts'
import type { Approach, ChooseApproach } from '#plugins/faults/anomalies/approach.ts'
import type { FaultFinding, Match } from '#plugins/faults/rules/finding.ts'
import { createLearnedState, interruptLearned, takeLearned } from '#plugins/faults/rules/learned-rules.ts'
import type { NeighbourEstimate, Observed } from '#plugins/faults/rules/observed.ts'
import { createRangeState, takeRange } from '#plugins/faults/rules/range-rule.ts'
import { createRateState, takeRate } from '#plugins/faults/rules/rate-rule.ts'
import { createSentinelState, takeSentinel } from '#plugins/faults/rules/sentinel-rule.ts'
import { createStuckState, isSticking, takeStuck } from '#plugins/faults/rules/stuck-rule.ts'
import {
  createTimesState,
  dropoutAt,
  learnedInterval,
  type StreamMoment,
  takeSilence,
  takeTime,
} from '#plugins/faults/rules/times-rule.ts'
import { packedState, unpack } from './compact-state.ts'
import { type DetectionSettings, machineLimits } from './detection-settings.ts'
import { createRecoveryState, type Estimate, estimateAt, learnGood } from './recovery.ts'
import { createFindingsState, takeMatches } from './running-findings.ts'
import { createMachineState, type MachineLimits, type StreamState, takeOpinion } from './state-machine.ts'

export interface DetectionProfile {
  readonly intervalMs?: number
  readonly periodMs?: number
  readonly min?: number
  readonly max?: number
  /** Largest change that the sensor can report, in units per second. */
  readonly maxRate?: number
  readonly settings: DetectionSettings
  /** The detectors of anomalies that no rule describes. Default: `usual`. */
  readonly anomalies?: 'usual' | 'none'
  /** Chooses the approach of the anomaly detectors later. Default: at once. */
  readonly choose?: ChooseApproach | undefined
}

export interface StreamSample extends StreamMoment {
  readonly value: number
  readonly neighbour?: NeighbourEstimate
  /** Finding of a model about the values up to this one. */
  readonly opinion?: Match
}

export interface Judgement {
  readonly state: StreamState
  /** `faulty` for a sample that a definite rule or the state fault covers. */
  readonly verdict: 'ok' | 'faulty'
  /** 0 to 1: probability of such a value on a healthy stream. */
  readonly likelihood: number
  /** New findings, and findings that became definite. */
  readonly begun: readonly FaultFinding[]
  readonly ended: readonly FaultFinding[]
  /**
   * Value that the sensor should have reported; present for a faulty or missing sample if one can be given.
   */
  readonly estimate?: Estimate
}

export interface StreamDetector {
  /** Learns from history in order of time, without verdicts. */
  learn(samples: Iterable<StreamSample>): void
  take(sample: StreamSample): Judgement
  /**
   * Begins new anomaly detectors, since `saved` does not have them. They take the history, in order of time,
   * and replace the present ones at the end.
   */
  recall(): Recall
  /** The approach of the anomaly detectors, and its period in ms if it has one. */
  approach(): { readonly method: Approach | undefined; readonly periodMs: number | undefined }
  /** Reports that the stream was silent until this time; undefined if that says nothing. */
  advance(silence: SilentMoment): Judgement | undefined
  /** Time at which `advance` may find a dropout, if the gateway is never down; undefined during one. */
  nextAt(): number | undefined
  /** While a dropout lasts: the estimate for a missing sample. */
  missing(silence: SilentMoment): Estimate | undefined
  /** Stated or learned interval of the stream, ms. */
  intervalMs(): number | undefined
  /** The state as JSON of about 2 KB, from which `createStreamDetector` goes on with the same verdicts. */
  saved(): JsonObject
}

/** New anomaly detectors that take the history without verdicts. */
export interface Recall {
  take(samples: Iterable<Pick<StreamSample, 'time' | 'value'>>): void
  /** They judge from now on. Samples that were judged since the history are missing slots to them. */
  end(): void
}

/** A time without a sample, and what the neighbours report then. */
export type SilentMoment = StreamMoment & Pick<StreamSample, 'neighbour'>

/** Version of the saved form; increases when a rule changes its state. */
export const savedVersion = 2

const createDetectorState = () => ({
  times: createTimesState(),
  sentinel: createSentinelState(),
  range: createRangeState(),
  rate: createRateState(),
  stuck: createStuckState(),
  learned: createLearnedState(),
  /** Intervals whose samples the learned rules did not see. */
  withheld: { slots: 0 },
  machine: createMachineState(),
  findings: createFindingsState(),
  recovery: createRecoveryState(),
})

/** A sample or a silence to be judged. */
interface Judged {
  readonly time: number
  readonly neighbour: NeighbourEstimate | undefined
  /** Likelihood by the anomaly detectors. */
  readonly likelihood?: number
  /** The judgement of the silence before it. */
  readonly before?: Judgement | undefined
}

type DetectorState = ReturnType<typeof createDetectorState>

/** Samples of history that a detector learns from, at least. */
const historyMax = 20_000

/** Score from which a value prolongs an anomaly: one in three hundred. */
const suspiciousScore = 2.5
/** Missing slots that the anomaly detectors see of a gap, at most. */
const missingMax = 100

function chainOptions({ intervalMs, periodMs, choose }: DetectionProfile): ChainOptions {
  if (intervalMs === undefined || periodMs === undefined) return { choose }
  return { choose, periodSlots: Math.round(periodMs / intervalMs) }
}

/** @throws for a saved state of another version or shape */
function restored(saved: JsonObject | undefined): DetectorState {
  const state = createDetectorState()
  if (saved === undefined || (saved['version'] === savedVersion && unpack(state, saved['leaves'])))
    return state
  throw new GatewayError('store.failed', 'the saved state of the detector has another version or shape')
}

/** @throws for a saved state of another version or shape */
export function createStreamDetector(profile: DetectionProfile, saved?: JsonObject): StreamDetector {
  const { settings } = profile
  const state = restored(saved)
  const limits = {
    ...(profile.min !== undefined && { min: profile.min }),
    ...(profile.max !== undefined && { max: profile.max }),
  }
  const times = { intervalMs: profile.intervalMs, dropoutSlots: settings.dropoutSlots }

  const newChain = () =>
    profile.anomalies === 'none' ? undefined : createAnomalyChain(chainOptions(profile))
  let chain = newChain()
  const interval = (): number | undefined => learnedInterval(state.times, times)
  let counts = { interval: interval(), limits: machineLimits(profile, interval()) }

  /** The counts of the state machine; they change only with the interval. */
  function machineCounts(): MachineLimits {
    const now = interval()
    if (now !== counts.interval) counts = { interval: now, limits: machineLimits(profile, now) }
    return counts.limits
  }

  /**
   * Lets the findings and the state machine take what matches now, and estimates a faulty or missing value.
   */
  function judge({ time, neighbour, likelihood = 1, before }: Judged, matches: readonly Match[]): Judgement {
    const { begun, ended } = takeMatches(state.findings, matches, time)
    const isDefinite = matches.some(({ kind }) => kind === 'definite')
    const opinion = isDefinite ? 'definite' : matches.length > 0 ? 'alarm' : 'good'
    const now = takeOpinion(state.machine, opinion, machineCounts())
    const verdict = isDefinite || now === 'fault' ? 'faulty' : 'ok'
    const judgement = {
      state: now,
      verdict,
      likelihood: matches.reduce((least, match) => Math.min(least, match.likelihood), likelihood),
      begun: before === undefined ? begun : [...before.begun, ...begun],
      ended: before === undefined ? ended : [...before.ended, ...ended],
    } as const
    if (verdict === 'ok') return judgement
    const estimate = estimateAt(state.recovery, { time, neighbour }, interval())
    return estimate === undefined ? judgement : { ...judgement, estimate }
  }

  /** The first definite rule about single values that matches. */
  function ofSingleValue(observed: Observed): Match | undefined {
    const { maxRate } = profile
    return (
      takeSentinel(state.sentinel, observed) ??
      takeRange(state.range, observed, limits) ??
      (maxRate === undefined ? undefined : takeRate(state.rate, observed, maxRate))
    )
  }

  /**
   * All rules that match a sample. A definite rule about single values explains it: the learned rules do
   * not see it.
   */
  function matchesOf(observed: Observed): Match[] {
    const explained = ofSingleValue(observed)
    if (explained !== undefined) {
      state.withheld.slots += observed.slots
      return [explained]
    }
    const stuck = takeStuck(state.stuck, observed, settings)
    const isUndecided = isSticking(state.stuck, settings)
    const slots = observed.slots + state.withheld.slots
    state.withheld.slots = 0
    const seen = slots === observed.slots ? observed : { ...observed, slots }
    // A course that lasts without being definite becomes usual; else a seldom one would stay a fault.
    const inFault = state.machine.state === 'fault' ? 'alone' : 'all'
    const learned = takeLearned(state.learned, seen, stuck === undefined ? inFault : 'nothing')
    if (stuck !== undefined) return [stuck]
    return isUndecided ? [] : learned
  }

  /** Lets anomaly detectors take slots without a value. */
  function skip(of: typeof chain, slots: number): void {
    for (let i = 0; i < Math.min(slots, missingMax); i++) of?.take(undefined, false)
  }

  /**
   * Adds the anomaly detectors' opinion. An alarm begins an anomaly; after it, unlikely values prolong it.
   */
  function withAnomaly(observed: Observed, matches: Match[]): { matches: Match[]; likelihood: number } {
    if (chain === undefined) return { matches, likelihood: 1 }
    skip(chain, observed.slots - 1)
    const { state: now } = state.machine
    const value = Number.isFinite(observed.value) ? observed.value : undefined
    const isDefinite = matches.some(({ kind }) => kind === 'definite')
    const { isAlarm, score, likelihood, method } = chain.take(value, !isDefinite)
    const isProlonged = score >= suspiciousScore && now !== 'normal'
    if (matches.length > 0 || !(isAlarm || isProlonged)) return { matches, likelihood }
    const found = { class: 'anomaly', kind: 'anomaly', begin: observed.time } as const
    return { matches: [{ ...found, likelihood, method: `model:${method}` }], likelihood }
  }

  /** The judgement without a new opinion, for a sample that says nothing new. */
  const unchanged = (): Judgement => ({
    state: state.machine.state,
    verdict: state.machine.state === 'fault' ? 'faulty' : 'ok',
    likelihood: 1,
    begun: [],
    ended: [],
  })

  function take(sample: StreamSample): Judgement {
    const { time, value, neighbour, opinion } = sample
    if (!Number.isFinite(time)) return unchanged()
    const silence = advance({ time, downMs: sample.downMs })
    const order = takeTime(state.times, sample, times)
    if (order.kind === 'repeated') return unchanged()
    if (order.kind === 'clock') return judge({ time, neighbour }, [order.match])
    const observed: Observed = { time, value, slots: order.slots, neighbour }
    const ruled = matchesOf(observed)
    // A definite rule explains what the model sees.
    const isExplained = ruled.some(({ kind }) => kind === 'definite')
    if (opinion !== undefined && !isExplained) ruled.push(opinion)
    const { matches, likelihood } = withAnomaly(observed, ruled)
    const judgement = judge({ time, neighbour, likelihood, before: silence }, matches)
    if (matches.length === 0 && judgement.verdict === 'ok') learnGood(state.recovery, observed)
    return judgement
  }

  function advance({ time, downMs, neighbour }: SilentMoment): Judgement | undefined {
    const { silentSince } = state.times
    const match = takeSilence(state.times, { time, downMs }, times)
    if (match === undefined || silentSince !== null) return undefined
    return judge({ time, neighbour }, [match])
  }

  function learn(samples: Iterable<StreamSample>): void {
    const observed: Observed[] = []
    for (const { time, value, neighbour } of samples) {
      if (!Number.isFinite(time) || !Number.isFinite(value)) continue
      const order = takeTime(state.times, { time }, times)
      if (order.kind !== 'next') continue
      observed.push({ time, value, slots: order.slots, neighbour })
      if (observed.length > 2 * historyMax) observed.splice(0, historyMax)
    }
    for (const one of observed) {
      takeSentinel(state.sentinel, one)
      takeStuck(state.stuck, one, undefined)
      takeLearned(state.learned, one, 'sizes')
      learnGood(state.recovery, one)
      chain?.take(one.value, true)
    }
    // The second pass learns thresholds in units of the sizes that the first one found.
    interruptLearned(state.learned)
    for (const one of observed) takeLearned(state.learned, one, 'thresholds')
  }

  function recall(): Recall {
    const next = newChain()
    let before: number | undefined
    /** Slots from the newest sample of the history to a time. */
    const slotsTo = (time: number): number => {
      const slotMs = interval()
      return before === undefined || slotMs === undefined ? 0 : Math.round((time - before) / slotMs)
    }
    return {
      take(samples) {
        for (const { time, value } of samples) {
          skip(next, slotsTo(time) - 1)
          next?.take(Number.isFinite(value) ? value : undefined, true)
          before = time
        }
      },
      end() {
        if (state.times.time !== null) skip(next, slotsTo(state.times.time))
        chain = next
      },
    }
  }

  function approach() {
    const { method, periodSlots } = chain?.approach() ?? {}
    const slotMs = interval()
    const periodMs = periodSlots === undefined || slotMs === undefined ? undefined : periodSlots * slotMs
    return { method, periodMs }
  }

  return Object.freeze({
    learn,
    take,
    recall,
    approach,
    advance,
    nextAt: () => dropoutAt(state.times, times),
    missing: ({ time, neighbour }: SilentMoment) =>
      state.times.silentSince === null
        ? undefined
        : estimateAt(state.recovery, { time, neighbour }, interval()),
    intervalMs: interval,
    saved: () => ({ version: savedVersion, leaves: packedState(state) }),
  })
}
