/**
 * Stuck: the same value again and again. How often a healthy stream repeats a value is learned, per hour of
 * the day once there are enough samples: a night or a physical floor has long runs by nature. A stream that
 * never varied is not called stuck, unless its neighbours vary.
 */
import type { Match } from './finding.ts'
import { hourOf, type NeighbourEstimate, type Observed } from './observed.ts'

const hours = 24
/** Runs up to this length are ordinary: they do not move the limit. */
const ordinaryRun = 4
const historySamples = 100
/** Changes of value from which a stream counts as varying. */
const variedChanges = 4
/** Pairs of samples from which an hour of the day has statistics of its own. */
const pairsOfHour = 200
/** Probability at which a run that is longer than all before is no chance. */
const chance = 1e-5
/** Weight of a new pair in the recent share of equal pairs. */
const recentWeight = 1 / 16
/** Pairs of an hour at which older ones begin to count half; a longer run counts as one of this length. */
const pairsMax = 20_000

export interface StuckState {
  value: number | null
  /** Samples of the present run of equal values, its first and its last time. */
  run: number
  begin: number
  last: number
  /** True if the present run was called stuck: it is not learned. */
  isStuck: boolean
  count: number
  changes: number
  /** Recent share of equal pairs when the present run began. */
  recent: number
  /** Per hour of the day: the longest run, the pairs of successive samples, and the equal ones among them. */
  longest: number[]
  pairs: number[]
  equal: number[]
}

export const createStuckState = (): StuckState => ({
  value: null,
  run: 0,
  begin: 0,
  last: 0,
  isStuck: false,
  count: 0,
  changes: 0,
  recent: 0,
  longest: new Array<number>(hours).fill(0),
  pairs: new Array<number>(hours).fill(0),
  equal: new Array<number>(hours).fill(0),
})

export interface StuckLimits {
  /** Equal values that are a fault after a history that varies. */
  readonly stuckSamples: number
  /** Equal values that are a fault after a short history, or with neighbours that vary. */
  readonly stuckSamplesShort: number
}

/** Without limits every run is natural and is learned. */
export function takeStuck(
  state: StuckState,
  { time, value, neighbour }: Observed,
  limits: StuckLimits | undefined,
): Match | undefined {
  state.count++
  if (value !== state.value) {
    endRun(state)
    state.value = value
    state.run = 1
    state.begin = time
    state.last = time
    return undefined
  }
  state.run++
  state.last = time
  if (limits !== undefined && state.run >= runLimit(state, { hour: hourOf(time), neighbour, limits }))
    state.isStuck = true
  if (!state.isStuck) return undefined
  return { class: 'stuck', kind: 'definite', begin: state.begin, likelihood: chance }
}

/** Learns the run that ends here, spread over the hours that it covered. */
function endRun(state: StuckState): void {
  const { value, run, begin, last, isStuck } = state
  state.isStuck = false
  if (value === null) return
  state.changes++
  if (isStuck) return
  const counted = Math.min(run, pairsMax)
  const step = (last - begin) / counted
  for (let i = 0; i < counted; i++) {
    const hour = hourOf(begin + i * step)
    state.longest[hour] = Math.max(state.longest[hour]!, run)
    state.pairs[hour] = state.pairs[hour]! + 1
    if (i > 0) state.equal[hour] = state.equal[hour]! + 1
    state.recent += recentWeight * (Number(i > 0) - state.recent)
    if (state.pairs[hour] < pairsMax) continue
    state.pairs[hour] = state.pairs[hour] / 2
    state.equal[hour] = state.equal[hour]! / 2
  }
}

interface RunContext {
  readonly hour: number
  readonly neighbour: NeighbourEstimate | undefined
  readonly limits: StuckLimits
}

/** Length from which the present run is a fault. */
function runLimit(state: StuckState, { hour, neighbour, limits }: RunContext): number {
  const { stuckSamples, stuckSamplesShort } = limits
  const isVaried = state.changes >= variedChanges
  if (neighbour !== undefined && !neighbour.isVarying) return Number.POSITIVE_INFINITY
  if (!isVaried) return neighbour === undefined ? Number.POSITIVE_INFINITY : stuckSamplesShort
  const { longest, share } = runsAround(state, hour)
  const isShort = state.count - state.run < historySamples
  if (longest <= ordinaryRun) return isShort ? stuckSamplesShort : stuckSamples
  const continuing = Math.min(0.97, Math.max(0.25, share, state.recent))
  const beyond = longest + Math.ceil(Math.log(chance) / Math.log(continuing))
  const unusual = Math.max(isShort ? stuckSamplesShort : stuckSamples, beyond)
  return neighbour !== undefined && longest < stuckSamplesShort
    ? Math.min(unusual, stuckSamplesShort)
    : unusual
}

/**
 * The longest run and the share of equal pairs around an hour of the day; of the whole day with few samples.
 */
function runsAround({ longest, pairs, equal }: StuckState, hour: number): { longest: number; share: number } {
  const around = [hour + hours - 1, hour, hour + 1].map((one) => one % hours)
  const isKnown = around.every((one) => pairs[one]! >= pairsOfHour)
  const chosen = isKnown ? around : longest.map((_, i) => i)
  const sum = (of: readonly number[]): number => chosen.reduce((total, one) => total + of[one]!, 0)
  return {
    longest: Math.max(...chosen.map((one) => longest[one]!)),
    share: (sum(equal) + 1) / (sum(pairs) + 4),
  }
}
