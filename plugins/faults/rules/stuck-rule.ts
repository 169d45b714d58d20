/**
 * Stuck: the same value again and again. The rule learns how long healthy runs of equal values are: at the
 * values with the longest runs (a physical floor, a setpoint), and at all others. At the value with the
 * longest runs of all it also learns the hours of the day: a zero at noon is judged apart from the zeros of
 * the night. A stream that never varied is not called stuck, unless its neighbours vary.
 */
import type { Match } from './finding.ts'
import { hourOf, type NeighbourEstimate, type Observed } from './observed.ts'

const hours = 24
/** Runs up to this length are ordinary: they do not move the limit. */
const ordinaryRun = 4
const historySamples = 100
/** Changes of value from which a stream counts as varying. */
const variedChanges = 4
/** Values with the longest runs. Other values are held to the third longest. */
const restingMax = 8
const restingRank = 2
/** Samples from which runs at the two values with the longest runs say nothing about other values. */
const longHistorySamples = 1000
/** Runs at the value with the longest runs, and time, from which its hours of the day are known. */
const floorRunsMin = 7
const floorDaysMs = 7 * 86_400_000
const hourMs = 3_600_000
/** Probability at which a run that is longer than all before is no chance. */
const chance = 1e-5
/** Weight of a new pair in the recent share of equal pairs. */
const recentWeight = 1 / 16
/** Pairs at which older ones begin to count half. */
const pairsMax = 100_000

export interface StuckState {
  value: number | null
  /** Samples of the present run of equal values, its first and its last time. */
  run: number
  begin: number
  last: number
  /** True if the present run was called stuck: it is not learned. */
  isStuck: boolean
  count: number
  /** Time of the first sample. */
  since: number
  changes: number
  /** Recent share of equal pairs when the present run began. */
  recent: number
  /** Pairs of successive samples, and the equal ones among them. */
  pairs: number
  equal: number
  /** Values with the longest runs: value and length, longest first. */
  resting: [number, number][]
  /** Number of runs at the value with the longest runs, and how long they were at each hour of the day. */
  floorRuns: number
  floorHours: number[]
}

export const createStuckState = (): StuckState => ({
  value: null,
  run: 0,
  begin: 0,
  last: 0,
  isStuck: false,
  count: 0,
  since: 0,
  changes: 0,
  recent: 0,
  pairs: 0,
  equal: 0,
  resting: [],
  floorRuns: 0,
  floorHours: new Array<number>(hours).fill(0),
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
  if (state.count === 0) state.since = time
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
  if (limits !== undefined && state.run >= runLimit(state, neighbour, limits)) state.isStuck = true
  if (!state.isStuck) return undefined
  return { class: 'stuck', kind: 'definite', begin: state.begin, likelihood: chance }
}

/** True if the present run is long enough to become a stuck sensor soon. */
export function isSticking(state: StuckState, limits: StuckLimits): boolean {
  const { run } = state
  return run >= 3 && (state.isStuck || 4 * run >= runLimit(state, undefined, limits))
}

function endRun(state: StuckState): void {
  const { value, run, isStuck } = state
  state.isStuck = false
  if (value === null) return
  state.changes++
  if (isStuck) return
  state.pairs += run
  state.equal += run - 1
  state.recent = 1 - (1 - state.recent * (1 - recentWeight)) * (1 - recentWeight) ** (run - 1)
  if (state.pairs > pairsMax) {
    state.pairs /= 2
    state.equal /= 2
  }
  if (run === 1) return
  const { resting } = state
  const top = resting[0]?.[0]
  const known = resting.findIndex(([one]) => one === value)
  if (known !== -1) resting[known] = [value, Math.max(run, resting[known]![1])]
  else if (resting.length < restingMax) resting.push([value, run])
  else if (run > resting.at(-1)![1]) resting[restingMax - 1] = [value, run]
  resting.sort((a, b) => b[1] - a[1])
  if (resting[0]![0] === value) learnHours(state, top === value)
}

/** Learns how long the run was at each hour of the day. */
function learnHours(state: StuckState, isSame: boolean): void {
  const { begin, last, run, floorHours } = state
  if (!isSame) floorHours.fill(0)
  state.floorRuns = isSame ? state.floorRuns + 1 : 1
  const step = (last - begin) / (run - 1)
  for (let at = begin; at <= last; at += hourMs) {
    const hour = hourOf(at)
    floorHours[hour] = Math.max(floorHours[hour]!, Math.round((at - begin) / step) + 1)
  }
  floorHours[hourOf(last)] = Math.max(floorHours[hourOf(last)]!, run)
}

/** Length from which the present run is a fault. */
function runLimit(
  state: StuckState,
  neighbour: NeighbourEstimate | undefined,
  { stuckSamples, stuckSamplesShort }: StuckLimits,
): number {
  const before = state.count - state.run
  if (neighbour !== undefined && !neighbour.isVarying) return Number.POSITIVE_INFINITY
  if (state.changes < variedChanges)
    return neighbour === undefined ? Number.POSITIVE_INFINITY : stuckSamplesShort
  const least = before < historySamples ? stuckSamplesShort : stuckSamples
  const longest = longestAt(state, before)
  if (longest <= ordinaryRun) return least
  const share = (state.equal + 1) / (state.pairs + 4)
  const continuing = Math.min(0.97, Math.max(0.25, share, state.recent))
  const beyond = longest + Math.ceil(Math.log(chance) / Math.log(continuing))
  const unusual = Math.max(least, Math.min(beyond, hourLimit(state)))
  return neighbour !== undefined && longest < stuckSamplesShort
    ? Math.min(unusual, stuckSamplesShort)
    : unusual
}

/** The longest healthy run at the present value, or at values like it. */
function longestAt({ resting, value }: StuckState, before: number): number {
  const own = resting.find(([one]) => one === value)
  const rank = before < longHistorySamples ? 0 : Math.min(restingRank, resting.length - 1)
  return Math.max(own?.[1] ?? 0, resting[rank]?.[1] ?? 0)
}

/** At the value with the longest runs: how long they are at most around this hour of the day. */
function hourLimit({ resting, value, floorRuns, floorHours, since, last }: StuckState): number {
  if (resting[0]?.[0] !== value || floorRuns < floorRunsMin || last - since < floorDaysMs)
    return Number.POSITIVE_INFINITY
  const hour = hourOf(last) + hours
  const around = [-2, -1, 0, 1, 2].map((distance) => floorHours[(hour + distance) % hours]!)
  return 1.25 * Math.max(...around) + 8
}
