/**
 * Spike: one value away from both its neighbours in time, which agree with each other. The statistic is the
 * smaller of the two opposite changes, in units of usual changes. It is known with the next sample. A spike
 * is an anomaly; the third within a day, and within so few samples that chance does not explain three, is a
 * definite fault.
 */
import { createExtremes, type Extremes, learnExtreme, thresholdOf } from './extremes.ts'
import type { Change } from './movement.ts'

export interface SpikeState {
  /** The two newest changes, newest last, and the usual size of the newest. */
  before: number
  newest: number
  size: number
  /** Mean of the changes before these two. */
  unrest: number
  extremes: Extremes
}

export const createSpikeState = (): SpikeState => ({
  before: 0,
  newest: 0,
  size: 1,
  unrest: 0,
  extremes: createExtremes(),
})

/** The least size of a spike in usual changes. */
const sizeMin = 5
/** Weight of a new change in the recent unrest. */
const unrestWeight = 0.12
/** Part of the recent unrest by which a spike is measured, where that is more than the usual change. */
const unrestShare = 0.6
/** Part of a spike by which the values around it may differ. */
const returnShare = 0.4
/** Part of a spike by which the stream may have changed just before. */
const calmShare = 0.35

export interface Turn {
  /** How much the previous sample stood out, in usual changes; 0 if the stream did not turn there. */
  readonly turn: number
  /** Size of the spike at the previous sample in units of the threshold, 0 without one. */
  readonly spike: number
  /** The least spike that would be found here, in the unit of the stream. */
  readonly bound: number
}

export function takeSpike(state: SpikeState, { surprise, size }: Change, learns: boolean): Turn {
  const { newest, before, extremes } = state
  const least = newest * surprise < 0 ? Math.min(Math.abs(newest), Math.abs(surprise)) : 0
  const usual = state.size
  const turn = least / usual
  const isReturn = Math.abs(newest + surprise) <= returnShare * least && Math.abs(before) <= calmShare * least
  state.before = newest
  state.newest = surprise
  state.size = size
  const scale = Math.max(usual, unrestShare * state.unrest)
  const statistic = isReturn ? least / scale : 0
  state.unrest += unrestWeight * (Math.abs(before) - state.unrest)
  const threshold = Math.max(sizeMin, thresholdOf(extremes))
  if (learns) learnExtreme(extremes, Math.min(statistic, threshold))
  return { turn, spike: statistic / threshold, bound: threshold * scale }
}

/** Forgets the changes before a gap. */
export function interruptSpike(state: SpikeState): void {
  state.before = 0
  state.newest = 0
}

const dayMs = 86_400_000
/** Samples in which a healthy stream seldom has three spikes: its thresholds allow one in thousands. */
const frequentSamples = 96
const frequentSpikes = 3

/** Times of the newest spikes. */
export interface SpikeDay {
  times: number[]
}

export const createSpikeDay = (): SpikeDay => ({ times: [] })

/** Takes the time of a spike; true if it is one of several within a day. */
export function isFrequentSpike({ times }: SpikeDay, time: number, slotMs: number): boolean {
  times.push(time)
  if (times.length > frequentSpikes) times.shift()
  return times.length === frequentSpikes && time - times[0]! <= Math.min(dayMs, frequentSamples * slotMs)
}
