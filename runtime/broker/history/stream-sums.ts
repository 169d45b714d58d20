/**
 * Sums over one stream (GS CIM 009, 4.5.19). A chunk inside one period contributes its statistics without
 * being read, so a period costs at most two chunk reads. A rolled-up hour belongs to the period in which it
 * begins. A chunk with corrected instances is read, and those instances are skipped; the caller adds their
 * replacements.
 */

import { identityOf } from '#broker/state/streams.ts'
import type { Aggregation } from '#ngsi-ld/history/aggregate.ts'
import { decodeChunk, type NumericSeries, type StreamInstance } from '#store/chunks/chunk-codec.ts'
import type { ChunkSummary, History } from '#store/history/history-rows.ts'
import type { RollUpRow } from '#store/history/roll-ups.ts'
import type { StreamCorrections } from './corrections.ts'
import { type DecodedChunks, isSameChunk, type Run } from './decoded-chunks.ts'
import { type ObservedWindow, type RecordedObservations, windowOf } from './evolution-sources.ts'
import type { AggregateQuery } from './temporal-requests.ts'

export interface StreamSumPorts {
  readonly history: History
  readonly decoded: DecodedChunks
}

/** The parts of one stream to sum up. */
export interface StreamPart {
  readonly s: number
  readonly name: string
  readonly dataset: string
  readonly type: string
  readonly own: StreamCorrections
  /** Roll-ups of older values, by hour. */
  readonly rolled: readonly RollUpRow[]
  readonly chunks: readonly ChunkSummary[]
  readonly tail: readonly StreamInstance[]
  readonly recorded: RecordedObservations
}

/**
 * Reading history in steps, so that other work can interleave. Each step yields whether the chunk listed
 * earlier still exists unchanged. If false, the reader starts again.
 */
export type HistorySteps<T> = Generator<boolean, T, undefined>

type Value = StreamInstance['value']

/** Times in a chunk, ascending, that may not count: corrected ones, and those also in change records. */
const touchedTimes = ({ own, recorded }: StreamPart, { t0, t1 }: ChunkSummary): readonly number[] => {
  const [corrected, known] = [own.timesWithin(t0, t1), recorded.timesWithin(t0, t1)]
  return known.length === 0 ? corrected : [...corrected, ...known].sort((a, b) => a - b)
}

const isReplaced = ({ own, recorded }: StreamPart, time: number, value: Value): boolean =>
  own.editOf(time, value) !== undefined || recorded.has(time, value)

/** Whether an observation of a stream counts: not erased, not corrected, and not also in a change record. */
export const isCounted = (part: StreamPart, one: Omit<StreamInstance, 'shape'>): boolean =>
  one.modified > part.own.erasedUntil && !isReplaced(part, one.time, one.value)

/** The time of the first value of a stream in the window; infinity if there is none. */
export function* firstTimeOf(
  ports: StreamSumPorts,
  part: StreamPart,
  query: AggregateQuery,
): HistorySteps<number> {
  let first = part.rolled[0]?.hour ?? Number.POSITIVE_INFINITY
  const isObserved = query.timeproperty === 'observedAt'
  const window = windowOf(query)
  const add = (time: number): void => {
    first = Math.min(first, time)
  }
  const adding = { window, isObserved, add }
  yield* addTail(part, part.tail, adding)
  for (const chunk of part.chunks) {
    // Chunks are in order of observedAt.
    if (isObserved && chunk.t0 >= first) break
    const isWhole = chunk.m0 > part.own.erasedUntil && touchedTimes(part, chunk).length === 0
    if (isObserved && isWhole && chunk.t0 >= window.from && chunk.t0 < window.to) add(chunk.t0)
    else yield addChunk(ports, part, chunk, adding)
  }
  return first
}

/** Adds the contents of a stream to a sum, which is created when there is a value. */
export function* addStream(
  ports: StreamSumPorts,
  part: StreamPart,
  query: AggregateQuery,
  sum: () => Aggregation,
): HistorySteps<void> {
  const window = windowOf(query)
  let known: Aggregation | undefined
  const own = (): Aggregation => {
    known ??= sum()
    return known
  }
  const isObserved = query.timeproperty === 'observedAt'
  const adding = { window, isObserved, add: (time: number, value: Value) => own().add(time, value) }
  const isSummable = isObserved && !query.methods.has('distinctCount')
  const seen = new Set<string>()
  const tailFrom = part.tail[0]?.time ?? Number.POSITIVE_INFINITY
  for (const { hour, ...statistics } of part.rolled) own().addMany(hour, hour, statistics)
  for (const chunk of part.chunks) {
    const { t0, t1, count, min, max, sum: total, sumsq } = chunk
    const isShared = tailFrom <= t1 && part.tail.some(({ time }) => time >= t0 && time <= t1)
    const touched = touchedTimes(part, chunk)
    const isWithin = t0 >= window.from && t1 < window.to
    if (!isSummable || isShared || min === null || chunk.m0 <= part.own.erasedUntil) {
      yield addChunk(ports, part, chunk, isShared ? { ...adding, seen } : adding)
    } else if (touched.length === 0 && isWithin && own().endOfPeriod(t0) > t1) {
      own().addMany(t0, t1, { count, min, max: max!, sum: total!, sumsq: sumsq! })
    } else yield addNumbers(ports, part, chunk, { window, touched, sum: own() })
  }
  yield* addTail(
    part,
    part.tail.filter((one) => !seen.has(identityOf(one.time, one.value))),
    adding,
  )
}

/** Observations between two steps, about as many as in a chunk. */
const tailPerStep = 1024

function* addTail(part: StreamPart, tail: StreamPart['tail'], adding: Adding): HistorySteps<void> {
  for (const [i, one] of tail.entries()) {
    addOne(part, one, adding)
    if (i % tailPerStep === tailPerStep - 1) yield true
  }
}

/**
 * Adds the counting numbers of a chunk in the window, all of a period at once. False if the chunk no longer
 * exists.
 */
function addNumbers(
  ports: StreamSumPorts,
  part: StreamPart,
  chunk: ChunkSummary,
  { window, touched, sum }: { window: ObservedWindow; touched: readonly number[]; sum: Aggregation },
): boolean {
  let next = 0
  // Values are in order of time.
  const isCounted = (time: number, value: number): boolean => {
    while (touched[next]! < time) next++
    return touched[next] !== time || !isReplaced(part, time, value)
  }
  const find = (): readonly Run[] | undefined => {
    const found = ports.decoded.numbersOf(part.s, chunk)
    return found && [...runsOf(found, { window, sum, isCounted })]
  }
  const borders = touched.length > 0 ? undefined : bordersOf(chunk, window, sum)
  const runs = borders === undefined ? find() : ports.decoded.runsOf(part.s, chunk, borders, find)
  for (const { first, last, statistics } of runs ?? []) sum.addMany(first, last, statistics)
  return runs !== undefined
}

/** The start, cuts and end of the part of a chunk to sum up; undefined if it is cut too often. */
function bordersOf({ t0, t1 }: ChunkSummary, window: ObservedWindow, sum: Aggregation): number[] | undefined {
  const borders = [Math.max(t0, window.from)]
  for (let end = sum.endOfPeriod(borders[0]!); end <= t1 && end < window.to; end = sum.endOfPeriod(end)) {
    borders.push(end)
    if (borders.length > bordersMax) return undefined
  }
  borders.push(Math.min(t1 + 1, window.to))
  return borders
}

/** A chunk with more borders than this is not cached. */
const bordersMax = 16

interface Runs {
  readonly window: ObservedWindow
  readonly sum: Aggregation
  readonly isCounted: (time: number, value: number) => boolean
}

/** Sums the values of a chunk within the window, one run per period. */
function* runsOf({ times, values }: NumericSeries, { window, sum, isCounted }: Runs): Generator<Run> {
  let i = 0
  while (i < times.length && times[i]! < window.from) i++
  while (i < times.length && times[i]! < window.to) {
    // A run begins with the first counting value.
    if (!isCounted(times[i]!, values[i]!)) {
      i++
      continue
    }
    const end = Math.min(sum.endOfPeriod(times[i]!), window.to)
    let count = 0
    let min = Number.POSITIVE_INFINITY
    let max = Number.NEGATIVE_INFINITY
    let total = 0
    let sumsq = 0
    const first = times[i]!
    let last = first
    for (; i < times.length && times[i]! < end; i++) {
      const value = values[i]!
      if (!isCounted(times[i]!, value)) continue
      count++
      last = times[i]!
      if (value < min) min = value
      if (value > max) max = value
      total += value
      sumsq += value * value
    }
    yield { first, last, statistics: { count, min, max, sum: total, sumsq } }
  }
}

interface Adding {
  readonly window: ObservedWindow
  readonly isObserved: boolean
  readonly add: (time: number, value: Value) => void
  /** Collects identities for comparison with the tail. */
  readonly seen?: Set<string>
}

/** Adds the values of a chunk one by one. False if the chunk no longer exists. */
function addChunk(ports: StreamSumPorts, part: StreamPart, chunk: ChunkSummary, adding: Adding): boolean {
  const { window, isObserved, seen } = adding
  const isElsewhen = !isObserved && (chunk.m1 < window.from || chunk.m0 >= window.to)
  // A chunk that shares observations with the tail is always read: a repeated observation counts when first
  // sent.
  if ((isElsewhen && seen === undefined) || chunk.m1 <= part.own.erasedUntil) return true
  const row = ports.history.chunkAt(part.s, chunk.t0)
  if (row === undefined || !isSameChunk(row, chunk)) return false
  const { times, modified, values } = decodeChunk(row)
  for (let i = 0; i < times.length; i++) {
    const one = { time: times[i]!, modified: modified[i]!, value: values[i]! }
    seen?.add(identityOf(one.time, one.value))
    addOne(part, one, adding)
  }
  return true
}

function addOne(
  part: StreamPart,
  one: Omit<StreamInstance, 'shape'>,
  { window, isObserved, add }: Adding,
): void {
  const { time, modified, value } = one
  const at = isObserved ? time : modified
  if (at >= window.from && at < window.to && isCounted(part, one)) add(at, value)
}
