/**
 * The quality of a stream at a moment: metrics with absolute and rated values, and its quality of service.
 * Pure. docs/guides/quality.md has the formulas and their sources.
 *
 * While a stream is silent, its missing values are counted by the clock since its last commit, while the
 * gateway was up. This count is not stored. When the next observation arrives,
 * `stream-record.ts` counts the missing values from the times of both observations. `nextMissingAt` decides
 * when a silent stream is computed again; the timer is in `plugin.ts`.
 */
import { dayMs, daySums } from './day-table.ts'
import { punish, type Rating, ratedValue } from './rating.ts'
import type { StreamMetadata } from './stream-metadata.ts'
import { type Downtime, outageIntervals, type StreamRecord, tolerance } from './stream-record.ts'

export interface Metric {
  readonly absolute?: number | undefined
  /** 0..1 */
  readonly rated?: number | undefined
}

export interface Quality {
  /** 1 if the latest value can be true, else 0. */
  readonly plausibility: Metric
  /** Missing values since the latest one. */
  readonly completeness: Metric
  /** Received by expected values of the last 24 hours of stream time, 0..1. */
  readonly share?: number | undefined
  /** Values of those 24 hours that are not expected, since the gateway was down. */
  readonly excused: number
  /** Time since the latest observation, s. */
  readonly age: Metric
  /** Time between the two latest observations, s. */
  readonly frequency: Metric
  /** 1 if the latest value was committed when it was observed, 0 if an update interval later. */
  readonly timeliness: Metric
  /** Share of inferred values; rated 1 if all were measured. */
  readonly artificiality: Metric
  /** Agreement with neighbours, 0..1; rated in tenths. */
  readonly concordance: Metric
  /** Mean time from observation to commit, s. */
  readonly deliveryDelay?: number | undefined
  /** Values committed within their update interval, by expected values of 24 hours, 0..1. */
  readonly deliveryRatio?: number | undefined
  /** Share of those 24 hours without outages, 0..1. */
  readonly availability?: number | undefined
}

export function qualityOf(record: StreamRecord, metadata: StreamMetadata, moment: RatedMoment): Quality {
  const { now } = moment
  const { intervalMs } = metadata
  const missing = missingNow(record, intervalMs, moment)
  const day = intervalMs === undefined ? undefined : dayOf(record, intervalMs, missing)
  const hasValues = record.count > 0
  const silenced = (rating: Rating): number | undefined => ratedValue(punish(rating, missing))
  return {
    plausibility: {
      absolute: record.isPlausible === undefined ? undefined : Number(record.isPlausible),
      rated: ratedValue(record.plausibility),
    },
    completeness: {
      absolute: hasValues && intervalMs !== undefined ? missing : undefined,
      rated: silenced(record.completeness),
    },
    age: { absolute: record.lastAt === undefined ? undefined : seconds(Math.max(0, now - record.lastAt)) },
    frequency: {
      absolute: record.intervalMs === undefined ? undefined : seconds(record.intervalMs),
      rated: silenced(record.frequency),
    },
    timeliness: {
      absolute:
        record.delayMs === undefined || intervalMs === undefined
          ? undefined
          : rounded(Math.max(0, 1 - record.delayMs / intervalMs)),
      rated: ratedValue(record.timeliness),
    },
    artificiality: hasValues
      ? { absolute: rounded(record.inferred), rated: rounded(1 - record.inferred) }
      : {},
    concordance: { absolute: record.concordance, rated: record.ratedConcordance },
    deliveryDelay: record.meanDelayMs === undefined ? undefined : seconds(record.meanDelayMs),
    excused: 0,
    ...day,
  }
}

/** A number that is equal as long as all rated values are; cheap, to be asked with each observation. */
export function ratedState(record: StreamRecord, { intervalMs }: StreamMetadata, clock: RatedMoment): number {
  const missing = missingNow(record, intervalMs, clock)
  let state = record.plausibility + 1
  state = state * 17 + punish(record.completeness, missing) + 1
  state = state * 17 + punish(record.frequency, missing) + 1
  state = state * 17 + record.timeliness + 1
  state = state * 10_002 + (record.count === 0 ? 0 : 1 + Math.round((1 - record.inferred) * 10_000))
  return (
    state * 12 + (record.ratedConcordance === undefined ? 0 : 1 + Math.round(record.ratedConcordance * 10))
  )
}

/** A time and when the gateway was up before it, ms. */
export interface RatedMoment {
  readonly now: number
  /** When the gateway began to listen. */
  readonly upSince: number
  /** Oldest first. */
  readonly downtimes?: readonly Downtime[]
}

/**
 * Values missing by the clock. In each span during which the gateway was up: the first after 1.1 update
 * intervals, each further one after one more.
 */
export function missingNow(
  record: StreamRecord,
  intervalMs: number | undefined,
  moment: RatedMoment,
): number {
  if (intervalMs === undefined || record.count === 0) return 0
  const { missing, begin } = silenceOf(record, intervalMs, moment)
  return missing + missingWithin(moment.now - begin, intervalMs)
}

/** Values missing before the present span during which the gateway is up, and its begin. */
function silenceOf(
  { committedAt }: StreamRecord,
  intervalMs: number,
  { upSince, downtimes = [] }: RatedMoment,
) {
  let begin = committedAt ?? upSince
  let missing = 0
  for (let i = downtimes.findIndex(({ to }) => to > begin); i !== -1 && i < downtimes.length; i++) {
    missing += missingWithin(downtimes[i]!.from - begin, intervalMs)
    begin = downtimes[i]!.to
  }
  return { missing, begin: Math.max(begin, upSince) }
}

const missingWithin = (silentMs: number, intervalMs: number): number =>
  Math.max(0, Math.floor(silentMs / intervalMs - tolerance + 1))

/**
 * When the quality of a silent stream is to be computed next, ms: with each missing value, and from eight on
 * each time that their number has doubled. Undefined if no value is expected.
 */
export function nextMissingAt(
  record: StreamRecord,
  intervalMs: number | undefined,
  moment: RatedMoment,
): number | undefined {
  if (intervalMs === undefined || record.count === 0) return undefined
  const before = silenceOf(record, intervalMs, moment)
  const missing = before.missing + missingWithin(moment.now - before.begin, intervalMs)
  const next = missing < 8 ? missing + 1 : missing * 2
  return before.begin + (next - before.missing - 1 + tolerance) * intervalMs
}

function dayOf(record: StreamRecord, intervalMs: number, missing: number) {
  const { firstAt, lastAt } = record
  if (firstAt === undefined || lastAt === undefined) return {}
  const at = lastAt + missing * intervalMs
  const sums = daySums(record, at, { newest: lastAt, intervalMs })
  const spanMs = Math.min(dayMs, at - firstAt + intervalMs)
  const expected = Math.max(1, spanMs / intervalMs - sums.excused)
  const silentMs = missing < outageIntervals ? 0 : missing * intervalMs
  return {
    share: rounded(Math.min(1, sums.received / expected)),
    excused: Math.round(sums.excused),
    deliveryRatio: rounded(Math.min(1, (sums.received - sums.late) / expected)),
    availability: rounded(Math.max(0, 1 - (sums.outageSeconds * 1000 + silentMs) / spanMs)),
  }
}

const seconds = (ms: number): number => Math.round(ms) / 1000
const rounded = (share: number): number => Math.round(share * 10_000) / 10_000
