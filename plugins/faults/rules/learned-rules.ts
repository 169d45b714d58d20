/**
 * The rules whose thresholds are learned from the stream: spike, noise and step, in the lane of the stream
 * alone and in the lane with neighbours, and bias, gain and drift against the neighbours.
 */
import type { FaultClass, Match } from './finding.ts'
import { createHold, type Hold, takeHold } from './hold.ts'
import {
  type Change,
  type Changes,
  createMovement,
  floorOf,
  type Movement,
  standardLevel,
  takeMovement,
} from './movement.ts'
import { createResidualState, type ResidualState, shapeOf, takeResidual } from './neighbour-rule.ts'
import { createNoiseState, type NoiseState, takeNoise } from './noise-rule.ts'
import { hourOf, type Observed } from './observed.ts'
import { createSpikeState, interruptSpike, type SpikeState, takeSpike } from './spike-rule.ts'
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
  residual: createResidualState(),
  residualHold: createHold(),
  shape: null,
  before: 0,
})

/** The usual sizes are learned before the thresholds, which are in units of them. */
export type Learning = 'nothing' | 'sizes' | 'thresholds' | 'all'

/** Likelihood that a learned rule states: about the rate at which healthy streams exceed its threshold. */
const unusual = 1e-4

/** Samples that calibrate the usual changes before thresholds are learned. */
const calibrating = 48

export function takeLearned(state: LearnedState, observed: Observed, learning: Learning): Match[] {
  const { movement } = state
  const learnsSizes = learning === 'sizes' || learning === 'all'
  const changes = takeMovement(movement, observed, learnsSizes)
  const learns = learning === 'thresholds' || (learning === 'all' && movement.count > calibrating)
  if (changes === undefined) interrupt(state)
  const matches =
    changes === undefined ? [] : movementMatches(state, changes, { time: observed.time, learns })
  const against = residualMatch(state, observed, { learnsSizes, learns })
  state.before = observed.time
  return against === undefined ? matches : [...matches, against]
}

/** Forgets the newest samples: the next one does not follow them. */
export function interruptLearned(state: LearnedState): void {
  state.movement.previous = null
  interrupt(state)
}

function interrupt({ own, joint }: LearnedState): void {
  for (const { spike, step } of [own, joint]) {
    interruptSpike(spike)
    interruptStep(step)
  }
}

interface MovementContext {
  readonly time: number
  readonly learns: boolean
}

function movementMatches(state: LearnedState, changes: Changes, context: MovementContext): Match[] {
  const own = takeLane(state.own, changes.own, context)
  const joint = changes.joint === undefined ? undefined : takeLane(state.joint, changes.joint, context)
  // The lane that finds smaller faults here decides.
  const forSpike = joint !== undefined && joint.spikeBound < own.spikeBound ? joint : own
  const forNoise = joint !== undefined && joint.noiseBound < own.noiseBound ? joint : own
  const matches: Match[] = []
  if (forSpike.spike >= 1) matches.push(anomalyOf('spike', state.before))
  if (forNoise.noise !== undefined) matches.push(anomalyOf('noise', forNoise.noise))
  if (joint === undefined && own.step >= 1) matches.push(anomalyOf('bias', state.before))
  return matches
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
  const begin = takeHold(state.residualHold, statistic, time)
  state.shape = begin === undefined ? null : (state.shape ?? shapeOf(residual))
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
    noise: takeHold(lane.noiseHold, noise, time),
    noiseBound: threshold * change.size,
    step: takeStep(lane.step, change, learns),
  }
}
