/**
 * The format of one chunk: up to about a thousand instances of one stream, ordered by observedAt, stored by
 * column and compressed (zstd level 1). Columns: observedAt (delta of delta), modifiedAt (difference to
 * observedAt, delta), value.
 *
 * codec 1: numbers scaled to integers, delta-coded, bit-exact; one shape
 * codec 2: numbers as float64; one shape
 * codec 3: any JSON values, with a shape index each
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { fromScaled, isExact, scaleOf, toScaled } from './decimal.ts'
import { type ByteReader, type ByteWriter, createByteReader, createByteWriter } from './varint.ts'

/**
 * Instances of one stream, ordered by time. `shapes` are JSON texts of instances without value and
 * observedAt.
 */
export interface Series {
  readonly times: Float64Array
  readonly modified: Float64Array
  readonly values: readonly Json[] | Float64Array
  readonly shapes: readonly string[]
  /** Index into `shapes` per instance; absent when there is only one shape. */
  readonly shapeOf?: readonly number[] | undefined
}

/** One instance of a stream; `shape` as in `Series`. */
export interface StreamInstance {
  readonly time: number
  readonly modified: number
  readonly value: Json
  readonly shape: string
}

export interface EncodedChunk {
  readonly t0: number
  readonly t1: number
  readonly count: number
  readonly min: number | null
  readonly max: number | null
  readonly sum: number | null
  readonly sumsq: number | null
  readonly codec: number
  readonly shapes: string
  readonly body: Uint8Array
}

const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export function encodeChunk(series: Series): EncodedChunk {
  const count = series.times.length
  const numbers = numbersOf(series)
  const scale = numbers === undefined ? -1 : commonScale(numbers)
  const codec = numbers === undefined ? 3 : scale < 0 ? 2 : 1
  const writer = createByteWriter(count * 6 + 64)
  writeTimes(writer, series.times, series.modified)
  if (codec === 1) writeScaled(writer, numbers!, scale)
  else if (codec === 2) for (const value of numbers!) writer.float64(value)
  else writer.bytes(Buffer.from(JSON.stringify([series.shapeOf ?? null, Array.from(series.values)])))
  return {
    t0: series.times[0]!,
    t1: series.times[count - 1]!,
    count,
    ...statisticsOf(numbers),
    codec,
    shapes: JSON.stringify(series.shapes),
    body: zstdCompressSync(writer.finish(), level),
  }
}

type StoredChunk = Pick<EncodedChunk, 'count' | 'codec' | 'shapes' | 'body'>

/** @throws GatewayError store.corrupt when the codec is unknown or the body is damaged. */
export function decodeChunk(chunk: StoredChunk): Series {
  const reader = createByteReader(inflate(chunk.body))
  const times = new Float64Array(chunk.count)
  const modified = new Float64Array(chunk.count)
  readTimes(reader, times)
  readModified(reader, times, modified)
  const shapes = JSON.parse(chunk.shapes) as string[]
  if (chunk.codec === 3) {
    const [shapeOf, values] = JSON.parse(Buffer.from(reader.bytes()).toString()) as [number[] | null, Json[]]
    return { times, modified, values, shapes, shapeOf: shapeOf ?? undefined }
  }
  const values = new Float64Array(chunk.count)
  readNumbers(reader, chunk.codec, values)
  return { times, modified, values, shapes }
}

/** A chunk of numbers in a compact form for memory: regular times and short decimals need few bytes. */
export interface CompactNumbers {
  readonly count: number
  /** All times, or the first time and the constant step to the next one, ms. */
  readonly times: Float64Array | { readonly first: number; readonly step: number }
  /** All values, or integers that `scale` converts to the values (see decimal.ts). */
  readonly values: Float64Array | { readonly integers: Int32Array; readonly scale: number }
  /** Bytes of times and values together. */
  readonly bytes: number
}

/**
 * Decodes only times and values of a numeric chunk; undefined for other chunks.
 * @throws GatewayError store.corrupt when the body is damaged.
 */
export function compactNumbers({ count, codec, body }: StoredChunk): CompactNumbers | undefined {
  if (codec === 3) return undefined
  const reader = createByteReader(inflate(body))
  const times = compactTimes(reader, count)
  reader.skip(count)
  const values = compactValues(reader, codec, count)
  const bytes =
    ('step' in times ? 0 : times.byteLength) +
    ('scale' in values ? values.integers.byteLength : values.byteLength)
  return { count, times, values, bytes }
}

function compactTimes(reader: ByteReader, count: number): CompactNumbers['times'] {
  const times = new Float64Array(count)
  readTimes(reader, times)
  const first = times[0]!
  const step = count > 1 ? times[1]! - first : 0
  return times.every((time, i) => time === first + i * step) ? { first, step } : times
}

function compactValues(reader: ByteReader, codec: number, count: number): CompactNumbers['values'] {
  const values = new Float64Array(count)
  if (codec !== 1) {
    readNumbers(reader, codec, values)
    return values
  }
  const scale = readIntegers(reader, values)
  if (values.every((integer) => integer === (integer | 0)))
    return { integers: Int32Array.from(values), scale }
  return values.map((integer) => fromScaled(integer, scale))
}

/** Times and values of a numeric chunk. */
export interface NumericSeries {
  readonly times: Float64Array
  readonly values: Float64Array
}

/** Expands compact chunks one at a time. Each call overwrites the result of the previous call. */
export function createNumberReader(): (compact: CompactNumbers) => NumericSeries {
  let room = { times: new Float64Array(0), values: new Float64Array(0) }
  return ({ count, times, values }) => {
    if (room.times.length < count) room = { times: new Float64Array(count), values: new Float64Array(count) }
    const expanded = { times: room.times.subarray(0, count), values: room.values.subarray(0, count) }
    if ('step' in times) for (let i = 0; i < count; i++) expanded.times[i] = times.first + i * times.step
    else expanded.times.set(times)
    if ('scale' in values)
      for (let i = 0; i < count; i++) expanded.values[i] = fromScaled(values.integers[i]!, values.scale)
    else expanded.values.set(values)
    return expanded
  }
}

function inflate(body: Uint8Array): Uint8Array {
  try {
    return zstdDecompressSync(body)
  } catch (error) {
    throw new GatewayError('store.corrupt', 'a chunk cannot be decompressed', {}, error)
  }
}

function numbersOf(series: Series): Float64Array | undefined {
  if (series.shapes.length > 1) return undefined
  if (series.values instanceof Float64Array) return series.values
  return series.values.every((value) => typeof value === 'number')
    ? Float64Array.from(series.values as number[])
    : undefined
}

function commonScale(numbers: Float64Array): number {
  let scale = 0
  for (const value of numbers) {
    scale = scaleOf(value, scale)
    if (scale < 0) return -1
  }
  // A larger scale must still be exact for the values checked before it.
  return numbers.every((value) => isExact(value, scale)) ? scale : -1
}

function statisticsOf(numbers: Float64Array | undefined) {
  if (numbers === undefined) return { min: null, max: null, sum: null, sumsq: null }
  let min = Number.POSITIVE_INFINITY
  let max = Number.NEGATIVE_INFINITY
  let sum = 0
  let sumsq = 0
  for (const value of numbers) {
    if (value < min) min = value
    if (value > max) max = value
    sum += value
    sumsq += value * value
  }
  return { min, max, sum, sumsq }
}

function writeTimes(writer: ByteWriter, times: Float64Array, modified: Float64Array): void {
  let time = 0
  let step = 0
  for (const next of times) {
    writer.signed(next - time - step)
    step = next - time
    time = next
  }
  let delay = 0
  for (let i = 0; i < times.length; i++) {
    const next = modified[i]! - times[i]!
    writer.signed(next - delay)
    delay = next
  }
}

function readTimes(reader: ByteReader, times: Float64Array): void {
  reader.sums(times)
  let time = 0
  for (let i = 0; i < times.length; i++) times[i] = time += times[i]!
}

function readModified(reader: ByteReader, times: Float64Array, modified: Float64Array): void {
  reader.sums(modified)
  for (let i = 0; i < modified.length; i++) modified[i] = times[i]! + modified[i]!
}

function writeScaled(writer: ByteWriter, numbers: Float64Array, scale: number): void {
  writer.byte(scale)
  let before = 0
  for (const value of numbers) {
    const integer = toScaled(value, scale)
    writer.signed(integer - before)
    before = integer
  }
}

function readNumbers(reader: ByteReader, codec: number, values: Float64Array): void {
  if (codec === 1) {
    const scale = readIntegers(reader, values)
    for (let i = 0; i < values.length; i++) values[i] = fromScaled(values[i]!, scale)
  } else if (codec === 2) for (let i = 0; i < values.length; i++) values[i] = reader.float64()
  else throw new GatewayError('store.corrupt', `chunk of unknown codec ${codec}`)
}

/** Reads scaled integers and returns their scale. */
function readIntegers(reader: ByteReader, integers: Float64Array): number {
  const scale = reader.byte()
  reader.sums(integers)
  return scale
}
