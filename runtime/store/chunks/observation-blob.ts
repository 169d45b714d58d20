/**
 * The format of one log blob: the observations of one commit in arrival order, delta-coded, about 6 to 10
 * bytes each. In memory they are a flat Float64Array of triples (stream and late flag, observedAt in ms,
 * value), which is transferred to a worker thread without copying. A non-numeric value is NaN there, and its
 * JSON value is in `others` by position.
 *
 * The first number of a triple is stream * 2, plus 1 for a late observation that replay must not make
 * current.
 *
 * Bytes: version 1, count, then per observation: first (signed delta), time (signed delta), and the value as
 * zigzag(integer) * 8 + scale for decimals, or 7 followed by a float64. `others` follows as JSON. Version 2
 * holds times of a clock that was not set: its JSON is an object that also has the boot and the offset of
 * that clock.
 */

import { GatewayError } from '#base/register/errors.ts'
import type { BootTime } from '#base/time/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import { fromScaled, scaleOf, toScaled } from './decimal.ts'
import { createByteReader, createByteWriter } from './varint.ts'

export interface ObservationBatch {
  /** stream, observedAt, value, stream, observedAt, value ... */
  readonly triples: Float64Array
  /** Position (0-based) and JSON value of each non-numeric observation. */
  readonly others: readonly (readonly [position: number, value: Json])[]
  /** The clock of the times, if it was not set. */
  readonly unset?: BootTime | undefined
}

const rawTag = 7

export function encodeObservations(batch: ObservationBatch): Uint8Array {
  const { triples, others, unset } = batch
  const writer = createByteWriter(64 + triples.length * 4)
  writer.byte(unset === undefined ? 1 : 2)
  writer.unsigned(triples.length / 3)
  let stream = 0
  let time = 0
  for (let i = 0; i < triples.length; i += 3) {
    writer.signed(triples[i]! - stream)
    writer.signed(triples[i + 1]! - time)
    stream = triples[i]!
    time = triples[i + 1]!
    const value = triples[i + 2]!
    const scale = scaleOf(value)
    if (scale < 0) {
      writer.byte(rawTag)
      writer.float64(value)
    } else {
      const integer = toScaled(value, scale)
      writer.unsigned((integer >= 0 ? integer * 2 : -integer * 2 - 1) * 8 + scale)
    }
  }
  const { boot, offset } = unset ?? {}
  const rest = unset === undefined ? others : { others, boot, offset }
  if (unset !== undefined || others.length > 0) writer.bytes(Buffer.from(JSON.stringify(rest)))
  return writer.finish()
}

/** @throws GatewayError store.corrupt when the bytes are not a blob of a known version. */
export function decodeObservations(bytes: Uint8Array): ObservationBatch {
  const reader = createByteReader(bytes)
  const version = reader.byte()
  if (version !== 1 && version !== 2)
    throw new GatewayError('store.corrupt', `log blob of unknown version ${version}`)
  const triples = new Float64Array(reader.unsigned() * 3)
  let stream = 0
  let time = 0
  for (let i = 0; i < triples.length; i += 3) {
    triples[i] = stream += reader.signed()
    triples[i + 1] = time += reader.signed()
    triples[i + 2] = readValue(reader)
  }
  const rest = reader.bytes()
  if (rest.length === 0) return { triples, others: [] }
  const parsed = JSON.parse(Buffer.from(rest).toString()) as unknown
  if (version === 1) return { triples, others: parsed as [number, Json][] }
  const { others, boot, offset } = parsed as BootTime & { others: [number, Json][] }
  return { triples, others, unset: { boot, offset } }
}

function readValue(reader: ReturnType<typeof createByteReader>): number {
  const coded = reader.unsigned()
  const scale = coded % 8
  if (scale === rawTag) return reader.float64()
  const zigzag = Math.floor(coded / 8)
  return fromScaled(zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2, scale)
}
