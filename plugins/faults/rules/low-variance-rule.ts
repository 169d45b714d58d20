/**
 * Low variance: the stream still changes, but far less than it ever did, like a sensor that is almost stuck.
 * The statistic is the usual change by the mean change of the newest samples. Windows of mostly equal values
 * are left to the stuck rule. Neighbours that became calm, too, show that the environment did.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import type { Match } from './finding.ts'
import { createHold, type Hold, takeHold } from './hold.ts'
import { addNewest } from './newest-values.ts'

const windowSamples = 12
/** The window changes at most by this part of the usual change: its variance is 1 % of the usual one. */
const calmShare = 0.1
/** Part by which the threshold exceeds the calmest windows of the history. */
const margin = 1.7
/** Equal pairs of a window from which it says nothing about small changes. */
const equalMax = 6
const statisticMax = 1000
/** Neighbours whose changes are this part of the usual change of the stream are not calm. */
const liveShare = 0.3
/** Time for which it must last: the environment may be calm for a while. */
const lastingMs = 3 * 3_600_000

export interface LowVarianceState {
  /** The newest changes in usual changes, and those of the neighbours' estimate; without one 1. */
  changes: number[]
  neighbours: number[]
  extremes: Extremes
  hold: Hold
}

export const createLowVarianceState = (): LowVarianceState => ({
  changes: [],
  neighbours: [],
  extremes: createExtremes(),
  hold: createHold(),
})

/** A change from one sample to the next, as a part of the usual change. */
export interface RelativeChange {
  readonly change: number
  /** Change of the neighbours' estimate; undefined without one. */
  readonly neighbour: number | undefined
  readonly time: number
}

/** Probability that it states: about the rate at which healthy streams exceed its threshold. */
const likelihood = 1e-4

export function takeLowVariance(
  state: LowVarianceState,
  { change, neighbour, time }: RelativeChange,
  learns: boolean,
): Match | undefined {
  const { changes, neighbours, extremes, hold } = state
  addNewest(changes, change, windowSamples)
  addNewest(neighbours, neighbour ?? liveShare, windowSamples)
  if (changes.length < windowSamples) return undefined
  let sum = 0
  let neighbourSum = 0
  let equal = 0
  for (let i = 0; i < windowSamples; i++) {
    sum += changes[i]!
    neighbourSum += neighbours[i]!
    if (changes[i] === 0) equal++
  }
  const life = Math.min(1, neighbourSum / (liveShare * windowSamples))
  const calm = equal >= equalMax ? 0 : Math.min(statisticMax, (life * windowSamples) / sum)
  const threshold = Math.max(1 / calmShare, margin * thresholdOf(extremes))
  if (learns) learnExtreme(extremes, Math.min(calm, threshold))
  const begin = takeHold(hold, { statistic: calm / threshold, time })
  if (begin === undefined || time - begin < lastingMs) return undefined
  return { class: 'low-variance', kind: 'definite', begin, likelihood }
}

/** Forgets the newest changes: the next one does not follow them. */
export function interruptLowVariance(state: LowVarianceState): void {
  state.changes.length = 0
  state.neighbours.length = 0
}
