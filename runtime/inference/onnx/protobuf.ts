/**
 * The wire format of Protocol Buffers, as far as ONNX files need it: fields of a message in the order of the
 * file, and their writing. Groups do not exist in ONNX and are refused. Every offset is checked, so that any
 * bytes give fields or an error. The ONNX runtime reads the same bytes by its own parser. Bytes that it
 * would read otherwise must be an error here, or the checks would see another model.
 */
import { GatewayError } from '#base/register/errors.ts'

/** One field of a message. */
export interface WireField {
  readonly field: number
  /** Value of a varint; undefined for other kinds. */
  readonly number: number | undefined
  /** Content of a field with a length, such as a text or a message; undefined for other kinds. */
  readonly bytes: Uint8Array | undefined
}

/** Keys have 32 bits; parsers of other languages drop the rest. */
const keyMax = 2 ** 32 - 1

/** @throws model.invalid if the bytes are no message. */
export function* fieldsOf(message: Uint8Array): Generator<WireField> {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++]
      if (byte === undefined || shift > 2 ** 63) throw damaged()
      value += (byte & 0x7f) * shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const key = varint()
    if (key > keyMax) throw damaged()
    const field = Math.floor(key / 8)
    const kind = key % 8
    if (kind === 0) {
      yield { field, number: varint(), bytes: undefined }
      continue
    }
    const length = kind === 1 ? 8 : kind === 5 ? 4 : kind === 2 ? varint() : Number.NaN
    if (!(at + length <= message.length)) throw damaged()
    yield { field, number: undefined, bytes: kind === 2 ? message.subarray(at, at + length) : undefined }
    at += length
  }
}

const damaged = (): GatewayError =>
  new GatewayError('model.invalid', 'the file is not an ONNX model: its protobuf encoding is damaged')

/** A varint field. */
export function varintField(field: number, value: number): Uint8Array {
  return Uint8Array.from([...varintBytes(field * 8), ...varintBytes(value)])
}

/** A field of bytes, or of several parts one after the other. */
export function bytesField(field: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Uint8Array.from([...varintBytes(field * 8 + 2), ...varintBytes(length)]), ...parts])
}

export const textField = (field: number, text: string): Uint8Array => bytesField(field, Buffer.from(text))

/** A field of a 32-bit number. */
export function floatField(field: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return Buffer.concat([Uint8Array.from(varintBytes(field * 8 + 5)), bytes])
}

/** Base 128, least digits first. @param value a whole number from 0 to 2^53. */
function varintBytes(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) + 128)
  }
}
