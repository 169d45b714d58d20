/**
 * Dropout and clock: rules about times alone. They learn the interval of a stream and its normal gaps. A
 * dropout is a silence of more than 3 intervals (`dropoutSlots` in `detection/detection-settings.ts`) and of
 * more than 1.5 normal gaps. `streams/overdue.ts` waits for it on the clock. A clock fault is an observedAt
 * that goes back by more than an interval, or that stays the same.
 */
import type { Match } from './finding.ts'
import { addNewest } from './newest-values.ts'

/** Gaps that the rule compares; the longest of them are the exceptions in which the stream was silent. */
const gapsMax = 8
/** Samples per gap that counts as an exception. */
const samplesPerException = 3000
/** Longest normal gap of a stream whose interval is stated. */
const statedGapMax = 10
/**
 * Distances between samples that decide the learned interval: their median, if most of them are near it. A
 * device that reports events or changes has no interval, so its silence says nothing.
 */
const distancesMax = 16
const distancesMin = 8
const regularShare = 0.75
const nearShare = 0.2
/** Successive samples with an earlier time after which the stream's clock is taken as set back. */
const setBackSamples = 5
/** Successive samples whose time does not increase that are a clock fault, however small the step back. */
const stoppedSamples = 3

export interface TimesState {
  /** observedAt of the newest sample by stream time; null before the first. */
  time: number | null
  count: number
  /** The newest distances between samples, in ms, and the interval that follows; null without one. */
  distances: number[]
  interval: number | null
  /** The longest gaps in intervals, longest first. */
  gaps: number[]
  /** Begin of the dropout that lasts, null without one. */
  silentSince: number | null
  /**
   * Successive samples that were not later than `time`, how many of the newest of them increase, and their
   * times.
   */
  backCount: number
  increasing: number
  backTime: number
  backBegin: number
}

export const createTimesState = (): TimesState => ({
  time: null,
  count: 0,
  distances: [],
  interval: null,
  gaps: [],
  silentSince: null,
  backCount: 0,
  increasing: 0,
  backTime: 0,
  backBegin: 0,
})

export interface TimesLimits {
  readonly intervalMs: number | undefined
  /** Intervals without a value that are a dropout at the least. */
  readonly dropoutSlots: number
}

/** The stated interval, else the learned one; undefined before 9 samples, and while they are irregular. */
export const learnedInterval = ({ interval }: TimesState, { intervalMs }: TimesLimits): number | undefined =>
  intervalMs !== undefined && intervalMs > 0 ? intervalMs : (interval ?? undefined)

function regularInterval(distances: readonly number[]): number | null {
  if (distances.length < distancesMin) return null
  const median = [...distances].sort((a, b) => a - b)[distances.length >> 1]!
  const near = distances.filter((one) => Math.abs(one - median) <= nearShare * median)
  return near.length >= regularShare * distances.length ? median : null
}

/** Time from which silence is a dropout; undefined while one lasts or the interval is not known. */
export function dropoutAt(state: TimesState, limits: TimesLimits): number | undefined {
  const interval = learnedInterval(state, limits)
  if (state.time === null || state.silentSince !== null || interval === undefined) return undefined
  return state.time + (dropoutSlots(state, limits) + 0.5) * interval
}

function dropoutSlots({ gaps, count }: TimesState, limits: TimesLimits): number {
  const known = gaps[Math.min(gapsMax - 1, Math.floor(count / samplesPerException))] ?? 0
  const normal = limits.intervalMs === undefined ? known : Math.min(statedGapMax, known)
  return Math.max(limits.dropoutSlots, Math.ceil(1.5 * normal))
}

/** A time of a stream. */
export interface StreamMoment {
  readonly time: number
  /** Time since the newest sample during which the gateway was down, ms: it is no silence of the stream. */
  readonly downMs?: number | undefined
}

/** Finds a dropout: `time` is the stream's time, without a sample. */
export function takeSilence(
  state: TimesState,
  { time, downMs = 0 }: StreamMoment,
  limits: TimesLimits,
): Match | undefined {
  const at = dropoutAt(state, limits)
  if (at !== undefined && time - downMs >= at)
    state.silentSince = state.time! + learnedInterval(state, limits)! + downMs
  if (state.silentSince === null) return undefined
  return { class: 'dropout', kind: 'definite', begin: state.silentSince, likelihood: 0 }
}

export type TimeOrder =
  | { readonly kind: 'next'; readonly slots: number }
  /** A second sample of the same time, or a late one: it says nothing new. */
  | { readonly kind: 'repeated' }
  | { readonly kind: 'clock'; readonly match: Match }

/**
 * Places a sample in the stream's time, and learns from it. Call `takeSilence` with the sample's time before.
 */
export function takeTime(
  state: TimesState,
  { time, downMs = 0 }: StreamMoment,
  limits: TimesLimits,
): TimeOrder {
  const { time: last } = state
  if (last === null) return followed(state, time, 1)
  const interval = learnedInterval(state, limits) ?? Number.POSITIVE_INFINITY
  if (time > last) {
    const slots = Math.max(1, Math.round((time - last) / interval))
    // A gap in which the gateway was down says nothing about the stream.
    if (downMs === 0 || slots === 1) learnDistance(state, { distance: time - last, gap: slots - 1 }, limits)
    return followed(state, time, slots)
  }
  if (state.backCount === 0) state.backBegin = time
  state.increasing = state.backCount > 0 && time > state.backTime ? state.increasing + 1 : 1
  state.backCount++
  state.backTime = time
  if (state.increasing >= setBackSamples) return followed(state, time, 1)
  if (last - time <= interval && state.backCount < stoppedSamples) return { kind: 'repeated' }
  const match: Match = { class: 'clock', kind: 'definite', begin: state.backBegin, likelihood: 0 }
  return { kind: 'clock', match }
}

function followed(state: TimesState, time: number, slots: number): TimeOrder {
  state.time = time
  state.count++
  state.backCount = 0
  state.silentSince = null
  return { kind: 'next', slots }
}

function learnDistance(
  state: TimesState,
  { distance, gap }: { distance: number; gap: number },
  { intervalMs = 0 }: TimesLimits,
): void {
  addNewest(state.distances, distance, distancesMax)
  // A stated interval is used instead.
  if (!(intervalMs > 0)) state.interval = regularInterval(state.distances)
  if (gap === 0 || (state.gaps.length === gapsMax && gap <= state.gaps.at(-1)!)) return
  state.gaps.push(gap)
  state.gaps.sort((a, b) => b - a)
  state.gaps.length = Math.min(state.gaps.length, gapsMax)
}
