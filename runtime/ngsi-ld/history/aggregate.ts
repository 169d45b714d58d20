/**
 * Aggregates of an attribute over periods of time (GS CIM 009, 4.5.19). Values are added one by one, or in
 * bulk by their known statistics; each method returns results as `[value, start, end]`. The kind of a value
 * determines its number: arrays count by their size, booleans are 0 and 1. Texts and times have an order,
 * times of day a mean; all other values and relationships are only counted. A period is omitted for methods
 * that do not apply to its values.
 */

import { limits } from '#base/limits/limits.ts'
import { assert } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { dateTimeToMs, isDate, isTime, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { addDuration, type Duration } from '#ngsi-ld/values/duration.ts'
import { isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

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

/** Statistics of numbers, as history chunks store them. */
export interface Statistics {
  readonly count: number
  readonly min: number
  readonly max: number
  readonly sum: number
  readonly sumsq: number
}

/** Consecutive periods from `from`; without a duration there is one, up to `to` or the last value. */
export interface Periods {
  /** Default: the time of the first value. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly duration?: Duration | undefined
}

/** Start and end of a period, ms; the end is exclusive. */
export interface Period {
  readonly number: number
  readonly start: number
  readonly end: number
}

/** A value that is not a number but comparable with values of its type. */
interface Ordered {
  readonly type: string
  readonly key: number | string
  readonly value: Json
}

/** Kinds of attributes whose values the methods evaluate; other kinds are only counted. */
const measured: ReadonlySet<string> = new Set(['Property', 'ListProperty', 'JsonProperty'])

export const isWhole = (duration: Duration | undefined): boolean =>
  duration === undefined || (duration.months === 0 && duration.ms === 0)

/** The period that contains a time. `from` must not be later. */
export function periodOf(time: number, from: number, duration: Duration | undefined): Period {
  if (duration === undefined || isWhole(duration)) {
    return { number: 0, start: from, end: Number.POSITIVE_INFINITY }
  }
  assert(time >= from, 'a value cannot precede the first period')
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

/** Collects the values of one attribute instance of a kind. `from` must be known in advance. */
export function createAggregation(
  methods: ReadonlySet<AggregateMethod>,
  periods: Periods,
  from: number,
  kind = 'Property',
) {
  const buckets = new Map<number, Bucket>()
  let current: Bucket | undefined

  function bucketAt(time: number): Bucket {
    if (current !== undefined && time >= current.period.start && time < current.period.end) return current
    const period = periodOf(time, from, periods.duration)
    current = buckets.get(period.number)
    if (current === undefined) {
      if (buckets.size >= limits.aggregatePeriodsMax.value) {
        throw tooComplex(
          `the result has more than ${limits.aggregatePeriodsMax.value} periods; request longer periods or a shorter time range`,
        )
      }
      current = emptyBucket(period, methods.has('distinctCount'))
      buckets.set(period.number, current)
    }
    return current
  }

  function* resultsOf(): Generator<true, JsonObject, undefined> {
    const ordered = [...buckets.values()].toSorted((a, b) => a.period.number - b.period.number)
    const shown: Record<string, Json> = {}
    for (const method of methods) {
      const rows: Json[] = []
      for (const [i, bucket] of ordered.entries()) {
        const value = resultOf(bucket, method)
        if (value !== undefined) rows.push([value, ...timesOf(bucket, periods)])
        if (i % periodsPerStep === periodsPerStep - 1) yield true
      }
      if (rows.length > 0) shown[method] = rows
    }
    return shown
  }

  return Object.freeze({
    add(time: number, value: Json): void {
      const bucket = bucketAt(time)
      bucket.count++
      bucket.lastTime = Math.max(bucket.lastTime, time)
      bucket.distinct?.add(typeof value === 'number' ? String(value) : JSON.stringify(value))
      if (!measured.has(kind)) return
      const number = numberOf(value)
      if (number !== undefined) {
        addStatistics(bucket, { count: 1, min: number, max: number, sum: number, sumsq: number * number })
        if (typeof value === 'object') bucket.hasSizes = true
      } else addOrdered(bucket, orderedOf(value))
    },
    /** Adds values between two times of one period; not usable when distinct values are counted. */
    addMany(firstTime: number, lastTime: number, statistics: Statistics): void {
      const bucket = bucketAt(firstTime)
      bucket.distinct = undefined
      bucket.count += statistics.count
      bucket.lastTime = Math.max(bucket.lastTime, lastTime)
      addStatistics(bucket, statistics)
    },
    /** The end of the period that contains a time. */
    endOfPeriod: (time: number): number => periodOf(time, from, periods.duration).end,
    isEmpty: () => buckets.size === 0,
    results(): JsonObject {
      const steps = resultsOf()
      for (;;) {
        const { done, value } = steps.next()
        if (done === true) return value
      }
    },
    /** As `results`, in steps, because there may be many periods. */
    stepsOfResults: resultsOf,
  })
}

const periodsPerStep = 500

export type Aggregation = ReturnType<typeof createAggregation>

function emptyBucket(period: Period, isDistinct: boolean) {
  return {
    period,
    count: 0,
    numbers: 0,
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    sum: 0,
    /** Sum of squared distances from the mean; keeps its precision where a sum of squares would lose it. */
    spread: 0,
    sumsq: 0,
    /** All numbers are integers, so that their sums are exact up to the safe integer limit. */
    isIntegral: true,
    /** Some numbers are sizes of arrays. */
    hasSizes: false,
    least: undefined as Ordered | undefined,
    greatest: undefined as Ordered | undefined,
    /** Statistics of times of day, ms. */
    clock: { count: 0, sum: 0 },
    /** Undefined after values were added by statistics only. */
    distinct: isDistinct ? new Set<string>() : undefined,
    lastTime: period.start,
  }
}

type Bucket = ReturnType<typeof emptyBucket>

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
  bucket.isIntegral &&= [min, max, sum, sumsq].every(Number.isInteger)
  if (min < bucket.min) bucket.min = min
  if (max > bucket.max) bucket.max = max
}

const timeType = /^(?:https:\/\/uri\.etsi\.org\/ngsi-ld\/)?(DateTime|Date|Time)$/

/** Compares texts by code unit; DateTime, Date and Time (typed values) by the instant that they denote. */
function orderedOf(value: Json): Ordered | undefined {
  if (typeof value === 'string') return { type: 'String', key: value, value }
  const text = isObject(value) ? own(value, '@value') : undefined
  if (!isObject(value) || typeof text !== 'string') return undefined
  const name = own(value, '@type')
  const type = typeof name === 'string' ? timeType.exec(name)?.[1] : undefined
  if (type === undefined) return undefined
  const key =
    type === 'DateTime'
      ? dateTimeToMs(text)
      : type === 'Date'
        ? isDate(text) && Date.parse(text)
        : isTime(text) && dateTimeToMs(`1970-01-01T${text}`)
  return typeof key === 'number' ? { type, key, value } : undefined
}

/** If the values have several types, only those of the first type are ordered. */
function addOrdered(bucket: Bucket, one: Ordered | undefined): void {
  if (one === undefined || (bucket.least !== undefined && bucket.least.type !== one.type)) return
  if (bucket.least === undefined || one.key < bucket.least.key) bucket.least = one
  if (bucket.greatest === undefined || one.key > bucket.greatest.key) bucket.greatest = one
  if (one.type !== 'Time') return
  bucket.clock.count++
  bucket.clock.sum += one.key as number
}

function resultOf(bucket: Bucket, method: AggregateMethod): Json | undefined {
  const { count, numbers, distinct } = bucket
  if (method === 'totalCount') return count
  if (method === 'distinctCount') return distinct?.size
  if (numbers === 0) {
    if (method === 'min') return bucket.least?.value
    if (method === 'max') return bucket.greatest?.value
    return method === 'avg' ? meanTime(bucket.clock) : undefined
  }
  if (bucket.hasSizes && (method === 'stddev' || method === 'sumsq')) return undefined
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
      return deviationOf(bucket)
    case 'sumsq':
      return bucket.sumsq
  }
}

/** The standard deviation, with the numbers as a whole population. */
function deviationOf({ isIntegral, numbers, sum, sumsq, spread }: Bucket): number {
  const [squares, square] = [numbers * sumsq, sum * sum]
  const isExact = isIntegral && Number.isSafeInteger(squares) && Number.isSafeInteger(square)
  return Math.sqrt(isExact ? (squares - square) / (numbers * numbers) : spread / numbers)
}

/** The mean of times of day. */
function meanTime({ count, sum }: Bucket['clock']): Json | undefined {
  if (count === 0) return undefined
  return { '@type': 'Time', '@value': msToDateTime(Math.round(sum / count)).slice('1970-01-01T'.length) }
}

function timesOf({ period, lastTime }: Bucket, { to }: Periods): [string, string] {
  const end = Number.isFinite(period.end) ? period.end : (to ?? lastTime)
  return [msToDateTime(period.start), msToDateTime(end)]
}
