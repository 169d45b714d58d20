/**
 * Aggregates of an attribute over periods of time (GS CIM 009, 4.5.19): values go in one by one, or many at once where
 * their statistics are known already; results come out per method as `[value, start, end]`. Which numbers a value
 * stands for depends on its kind: arrays count by their size, booleans are 0 and 1, texts have only an order, and
 * whatever else there is can only be counted. A method that says nothing about the values of a period is left out.
 */
import { assert } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { msToDateTime } from './datetime.ts'
import { addDuration, type Duration } from './duration.ts'
import type { JsonObject } from './json.ts'
import { tooComplex } from './problem.ts'

export const aggregateMethods = [
  'totalCount',
  'distinctCount',
  'sum',
  'avg',
  'min',
  'max',
  'stddev',
  'sumsq',
] as const
export type AggregateMethod = (typeof aggregateMethods)[number]

/** Statistics of numbers, as chunks of history carry them. */
export interface Statistics {
  readonly count: number
  readonly min: number
  readonly max: number
  readonly sum: number
  readonly sumsq: number
}

/** Periods follow each other from `from` on; without a duration there is one, up to `to` or the last value. */
export interface Periods {
  /** Left out: the time of the first value. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly duration?: Duration | undefined
}

/** Where a period begins and ends, ms; the end is exclusive. */
export interface Period {
  readonly number: number
  readonly start: number
  readonly end: number
}

interface Bucket {
  readonly period: Period
  count: number
  numbers: number
  min: number
  max: number
  sum: number
  /** Sum of squared distances from the mean, which keeps its precision where squares would not. */
  spread: number
  sumsq: number
  texts: number
  minText: string | undefined
  maxText: string | undefined
  /** Undefined once there are values that only their statistics are known of. */
  distinct: Set<string> | undefined
  lastTime: number
}

export const isWhole = (duration: Duration | undefined): boolean =>
  duration === undefined || (duration.months === 0 && duration.ms === 0)

/** The period that a time lies in. `from` is at or before it. */
export function periodOf(time: number, from: number, duration: Duration | undefined): Period {
  if (duration === undefined || isWhole(duration)) {
    return { number: 0, start: from, end: Number.POSITIVE_INFINITY }
  }
  assert(time >= from, 'periods begin with the first value')
  const { months, ms } = duration
  const roughly = months === 0 ? ms : months * 30.436_875 * 86_400_000 + ms
  let number = Math.max(0, Math.floor((time - from) / roughly))
  while (number > 0 && addDuration(from, duration, number) > time) number--
  while (addDuration(from, duration, number + 1) <= time) number++
  return {
    number,
    start: addDuration(from, duration, number),
    end: addDuration(from, duration, number + 1),
  }
}

/** Collects the values of one attribute instance. `from` has to be known by then. */
export function createAggregation(methods: ReadonlySet<AggregateMethod>, periods: Periods, from: number) {
  const buckets = new Map<number, Bucket>()
  let current: Bucket | undefined

  function bucketAt(time: number): Bucket {
    if (current !== undefined && time >= current.period.start && time < current.period.end) return current
    const period = periodOf(time, from, periods.duration)
    current = buckets.get(period.number)
    if (current === undefined) {
      if (buckets.size >= limits.aggregatePeriodsMax.value) {
        throw tooComplex(
          `more than ${limits.aggregatePeriodsMax.value} periods; ask for longer ones, or less time`,
        )
      }
      current = emptyBucket(period, methods.has('distinctCount'))
      buckets.set(period.number, current)
    }
    return current
  }

  return Object.freeze({
    add(time: number, value: Json): void {
      const bucket = bucketAt(time)
      bucket.count++
      bucket.lastTime = Math.max(bucket.lastTime, time)
      bucket.distinct?.add(typeof value === 'number' ? String(value) : JSON.stringify(value))
      const number = numberOf(value)
      if (number !== undefined) {
        addStatistics(bucket, { count: 1, min: number, max: number, sum: number, sumsq: number * number })
      } else if (typeof value === 'string') addText(bucket, value)
    },
    /** Adds values between two times of one period, when nobody has to know which are different. */
    addMany(firstTime: number, lastTime: number, statistics: Statistics): void {
      const bucket = bucketAt(firstTime)
      bucket.distinct = undefined
      bucket.count += statistics.count
      bucket.lastTime = Math.max(bucket.lastTime, lastTime)
      addStatistics(bucket, statistics)
    },
    /** The end of the period that a time lies in. */
    endOfPeriod: (time: number): number => periodOf(time, from, periods.duration).end,
    isEmpty: () => buckets.size === 0,
    results(): JsonObject {
      const ordered = [...buckets.values()].toSorted((a, b) => a.period.number - b.period.number)
      const shown: Record<string, Json> = {}
      for (const method of methods) {
        const rows = ordered.flatMap((bucket) => {
          const value = resultOf(bucket, method)
          return value === undefined ? [] : [[value, ...timesOf(bucket, periods)]]
        })
        if (rows.length > 0) shown[method] = rows
      }
      return shown
    },
  })
}

export type Aggregation = ReturnType<typeof createAggregation>

function emptyBucket(period: Period, isDistinct: boolean): Bucket {
  return {
    period,
    count: 0,
    numbers: 0,
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    sum: 0,
    spread: 0,
    sumsq: 0,
    texts: 0,
    minText: undefined,
    maxText: undefined,
    distinct: isDistinct ? new Set() : undefined,
    lastTime: period.start,
  }
}

const numberOf = (value: Json): number | undefined => {
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  return Array.isArray(value) ? value.length : undefined
}

function addStatistics(bucket: Bucket, { count, min, max, sum, sumsq }: Statistics): void {
  const distance = bucket.numbers === 0 ? 0 : sum / count - bucket.sum / bucket.numbers
  const spread = Math.max(0, sumsq - (sum * sum) / count)
  bucket.spread += spread + (distance * distance * bucket.numbers * count) / (bucket.numbers + count)
  bucket.numbers += count
  bucket.sum += sum
  bucket.sumsq += sumsq
  if (min < bucket.min) bucket.min = min
  if (max > bucket.max) bucket.max = max
}

function addText(bucket: Bucket, text: string): void {
  bucket.texts++
  if (bucket.minText === undefined || text < bucket.minText) bucket.minText = text
  if (bucket.maxText === undefined || text > bucket.maxText) bucket.maxText = text
}

function resultOf(bucket: Bucket, method: AggregateMethod): Json | undefined {
  const { count, numbers, distinct } = bucket
  if (method === 'totalCount') return count
  if (method === 'distinctCount') return distinct?.size
  if (numbers === 0) {
    if (method === 'min') return bucket.minText
    return method === 'max' ? bucket.maxText : undefined
  }
  switch (method) {
    case 'sum':
      return bucket.sum
    case 'avg':
      return bucket.sum / numbers
    case 'min':
      return bucket.min
    case 'max':
      return bucket.max
    case 'stddev':
      return Math.sqrt(bucket.spread / numbers)
    case 'sumsq':
      return bucket.sumsq
  }
}

function timesOf({ period, lastTime }: Bucket, { to }: Periods): [string, string] {
  const end = Number.isFinite(period.end) ? period.end : (to ?? lastTime)
  return [msToDateTime(period.start), msToDateTime(end)]
}
