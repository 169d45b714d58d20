/**
 * Folds history: packs the unfolded tail of one stream into chunks, and the log records of one entity into
 * its change history. It runs in the writer thread, inside the commit that carries it. Afterwards the chunks
 * of the stream are still disjoint in time: late instances are merged into the chunk whose span contains
 * them.
 */

import { limits } from '#base/limits/limits.ts'
import { footprintOf } from '#base/process/footprint.ts'
import { assert } from '#base/register/errors.ts'
import { failpoint } from '#base/register/failpoints.ts'
import type { Json } from '#contract/pipeline.ts'
import { decodeChunk, encodeChunk, type Series, type StreamInstance } from '#store/chunks/chunk-codec.ts'
import { slotOf } from '#store/chunks/chunk-key.ts'
import type { RowOf } from '#store/chunks/sql-value.ts'
import { decodeEntityChanges, encodeEntityChanges, isOpen } from './entity-changes.ts'
import type { ChunkRow, History, historyWrites } from './history-rows.ts'

/** The tail of one stream, in arrival order. `folded` is the last log number it includes. */
export interface StreamFold {
  readonly s: number
  readonly folded: number
  readonly times: Float64Array
  readonly modified: Float64Array
  /** NaN for a non-numeric value, whose JSON value is in `others` by position. */
  readonly values: Float64Array
  readonly others: readonly (readonly [position: number, value: Json])[]
  readonly shapes: readonly string[]
  readonly shapeOf?: readonly number[] | undefined
}

/**
 * Change records of one entity by log number, oldest first. The writer thread reads them when it folds them.
 */
export interface EntityFold {
  readonly rid: number
  readonly numbers: readonly number[]
}

/** 9999-12-31, the last possible DateTime. */
const latestMs = 253_402_300_799_999

type Run = (row: RowOf<typeof historyWrites>) => void

/** Writes the chunks of one stream and its cursor. Returns the number of chunks written. */
export function foldStream(fold: StreamFold, history: History, run: Run): number {
  const last = history.lastChunk(fold.s)
  const written = foldInOrder(fold, last, run) ?? foldAnyhow(fold, last, { history, run })
  failpoint('writer:mid-fold')
  run(['stream.folded', fold.folded, fold.s])
  return written
}

/** Fast path for the usual case: numbers of one shape, in order, after all folded instances. */
function foldInOrder(fold: StreamFold, last: ChunkRow | undefined, run: Run): number | undefined {
  const { s, times, shapes } = fold
  const isPlain = fold.others.length === 0 && shapes.length === 1 && isAscending(times)
  if (!isPlain || (last !== undefined && times[0]! <= last.t1)) return undefined
  // A slot holds at most one chunk.
  const joins = last !== undefined && (isPartial(last) || slotOf(times[0]!) === slotOf(last.t1))
  if (!joins) return insertNumbers(s, { ...fold, shapeOf: undefined }, run)
  const open = decodeChunk(last)
  if (!(open.values instanceof Float64Array) || open.shapes[0] !== shapes[0]) return undefined
  run(['chunk.delete', s, slotOf(last.t0)])
  const series = {
    times: joined(open.times, times),
    modified: joined(open.modified, fold.modified),
    values: joined(open.values, fold.values),
    shapes,
  }
  return insertNumbers(s, series, run)
}

function isAscending(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if (times[i]! <= times[i - 1]!) return false
  return true
}

function joined(a: Float64Array, b: Float64Array): Float64Array {
  const whole = new Float64Array(a.length + b.length)
  whole.set(a)
  whole.set(b, a.length)
  return whole
}

interface NumberSeries extends Series {
  readonly values: Float64Array
}

function insertNumbers(s: number, { times, modified, values, shapes }: NumberSeries, run: Run): number {
  let written = 0
  for (let from = 0; from < times.length; written++) {
    let to = Math.min(from + limits.chunkObservations.value, times.length)
    while (to < times.length && slotOf(times[to]!) === slotOf(times[to - 1]!)) to++
    const [t, m, v] = [times, modified, values].map((column) => column.subarray(from, to))
    insertChunk(s, { times: t!, modified: m!, values: v!, shapes }, run)
    from = to
  }
  return written
}

/** True when the last chunk of a stream is small enough to be repacked together with later instances. */
const isPartial = ({ count, body }: ChunkRow): boolean =>
  count < limits.chunkPartialMin.value && body.length < limits.chunkBytesMax.value / 4

function foldAnyhow(
  fold: StreamFold,
  last: ChunkRow | undefined,
  { history, run }: { history: History; run: Run },
): number {
  const instances = sortInstances(instancesOf(fold))
  const fresh: StreamInstance[] = []
  const late = new Map<number, { chunk: ChunkRow; instances: StreamInstance[] }>()
  for (const instance of instances) {
    const chunk =
      last !== undefined && slotOf(instance.time) <= slotOf(last.t1)
        ? chunkFor(fold.s, instance, history)
        : undefined
    if (chunk === undefined) fresh.push(instance)
    else {
      const group = late.get(chunk.t0) ?? { chunk, instances: [] }
      group.instances.push(instance)
      late.set(chunk.t0, group)
    }
  }
  let written = 0
  for (const { chunk, instances: more } of late.values()) {
    run(['chunk.delete', fold.s, slotOf(chunk.t0)])
    written += insertChunks(fold.s, sortInstances([...instancesOfChunk(chunk), ...more]), run)
  }
  if (fresh.length > 0) {
    const open = history.lastChunk(fold.s)
    const joins = open !== undefined && isPartial(open)
    if (joins) run(['chunk.delete', fold.s, slotOf(open.t0)])
    written += insertChunks(fold.s, joins ? [...instancesOfChunk(open), ...fresh] : fresh, run)
  }
  return written
}

/** Appends the records of one entity to its change history, extending the last part while it is open. */
export function foldEntity({ rid, numbers }: EntityFold, history: History, run: Run): void {
  const logged = numbers.map((number) => {
    const change = history.loggedChange(number)
    assert(change !== undefined, 'the log holds every record that is not folded')
    return change
  })
  const last = history.lastEntityChanges(rid)
  const texts = logged.map(({ text }) => text)
  const [n1, t1] = [numbers.at(-1)!, logged.at(-1)!.at]
  if (last !== undefined && isOpen(last)) {
    const records = [...decodeEntityChanges(last), ...texts]
    run(['entity-history.extend', n1, t1, records.length, encodeEntityChanges(records), rid, last.n0])
    return
  }
  const [n0, t0] = [numbers[0]!, logged[0]!.at]
  run(['entity-history.insert', rid, n0, n1, t0, t1, texts.length, encodeEntityChanges(texts)])
}

/**
 * Splits at changes of shape, at changes between numbers and other values, and at the size limits of a chunk.
 * Slots stay unique.
 */
function insertChunks(s: number, instances: readonly StreamInstance[], run: Run): number {
  let written = 0
  let from = 0
  while (from < instances.length) {
    const to = cutAfter(instances, from)
    insertChunk(s, seriesOf(instances.slice(from, to)), run)
    written++
    from = to
  }
  return written
}

function insertChunk(s: number, series: Series, run: Run): void {
  const { t0, t1, count, min, max, sum, sumsq, codec, shapes, body } = encodeChunk(series)
  const [m0, m1] = spanOf(series.modified)
  run(['chunk.insert', s, slotOf(t0), t0, t1, count, min, max, sum, sumsq, codec, shapes, body, m0, m1])
}

/** The smallest and the largest of some times. */
function spanOf(times: ArrayLike<number>): readonly [least: number, greatest: number] {
  let least = Number.POSITIVE_INFINITY
  let greatest = Number.NEGATIVE_INFINITY
  for (let i = 0; i < times.length; i++) {
    least = Math.min(least, times[i]!)
    greatest = Math.max(greatest, times[i]!)
  }
  return [least, greatest]
}

function cutAfter(instances: readonly StreamInstance[], from: number): number {
  const first = instances[from]!
  let bytes = 0
  let to = from + 1
  for (; to < instances.length; to++) {
    const next = instances[to]!
    bytes += footprintOf(instances[to - 1]!.value)
    const cut =
      to - from >= limits.chunkObservations.value ||
      bytes >= limits.chunkBytesMax.value ||
      next.shape !== first.shape ||
      (typeof next.value === 'number') !== (typeof first.value === 'number')
    // A slot holds at most one chunk, so instances of one slot stay together whatever their shape.
    if (cut && slotOf(next.time) > slotOf(instances[to - 1]!.time)) break
  }
  return to
}

function chunkFor(s: number, instance: StreamInstance, history: History): ChunkRow | undefined {
  const [next] = history.chunks(s, instance.time, latestMs)
  return history.chunkAt(s, instance.time) ?? next
}

function instancesOf(fold: StreamFold): StreamInstance[] {
  const others = new Map(fold.others)
  return Array.from(fold.times, (time, i) => ({
    time,
    modified: fold.modified[i]!,
    value: others.has(i) ? others.get(i)! : fold.values[i]!,
    shape: fold.shapes[fold.shapeOf?.[i] ?? 0]!,
  }))
}

function instancesOfChunk(chunk: ChunkRow): StreamInstance[] {
  const series = decodeChunk(chunk)
  return Array.from(series.times, (time, i) => ({
    time,
    modified: series.modified[i]!,
    value: series.values[i]!,
    shape: series.shapes[series.shapeOf?.[i] ?? 0]!,
  }))
}

/** Orders by observedAt; equal times keep their order of arrival; exact duplicates are dropped. */
function sortInstances(instances: StreamInstance[]): StreamInstance[] {
  const sorted = instances.toSorted((a, b) => a.time - b.time)
  return sorted.filter((instance, i) => {
    for (let j = i - 1; j >= 0 && sorted[j]!.time === instance.time; j--) {
      if (sameValue(sorted[j]!.value, instance.value)) return false
    }
    return true
  })
}

function sameValue(a: Json, b: Json): boolean {
  return (
    a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))
  )
}

function seriesOf(instances: readonly StreamInstance[]): Series {
  const shapes = [...new Set(instances.map((instance) => instance.shape))]
  return {
    times: Float64Array.from(instances, (instance) => instance.time),
    modified: Float64Array.from(instances, (instance) => instance.modified),
    values: instances.map((instance) => instance.value),
    shapes,
    shapeOf: shapes.length > 1 ? instances.map((instance) => shapes.indexOf(instance.shape)) : undefined,
  }
}
