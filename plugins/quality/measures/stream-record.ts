/**
 * The record of a stream's observations, and how one more observation changes it. Pure.
 *
 * Intervals and gaps count in stream time (observedAt), so a replayed feed yields the values of a live one.
 * Values missed while the gateway itself was down are excused: they do not lower the quality.
 */
import type { Json } from '#contract'
import { addTo, type DayTable, moveOn, newDayTable } from './day-table.ts'
import { isPlausible } from './plausibility.ts'
import { punish, type Rating, rate, unrated } from './rating.ts'
import type { StreamMetadata } from './stream-metadata.ts'
import type { TimeSlots } from './time-slots.ts'

/** Mutable; one per stream. Times are ms, `undefined` before the first observation. */
export interface StreamRecord {
  /** Observations counted; repeated ones are not. */
  count: number
  /** Earliest and latest stream time. */
  firstAt: number | undefined
  lastAt: number | undefined
  /** Latest commit time. */
  committedAt: number | undefined
  /** Stream time between the two latest observations, ms. */
  intervalMs: number | undefined
  /** Time from observation to commit of the latest observation, ms, and its mean. */
  delayMs: number | undefined
  meanDelayMs: number | undefined
  /** Whether the latest value was plausible; undefined if nothing is known of its range. */
  isPlausible: boolean | undefined
  plausibility: Rating
  completeness: Rating
  frequency: Rating
  timeliness: Rating
  /** Share of inferred values, 0..1: an exponentially weighted mean. */
  inferred: number
  /** Agreement with neighbours, 0..1, and the same in tenths; undefined before it is known. */
  concordance: number | undefined
  ratedConcordance: number | undefined
  /** Means by time slot, to compare with neighbours; undefined before the first number. */
  slots: TimeSlots | undefined
  readonly day: DayTable
}

/** An observation of a stream. */
export interface Arrival {
  /** Stream time, ms. */
  readonly time: number
  readonly value: Json
  /** Commit time, ms; undefined if it is unknown, as for values read from history. */
  readonly committedAt: number | undefined
  /** Whether the value was estimated, for example in place of a faulty one. */
  readonly isInferred?: boolean | undefined
}

/** A span during which the gateway was down, ms. */
export interface Downtime {
  readonly from: number
  readonly to: number
}

/** Weight of the latest value in the exponentially weighted means. */
const latestWeight = 0.05
/** Update intervals without a value after which a value is missing, or an interval too long. */
export const tolerance = 1.1
/** Update intervals without a value that are an outage. */
export const outageIntervals = 3

export const newRecord = (): StreamRecord => ({
  count: 0,
  firstAt: undefined,
  lastAt: undefined,
  committedAt: undefined,
  intervalMs: undefined,
  delayMs: undefined,
  meanDelayMs: undefined,
  isPlausible: undefined,
  plausibility: unrated,
  completeness: unrated,
  frequency: unrated,
  timeliness: unrated,
  inferred: 0,
  concordance: undefined,
  ratedConcordance: undefined,
  slots: undefined,
  day: newDayTable(),
})

/**
 * Counts an observation. One with the time of the latest is a repetition or a correction: only the judgement
 * of the latest value changes. A late one counts, but says nothing about intervals.
 */
export function observe(
  record: StreamRecord,
  arrival: Arrival,
  metadata: StreamMetadata,
  downtimes: readonly Downtime[],
): void {
  const { time, value, committedAt } = arrival
  const { lastAt } = record
  const judged = isPlausible(value, metadata.range)
  if (time === lastAt) {
    record.isPlausible = judged
    return
  }
  const isLate = lastAt !== undefined && time < lastAt
  if (lastAt !== undefined && !isLate) countGap(record, { from: lastAt, to: time }, metadata, downtimes)
  const inferred = metadata.isInferred || arrival.isInferred === true ? 1 : 0
  record.inferred = mean(record.count === 0 ? undefined : record.inferred, inferred)
  record.count++
  record.firstAt = Math.min(record.firstAt ?? time, time)
  addTo(record.day, { row: 'received', time, count: 1 }, lastAt ?? time)
  if (judged !== undefined) record.plausibility = rate(record.plausibility, judged)
  if (metadata.intervalMs !== undefined) record.completeness = rate(record.completeness, true)
  if (committedAt !== undefined) countDelivery(record, time, committedAt, metadata.intervalMs)
  if (isLate) return
  record.isPlausible = judged
  record.lastAt = time
}

/** Moves stream time on, and counts the values that are missing in between. */
function countGap(
  record: StreamRecord,
  gap: Downtime,
  { intervalMs }: StreamMetadata,
  downtimes: readonly Downtime[],
): void {
  const length = gap.to - gap.from
  record.intervalMs = length
  moveOn(record.day, gap.from, gap.to)
  if (intervalMs === undefined) return
  const downMs = overlapMs(downtimes, gap)
  const missing = Math.max(0, Math.round(length / intervalMs) - 1)
  const excused = excusedWithin(gap, { missing, intervalMs }, downtimes)
  record.completeness = punish(record.completeness, missing - excused)
  record.frequency = punish(record.frequency, missing - excused)
  // The length of an interval in which the gateway was down says nothing about the sensor.
  if (downMs === 0) record.frequency = rate(record.frequency, length <= intervalMs * tolerance)
  if (excused > 0) addTo(record.day, { row: 'excused', time: gap.to, count: excused }, gap.to)
  if (length - downMs > intervalMs * outageIntervals) {
    const seconds = Math.round((length - downMs - intervalMs) / 1000)
    addTo(record.day, { row: 'outageSeconds', time: gap.to, count: Math.min(seconds, 86_400) }, gap.to)
  }
}

/** Missing values that were expected while the gateway was down, within a tenth of the update interval. */
function excusedWithin(
  { from, to }: Downtime,
  { missing, intervalMs }: { readonly missing: number; readonly intervalMs: number },
  downtimes: readonly Downtime[],
): number {
  const step = (to - from) / (missing + 1)
  const slack = intervalMs * (tolerance - 1)
  const excused = downtimes.reduce((sum, down) => {
    const first = Math.max(1, Math.ceil((down.from - slack - from) / step))
    const last = Math.min(missing, Math.floor((down.to + slack - from) / step))
    return sum + Math.max(0, last - first + 1)
  }, 0)
  return Math.min(missing, excused)
}

function countDelivery(
  record: StreamRecord,
  time: number,
  committedAt: number,
  intervalMs: number | undefined,
): void {
  const delayMs = Math.max(0, committedAt - time)
  record.committedAt = Math.max(record.committedAt ?? committedAt, committedAt)
  record.delayMs = delayMs
  record.meanDelayMs = mean(record.meanDelayMs, delayMs)
  if (intervalMs === undefined) return
  record.timeliness = rate(record.timeliness, delayMs <= intervalMs)
  if (delayMs <= intervalMs)
    addTo(record.day, { row: 'timely', time, count: 1 }, Math.max(time, record.lastAt ?? time))
}

const mean = (before: number | undefined, latest: number): number =>
  before === undefined ? latest : before + latestWeight * (latest - before)

const overlapMs = (downtimes: readonly Downtime[], { from, to }: Downtime): number =>
  downtimes.reduce((sum, down) => sum + Math.max(0, Math.min(down.to, to) - Math.max(down.from, from)), 0)
