/**
 * Writer and reader for byte strings of variable-length integers (LEB128, with zigzag for signed values).
 * They are exact for every integer that JavaScript can represent (up to 2^53). The codecs of log blobs and
 * chunks use them.
 */
import { GatewayError } from '#base/register/errors.ts'

export interface ByteWriter {
  byte(value: number): void
  /** Unsigned integer below 2^53. */
  unsigned(value: number): void
  /** Signed integer, magnitude below 2^52. */
  signed(value: number): void
  float64(value: number): void
  bytes(value: Uint8Array): void
  finish(): Uint8Array
}

export function createByteWriter(capacity = 1024): ByteWriter {
  let buffer = Buffer.allocUnsafe(capacity)
  let length = 0
  const room = (count: number): void => {
    if (length + count <= buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, length + count))
    buffer.copy(larger, 0, 0, length)
    buffer = larger
  }
  const unsigned = (value: number): void => {
    room(8)
    while (value > 0x7fffffff) {
      buffer[length++] = (value % 128) | 128
      value = Math.floor(value / 128)
    }
    while (value > 127) {
      buffer[length++] = (value & 127) | 128
      value >>>= 7
    }
    buffer[length++] = value
  }
  return {
    byte(value) {
      room(1)
      buffer[length++] = value
    },
    unsigned,
    signed: (value) => unsigned(value >= 0 ? value * 2 : -value * 2 - 1),
    float64(value) {
      room(8)
      length = buffer.writeDoubleLE(value, length)
    },
    bytes(value) {
      room(value.length)
      buffer.set(value, length)
      length += value.length
    },
    finish: () => Buffer.from(buffer.subarray(0, length)),
  }
}

export interface ByteReader {
  byte(): number
  unsigned(): number
  signed(): number
  float64(): number
  /** Fills `into` with the running sums of the next `into.length` signed integers. */
  sums(into: Float64Array): void
  /** Skips `count` integers. */
  skip(count: number): void
  /** The next `count` bytes, or all that remain. */
  bytes(count?: number): Uint8Array
}

/**
 * Reads the output of a ByteWriter.
 * @throws GatewayError store.corrupt beyond the end.
 */
export function createByteReader(source: Uint8Array): ByteReader {
  const buffer = Buffer.from(source.buffer, source.byteOffset, source.byteLength)
  let position = 0
  const need = (count: number): void => {
    if (position + count > buffer.length)
      throw new GatewayError('store.corrupt', 'a stored byte string is truncated')
  }
  const unsigned = (): number => {
    let value = 0
    let scale = 1
    for (;;) {
      need(1)
      const byte = buffer[position++]!
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
  }
  return {
    byte() {
      need(1)
      return buffer[position++]!
    },
    unsigned,
    signed() {
      const value = unsigned()
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    },
    float64() {
      need(8)
      const value = buffer.readDoubleLE(position)
      position += 8
      return value
    },
    // Reading beyond the end yields undefined, which ends each inner loop; `need` then throws.
    // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: hot loop of history reads, without calls
    sums(into) {
      let at = position
      let sum = 0
      for (let i = 0; i < into.length; i++) {
        const first = buffer[at++]!
        if (first < 128) {
          sum += (first >>> 1) ^ -(first & 1)
        } else {
          let bits = first & 127
          let byte = first
          for (let shift = 7; byte >= 128 && shift < 28; shift += 7) {
            byte = buffer[at++]!
            bits |= (byte & 127) << shift
          }
          if (byte < 128) sum += (bits >>> 1) ^ -(bits & 1)
          else {
            // The value exceeds a 32-bit integer.
            let value = bits
            for (let scale = 2 ** 28; byte >= 128; scale *= 128) {
              byte = buffer[at++]!
              value += (byte & 127) * scale
            }
            sum += value % 2 === 0 ? value / 2 : -(value + 1) / 2
          }
        }
        into[i] = sum
      }
      need(at - position)
      position = at
    },
    skip(count) {
      let at = position
      for (let left = count; left > 0 && at < buffer.length; at++) left -= (buffer[at]! >>> 7) ^ 1
      position = at
    },
    bytes(count = buffer.length - position) {
      need(count)
      const part = buffer.subarray(position, position + count)
      position += count
      return part
    },
  }
}
