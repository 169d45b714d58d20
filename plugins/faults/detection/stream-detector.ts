/**
 * Fault detection for one stream: combines the rules and the state machine. Everything follows stream time,
 * so a replayed feed gets the verdicts of a live one. Pure: no clock, no I/O; the whole state is one JSON
 * object.
 */
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { FaultClass, FaultFinding, Match } from '#plugins/faults/rules/finding.ts'
import type { NeighbourEstimate, Observed } from '#plugins/faults/rules/observed.ts'
import { createRangeState, takeRange } from '#plugins/faults/rules/range-rule.ts'
import { createStuckState, takeStuck } from '#plugins/faults/rules/stuck-rule.ts'
import {
  createTimesState,
  dropoutAt,
  intervalOf,
  takeSilence,
  takeTime,
} from '#plugins/faults/rules/times-rule.ts'
import { type DetectionSettings, machineLimits } from './detection-settings.ts'
import { createMachineState, type StreamState, takeOpinion } from './state-machine.ts'

export interface DetectionProfile {
  readonly intervalMs?: number
  readonly periodMs?: number
  readonly min?: number
  readonly max?: number
  readonly settings: DetectionSettings
}

export interface StreamSample {
  /** observedAt in ms. */
  readonly time: number
  readonly value: number
  readonly neighbour?: NeighbourEstimate
}

export interface Estimate {
  readonly value: number
  /** Standard error. */
  readonly error: number
  readonly method: string
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
  /** Reports that the stream was silent until this time; undefined if that says nothing. */
  advance(time: number): Judgement | undefined
  /** Time at which `advance` may find a dropout. */
  nextAt(): number | undefined
  /** The state as JSON of about 2 KB, from which `createStreamDetector` goes on with the same verdicts. */
  saved(): JsonObject
}

interface DetectorState {
  times: ReturnType<typeof createTimesState>
  range: ReturnType<typeof createRangeState>
  stuck: ReturnType<typeof createStuckState>
  machine: ReturnType<typeof createMachineState>
  /** Findings that last, with the newest time at which their rule matched. */
  running: { match: Match; last: number }[]
  value: number | null
}

const createDetectorState = (): DetectorState => ({
  times: createTimesState(),
  range: createRangeState(),
  stuck: createStuckState(),
  machine: createMachineState(),
  running: [],
  value: null,
})

const methodOf = (found: FaultClass): string => `rule:${found}`

const toFinding = (match: Match, end?: number): FaultFinding => ({
  class: match.class,
  kind: match.kind,
  begin: match.begin,
  likelihood: match.likelihood,
  method: methodOf(match.class),
  ...(end !== undefined && { end }),
})

export function createStreamDetector(profile: DetectionProfile, saved?: JsonObject): StreamDetector {
  const { settings } = profile
  const state =
    saved === undefined ? createDetectorState() : (structuredClone(saved) as unknown as DetectorState)
  const times = { intervalMs: profile.intervalMs, dropoutSlots: settings.dropoutSlots }

  /** Compares what matches now with the findings that last, and lets the state machine decide. */
  function judge(time: number, matches: readonly Match[]): Judgement {
    const begun: FaultFinding[] = []
    for (const match of matches) {
      const running = state.running.find((one) => one.match.class === match.class)
      if (running === undefined) {
        state.running.push({ match, last: time })
        begun.push(toFinding(match))
        continue
      }
      running.last = time
      if (running.match.kind === match.kind || match.kind === 'anomaly') continue
      running.match = { ...match, begin: running.match.begin }
      begun.push(toFinding(running.match))
    }
    const over = state.running.filter(({ match }) => !matches.some((one) => one.class === match.class))
    state.running = state.running.filter((one) => !over.includes(one))
    const isDefinite = matches.some(({ kind }) => kind === 'definite')
    const opinion = isDefinite ? 'definite' : matches.length > 0 ? 'alarm' : 'good'
    const now = takeOpinion(state.machine, opinion, machineLimits(profile, intervalOf(state.times, times)))
    const verdict = isDefinite || now === 'fault' ? 'faulty' : 'ok'
    return {
      state: now,
      verdict,
      likelihood: Math.min(1, ...matches.map(({ likelihood }) => likelihood)),
      begun,
      ended: over.map(({ match, last }) => toFinding(match, match.class === 'dropout' ? time : last)),
      ...(verdict === 'faulty' && estimateOf(undefined)),
    }
  }

  function estimateOf(neighbour: NeighbourEstimate | undefined): { estimate?: Estimate } {
    if (neighbour !== undefined)
      return { estimate: { value: neighbour.value, error: neighbour.error, method: 'neighbours' } }
    return {}
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
    const { time, value, neighbour } = sample
    if (!Number.isFinite(time)) return unchanged()
    const silence = advance(time)
    const order = takeTime(state.times, time, times)
    if (order.kind === 'repeated') return unchanged()
    if (order.kind === 'clock') return judge(time, [order.match])
    const observed: Observed = { time, value, slots: order.slots, neighbour }
    const matches = Number.isFinite(value)
      ? [
          takeRange(state.range, observed, {
            ...(profile.min !== undefined && { min: profile.min }),
            ...(profile.max !== undefined && { max: profile.max }),
          }),
          takeStuck(state.stuck, observed, settings),
        ]
      : [{ class: 'sentinel', kind: 'definite', begin: time, likelihood: 0 } as const]
    const judgement = judge(
      time,
      matches.filter((match) => match !== undefined),
    )
    const estimate = judgement.verdict === 'faulty' ? estimateOf(neighbour) : {}
    return { ...judgement, ...estimate, begun: [...(silence?.begun ?? []), ...judgement.begun] }
  }

  function advance(time: number): Judgement | undefined {
    const { silentSince } = state.times
    const match = takeSilence(state.times, time, times)
    if (match === undefined || silentSince !== null) return undefined
    return judge(time, [match])
  }

  function learn(samples: Iterable<StreamSample>): void {
    for (const { time, value, neighbour } of samples) {
      if (!Number.isFinite(time) || !Number.isFinite(value)) continue
      const order = takeTime(state.times, time, times)
      if (order.kind === 'next')
        takeStuck(state.stuck, { time, value, slots: order.slots, neighbour }, undefined)
    }
  }

  return Object.freeze({
    learn,
    take,
    advance,
    nextAt: () => dropoutAt(state.times, times),
    saved: () => structuredClone(state) as unknown as JsonObject,
  })
}
