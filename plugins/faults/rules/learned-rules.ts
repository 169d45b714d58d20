/**
 * The rules whose thresholds are learned from the stream. Spike, noise and step have two lanes: by the stream
 * alone, and with neighbours. Bias, gain and drift are against the neighbours. Low variance and rate follow.
 */
import type { FaultClass, Match } from './finding.ts'
import { createHold, type Hold, takeHold } from './hold.ts'
import {
  createLowVarianceState,
  interruptLowVariance,
  type LowVarianceState,
  takeLowVariance,
} from './low-variance-rule.ts'
import {
  type Change,
  type Changes,
  createMovement,
  floorOf,
  type Movement,
  standardLevel,
  takeMovement,
} from './movement.ts'
import { createResidualState, type ResidualState, residualShape, takeResidual } from './neighbour-rule.ts'
import { createNoiseState, type NoiseState, noiseEndShare, takeNoise } from './noise-rule.ts'
import { hourOf, type Observed } from './observed.ts'
import { createUsualRate, interruptUsualRate, takeUsualRate, type UsualRate } from './rate-rule.ts'
import {
  createSpikeDay,
  createSpikeState,
  interruptSpike,
  isFrequentSpike,
  type SpikeDay,
  type SpikeState,
  takeSpike,
} from './spike-rule.ts'
import { createStepState, interruptStep, type StepState, takeStep } from './step-rule.ts'

interface Lane {
  spike: SpikeState
  noise: NoiseState
  noiseHold: Hold
  step: StepState
}

export interface LearnedState {
  movement: Movement
  own: Lane
  joint: Lane
  spikes: SpikeDay
  lowVariance: LowVarianceState
  rate: UsualRate
  residual: ResidualState
  residualHold: Hold
  /** Class of the bias, gain or drift that lasts. */
  shape: FaultClass | null
  /** Time of the previous sample. */
  before: number
}

const createLane = (): Lane => ({
  spike: createSpikeState(),
  noise: createNoiseState(),
  noiseHold: createHold(),
  step: createStepState(),
})

export const createLearnedState = (): LearnedState => ({
  movement: createMovement(),
  own: createLane(),
  joint: createLane(),
  spikes: createSpikeDay(),
  lowVariance: createLowVarianceState(),
  rate: createUsualRate(),
  residual: createResidualState(),
  residualHold: createHold(),
  shape: null,
  before: 0,
})

/**
 * The usual sizes are learned before the thresholds, which are in units of them. `alone`: all but the
 * difference from the neighbours, which is definite.
 */
export type Learning = 'nothing' | 'sizes' | 'thresholds' | 'all' | 'alone'

/** Likelihood that a learned rule states: about the rate at which healthy streams exceed its threshold. */
const unusual = 1e-4

/** Samples that calibrate the usual changes before thresholds are learned. */
const calibrating = 48

export function takeLearned(state: LearnedState, observed: Observed, learning: Learning): Match[] {
  const { movement } = state
  const learnsBoth = learning === 'all' || learning === 'alone'
  const learnsSizes = learning === 'sizes' || learnsBoth
  const changes = takeMovement(movement, observed, learnsSizes)
  const learns = learning === 'thresholds' || (learnsBoth && movement.count > calibrating)
  if (changes === undefined) interrupt(state)
  const matches = changes === undefined ? [] : movementMatches(state, changes, { observed, learns })
  const isAlone = learning === 'alone'
  const against = residualMatch(state, observed, {
    learnsSizes: learnsSizes && !isAlone,
    learns: learns && !isAlone,
  })
  state.before = observed.time
  return against === undefined ? matches : [...matches, against]
}

/** Forgets the newest samples: the next one does not follow them. */
export function interruptLearned(state: LearnedState): void {
  state.movement.previous = null
  interrupt(state)
}

function interrupt({ own, joint, lowVariance, rate }: LearnedState): void {
  interruptLowVariance(lowVariance)
  interruptUsualRate(rate)
  for (const { spike, step } of [own, joint]) {
    interruptSpike(spike)
    interruptStep(step)
  }
}

interface MovementContext {
  readonly observed: Observed
  readonly learns: boolean
}

function movementMatches(state: LearnedState, changes: Changes, context: MovementContext): Match[] {
  const { observed, learns } = context
  const { time } = observed
  const own = takeLane(state.own, changes.own, { time, learns })
  const joint =
    changes.joint === undefined ? undefined : takeLane(state.joint, changes.joint, { time, learns })
  // The lane that finds smaller faults here decides.
  const forSpike = joint !== undefined && joint.spikeBound < own.spikeBound ? joint : own
  const forNoise = joint !== undefined && joint.noiseBound < own.noiseBound ? joint : own
  const matches: Match[] = []
  if (forSpike.spike >= 1) {
    const isFrequent = isFrequentSpike(state.spikes, state.before, slotMsOf(state, observed))
    matches.push({ ...anomalyOf('spike', state.before), ...(isFrequent && { kind: 'definite' }) })
  }
  if (forNoise.noise !== undefined) matches.push(anomalyOf('noise', forNoise.noise))
  if (joint === undefined && own.step >= 1) matches.push(anomalyOf('bias', state.before))
  const calm = takeLowVariance(state.lowVariance, relativeChange(changes, time), learns)
  if (calm !== undefined) matches.push(calm)
  const jumped = usualRate(state, changes, context)
  if (jumped !== undefined) matches.push(anomalyOf('rate', jumped))
  return matches
}

const slotMsOf = ({ before }: LearnedState, { time, slots }: Observed): number => (time - before) / slots

const relativeChange = ({ change, moved, own }: Changes, time: number) => ({
  change: Math.abs(change) / own.size,
  neighbour: moved === undefined ? undefined : Math.abs(moved) / own.size,
  time,
})

/** When an impossible course began. Neighbours that followed it show that it is possible. */
function usualRate(
  state: LearnedState,
  { change }: Changes,
  { observed, learns }: MovementContext,
): number | undefined {
  const { time, value, slots, neighbour } = observed
  const { rate } = state
  const from = rate.rate.value
  const slotMs = slotMsOf(state, observed)
  const begin = takeUsualRate(rate, { time, value, change, slots, slotMs }, learns)
  const isFollowed =
    neighbour !== undefined &&
    from !== null &&
    Math.abs(neighbour.value - value) < Math.abs(neighbour.value - from)
  return isFollowed ? undefined : begin
}

const anomalyOf = (found: FaultClass, begin: number): Match => ({
  class: found,
  kind: 'anomaly',
  begin,
  likelihood: unusual,
})

/** Bias, gain or drift against the neighbours. */
function residualMatch(
  state: LearnedState,
  { time, value, neighbour }: Observed,
  { learnsSizes, learns }: { learnsSizes: boolean; learns: boolean },
): Match | undefined {
  if (neighbour === undefined) return undefined
  const { movement, residual } = state
  const level = standardLevel(movement, neighbour.value)
  const place = { level, hour: hourOf(time), floor: floorOf(movement) }
  const sample = { value, estimate: neighbour.value }
  const statistic = takeResidual(residual, sample, { learnsSize: learnsSizes, learns, place })
  const begin = takeHold(state.residualHold, { statistic, time })
  state.shape = begin === undefined ? null : (state.shape ?? residualShape(residual))
  if (begin === undefined || state.shape === null) return undefined
  const kind = neighbour.areAgreeing ? 'definite' : 'anomaly'
  return { class: state.shape, kind, begin, likelihood: unusual }
}

function takeLane(lane: Lane, change: Change, { time, learns }: { time: number; learns: boolean }) {
  const { turn, spike, bound } = takeSpike(lane.spike, change, learns)
  const { noise, threshold } = takeNoise(lane.noise, turn, learns)
  return {
    spike,
    spikeBound: bound,
    noise: takeHold(lane.noiseHold, { statistic: noise, time, endShare: noiseEndShare }),
    noiseBound: threshold * change.size,
    step: takeStep(lane.step, change, learns),
  }
}
