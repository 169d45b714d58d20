/**
 * The record of a stream's observations, and how one more observation changes it. Pure.
 *
 * Intervals and gaps count in stream time (observedAt), so a replayed feed yields the values of a live one.
 * Values missed while the gateway itself was down are excused: they do not lower the quality.
 */
import type { Json } from '#contract'
import { addRare, addReceived, addSpan, type DayTable, moveOn } from './day-table.ts'
import { isPlausible } from './plausibility.ts'
import { punish, type Rating, rate } from './rating.ts'
import { addRecent, isRecent } from './recent-times.ts'
import type { StreamMetadata } from './stream-metadata.ts'
import type { TimeSlots } from './time-slots.ts'

/**
 * Mutable; one per stream. Times are ms, `undefined` before the first observation. `record-rows.ts` creates
 * records.
 */
export interface StreamRecord extends DayTable, TimeSlots, StreamTimes {
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
  /** `ratedState` when the figures were last compared with the written ones; not saved. */
  compared: number
  /** Agreement with neighbours, 0..1, and the same in tenths; undefined before it is known. */
  concordance: number | undefined
  ratedConcordance: number | undefined
}

/** Times of a stream that are not saved, monotonic ms. They lie with its record, since memory is scarce. */
export interface StreamTimes {
  /** When its links were first read. */
  linksAt: number
  /** When its figures were written, or were found to be equal to the written ones. */
  writtenAt: number
  /** When its next value will be missing. */
  silentAt: number | undefined
  /** When it is to be written. */
  dueAt: number | undefined
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

/**
 * Counts an observation. One with the time of the latest is a repetition or a correction: only the judgement
 * of the latest value changes. A late one counts, but says nothing about intervals; a repeated late one does
 * not count.
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
  if (isLate && isRecent(record, time)) return
  addRecent(record, time, record.count)
  if (lastAt !== undefined && !isLate) countGap(record, { from: lastAt, to: time }, metadata, downtimes)
  const inferred = metadata.isInferred || arrival.isInferred === true ? 1 : 0
  record.inferred = mean(record.count === 0 ? undefined : record.inferred, inferred)
  record.count++
  record.firstAt = Math.min(record.firstAt ?? time, time)
  addReceived(record, time, lastAt ?? time)
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
  moveOn(record, gap.from, gap.to)
  if (intervalMs === undefined) return
  const downMs = overlapMs(downtimes, gap)
  const missing = Math.max(0, Math.round(length / intervalMs) - 1)
  const excused = excusedWithin(gap, { missing, intervalMs }, downtimes)
  const punished = Math.max(0, missing - excused(gap.from, gap.to))
  record.completeness = punish(record.completeness, punished)
  record.frequency = punish(record.frequency, punished)
  // The length of an interval in which the gateway was down says nothing about the sensor.
  if (downMs === 0) record.frequency = rate(record.frequency, length <= intervalMs * tolerance)
  if (punished < missing) addSpan(record, { row: 'excused', ...gap }, excused)
  const isOutage = length - downMs > intervalMs * outageIntervals
  const outage = { row: 'outageSeconds', from: gap.from + intervalMs, to: gap.to } as const
  if (isOutage)
    addSpan(record, outage, (from, to) => Math.round((to - from - overlapMs(downtimes, { from, to })) / 1000))
}

/**
 * Counts missing values between two times that were expected while the gateway was down, within a tenth of
 * the update interval. Missing values are expected at equal distances in the gap.
 */
function excusedWithin(
  gap: Downtime,
  { missing, intervalMs }: { readonly missing: number; readonly intervalMs: number },
  downtimes: readonly Downtime[],
): (from: number, to: number) => number {
  const step = (gap.to - gap.from) / (missing + 1)
  const slack = intervalMs * (tolerance - 1)
  const spans = downtimes.filter(({ from, to }) => to + slack > gap.from && from - slack < gap.to)
  return (from, to) =>
    spans.reduce((sum, down) => {
      const first = Math.max(1, Math.ceil((Math.max(from, down.from - slack) - gap.from) / step))
      const end = Math.min(missing + 1, Math.ceil((Math.min(to, down.to + slack) - gap.from) / step))
      return sum + Math.max(0, end - first)
    }, 0)
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
  const newest = Math.max(time, record.lastAt ?? time)
  if (delayMs > intervalMs) addRare(record, { row: 'late', time, count: 1 }, newest)
}

const mean = (before: number | undefined, latest: number): number =>
  before === undefined ? latest : before + latestWeight * (latest - before)

const overlapMs = (downtimes: readonly Downtime[], { from, to }: Downtime): number =>
  downtimes.reduce((sum, down) => sum + Math.max(0, Math.min(down.to, to) - Math.max(down.from, from)), 0)
