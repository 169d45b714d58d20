/**
 * Stuck: the same value again and again. The rule learns how long healthy runs of equal values are: at the
 * values with the longest runs (a physical floor, a setpoint), and at all others. At the value with the
 * longest runs of all it also learns the hours of the day: a zero at noon is judged apart from the zeros of
 * the night. A stream that never varied is not called stuck, unless its neighbours vary.
 *
 * Rest is not stuck. A few values in long runs are states, such as open and closed. The lowest or highest
 * value in long runs is a limit, such as no rain: the next dry spell may be longer than all before.
 *
 * The least numbers of equal values (`StuckLimits`) are set in `detection/detection-settings.ts`.
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
/** A run of so many equal values is rest. */
const restRun = 20
/** Part of the longest rest at a value that a rest there may last: a weekend after nights. */
const restFactor = 8
/** Runs at a limit that were called stuck, from which on such a run is learned. */
const suspectsMax = 1
/** Values of a stream that reports states instead of measurements, at most. */
const statesMax = 4
/** Runs at the value with the longest runs, and time, from which its hours of the day are known. */
const floorRunsMin = 7
/** The newest of these runs that are compared. */
const floorRunsMax = 24
/** Runs of at least half the longest one make up so much of the time, if they are nights. */
const nightsShare = 0.8
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const floorDaysMs = 7 * dayMs
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
  /** The first values, each once: up to one more than states have. */
  kinds: number[]
  /** Runs at the least or largest value that were called stuck. */
  suspects: number
  /** Least and largest value. */
  low: number
  high: number
  /**
   * Times of the newest runs at the value with the longest runs, from an hour on, in ms. Then their samples
   * at each hour of the day.
   */
  floorRuns: number[]
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
  kinds: [],
  suspects: 0,
  low: 0,
  high: 0,
  floorRuns: [],
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
    state.low = state.value === null ? value : Math.min(state.low, value)
    state.high = state.value === null ? value : Math.max(state.high, value)
    if (state.kinds.length <= statesMax && !state.kinds.includes(value)) state.kinds.push(value)
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
  // A sensor sticks at any value. One that does so at its limits again and again rests there.
  if (isStuck && (!isExtreme(state) || ++state.suspects <= suspectsMax)) return
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
  if (run > longestOf(resting, value)) {
    const known = resting.findIndex((one) => one[0] === value)
    if (known !== -1) resting[known] = [value, run]
    else if (resting.length < restingMax) resting.push([value, run])
    else if (run > resting.at(-1)![1]) resting[restingMax - 1] = [value, run]
    resting.sort((a, b) => b[1] - a[1])
  }
  if (resting[0]![0] === value) learnHours(state, top === value)
}

/** Learns how long the run was at each hour of its last day. */
function learnHours(state: StuckState, isSame: boolean): void {
  const { begin, last, run, floorRuns, floorHours } = state
  if (!isSame) {
    floorHours.fill(0)
    floorRuns.length = 0
  }
  if (last - begin >= hourMs) floorRuns.push(last - begin)
  if (floorRuns.length > floorRunsMax) floorRuns.shift()
  const step = (last - begin) / (run - 1)
  const skipped = Math.max(0, Math.floor((last - begin) / hourMs) - hours)
  for (let at = begin + skipped * hourMs; at <= last; at += hourMs) {
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
  if (state.kinds.length <= statesMax) return Number.POSITIVE_INFINITY
  const share = (state.equal + 1) / (state.pairs + 4)
  const continuing = Math.min(0.97, Math.max(0.25, share, state.recent))
  const beyond = longest + Math.ceil(Math.log(chance) / Math.log(continuing))
  const unusual = Math.max(least, Math.min(Math.max(beyond, restLimit(state, longest)), hourLimit(state)))
  return neighbour !== undefined && longest < stuckSamplesShort
    ? Math.min(unusual, stuckSamplesShort)
    : unusual
}

/** The longest healthy run at the present value, or at values like it. */
function longestAt({ resting, value }: StuckState, before: number): number {
  const rank = before < longHistorySamples ? 0 : Math.min(restingRank, resting.length - 1)
  return Math.max(longestOf(resting, value), resting[rank]?.[1] ?? 0)
}

/** The longest run at a value; 0 if it is not one of those with the longest runs. */
function longestOf(resting: StuckState['resting'], value: number | null): number {
  for (const one of resting) if (one[0] === value) return one[1]
  return 0
}

/** Where the stream rests: how long that may last. A counter rests at its highest value so far. */
function restLimit(state: StuckState, longest: number): number {
  if (longest >= restRun && isExtreme(state)) return Number.POSITIVE_INFINITY
  const own = longestOf(state.resting, state.value)
  return own < restRun ? 0 : restFactor * own
}

const isExtreme = ({ value, low, high }: StuckState): boolean => value === low || value === high

/** At the value with the longest runs: how long they are at most around this hour of the day. */
function hourLimit({ resting, value, floorRuns, floorHours, since, last }: StuckState): number {
  if (resting[0]?.[0] !== value || last - since < floorDaysMs || !areNights(floorRuns))
    return Number.POSITIVE_INFINITY
  const hour = hourOf(last) + hours
  const around = [-2, -1, 0, 1, 2].map((distance) => floorHours[(hour + distance) % hours]!)
  return 1.25 * Math.max(...around) + 8
}

/** Whether the times of runs are those of nights: about equal, and less than a day. Dry spells differ. */
function areNights(runs: readonly number[]): boolean {
  const longest = Math.max(0, ...runs)
  const long = runs.filter((one) => one >= longest / 2)
  return long.length >= floorRunsMin && longest < dayMs && sum(long) >= nightsShare * sum(runs)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
