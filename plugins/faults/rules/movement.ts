/**
 * How a stream moves from sample to sample, in units of its usual change. Two lanes: by the stream's own
 * history, and less what the neighbours' movement explains. The rules for spikes, noise and steps read
 * these changes.
 */
import { hourOf, type Observed } from './observed.ts'
import { createSpread, hourBins, learnSize, type Spread, sizeAt } from './spread.ts'

/** Gap in intervals from which two samples are not compared. */
const comparableSlots = 4
const deviationsMax = 4
const slowest = 0.0005
const levelWeight = 0.15
/** Change of the level by one sample at most, in usual changes: a spike hardly moves it. */
const levelStepMax = 6
const regressionWeight = 0.002

export interface Movement {
  count: number
  /** Mean and variance, robust against outliers. */
  mean: number
  variance: number
  /** Smoothed value. */
  level: number
  /** The least change that is not zero: the stream's resolution. */
  resolution: number
  /** Mean change per interval, by time of day. */
  course: number[]
  previous: { value: number; neighbour: number | null } | null
  /** Moments of the regression of changes on the neighbours' changes. */
  products: number
  squares: number
  own: Spread
  joint: Spread
}

export const createMovement = (): Movement => ({
  count: 0,
  mean: 0,
  variance: 0,
  level: 0,
  resolution: 0,
  course: new Array<number>(hourBins).fill(0),
  previous: null,
  products: 0,
  squares: 0,
  own: createSpread(),
  joint: createSpread(),
})

/** A change that the lane did not expect, and how large such changes usually are. */
export interface Change {
  readonly surprise: number
  readonly size: number
}

export interface Changes {
  /** Change of the value, and of the neighbours' estimate if both samples have one. */
  readonly change: number
  readonly moved: number | undefined
  readonly own: Change
  /** Present if both samples have an estimate from neighbours. */
  readonly joint: Change | undefined
}

/** Level in deviations from the mean. */
export const standardLevel = ({ mean, variance }: Movement, value: number): number =>
  variance > 0 ? (value - mean) / Math.sqrt(variance) : 0

/** Half a step of the resolution: changes below it are equal values. */
export const floorOf = ({ resolution }: Movement): number => Math.max(resolution / 2, 1e-9)

/** Compares a sample with the one before; undefined after a gap. Learns only if `learns`. */
export function takeMovement(
  state: Movement,
  { time, value, slots, neighbour }: Observed,
  learns: boolean,
): Changes | undefined {
  const { previous } = state
  state.previous = { value, neighbour: neighbour?.value ?? null }
  state.count++
  if (learns) learnLevel(state, value)
  if (previous === null || slots >= comparableSlots) {
    if (previous === null || slots >= 2 * comparableSlots) state.level = value
    return undefined
  }
  const hour = hourOf(time)
  const floor = floorOf(state)
  const bin = Math.floor((hour * hourBins) / 24)
  const change = value - previous.value
  const root = Math.sqrt(slots)
  const place = { level: standardLevel(state, neighbour?.value ?? state.level), hour }
  const expected = state.course[bin]! * slots
  const ownPlace = { level: standardLevel(state, state.level), hour }
  const usual = sizeAt(state.own, ownPlace, floor)
  const own: Change = { surprise: change - expected, size: usual * root }
  const moved =
    neighbour === undefined || previous.neighbour === null ? undefined : neighbour.value - previous.neighbour
  const slope = state.squares > 0 ? state.products / state.squares : 0
  const jointUsual = moved === undefined ? 0 : sizeAt(state.joint, place, floor)
  const joint: Change | undefined =
    moved === undefined ? undefined : { surprise: change - slope * moved, size: jointUsual * root }
  if (learns) {
    const bounded = clip(own.surprise, deviationsMax * own.size)
    state.course[bin] = state.course[bin]! + 0.01 * (bounded / slots)
    learnSize(state.own, ownPlace, { size: Math.abs(own.surprise) / root, usual, floor })
    if (change !== 0 && (state.resolution === 0 || Math.abs(change) < state.resolution))
      state.resolution = Math.max(Math.abs(change), 1e-9)
    if (joint !== undefined && moved !== undefined) {
      const weight = 1 / joint.size
      const target = slope * moved + clip(joint.surprise, deviationsMax * joint.size)
      state.products += regressionWeight * (weight * moved * target - state.products)
      state.squares += regressionWeight * (weight * moved * moved - state.squares)
      learnSize(state.joint, place, { size: Math.abs(joint.surprise) / root, usual: jointUsual, floor })
    }
  }
  state.level += levelWeight * clip(value - state.level, levelStepMax * own.size)
  return { change, moved, own, joint }
}

function learnLevel(state: Movement, value: number): void {
  const weight = Math.max(1 / state.count, slowest)
  const deviation =
    state.count < 20
      ? value - state.mean
      : clip(value - state.mean, deviationsMax * Math.sqrt(state.variance))
  state.mean += weight * deviation
  state.variance += weight * (deviation * deviation - state.variance)
}

const clip = (value: number, most: number): number => Math.min(most, Math.max(-most, value))
