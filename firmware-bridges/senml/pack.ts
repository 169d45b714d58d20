/**
 * Parses bytes to a SenML pack: a list of records keyed by the text labels of RFC 8428 4.3, from JSON or
 * CBOR. Members are not checked yet. CBOR numbers of any type become numbers, byte strings become base64url
 * text. A payload that is not a list of at least one record is rejected.
 */

import { decode } from 'cborg'
import { type Frame, jsonOf, type Parsed } from '#contract'

export type RawRecord = Readonly<Record<string, unknown>>

/** Integer labels of CBOR, starting at -6 (RFC 8428 6, table 4). */
const cborLabels = 'bs bv bu bt bn bver n u v vs vb s t ut vd'.split(' ')
const firstCborLabel = -6

/** The number 2^1024 and all larger ones are infinite as doubles. */
const bignumBytesMax = 128

export function packOf(frame: Frame): Parsed<readonly RawRecord[]> {
  const { payload } = frame
  const parsed = isCbor(frame) ? cborOf(payload) : jsonOf(payload)
  if (parsed.reason !== undefined) return parsed
  const pack = parsed.value
  if (!Array.isArray(pack) || pack.length === 0)
    return { reason: 'a pack must be an array of at least one record' }
  return pack.every(isRecord) ? { value: pack } : { reason: 'a record must be a map of labels' }
}

const isRecord = (value: unknown): value is RawRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** By the stated media type, else by the first byte: a CBOR array does not begin like text. */
function isCbor({ contentType, payload }: Frame): boolean {
  if (contentType !== undefined) {
    const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
    if (type.endsWith('+cbor') || type === 'application/cbor') return true
    if (type.endsWith('+json') || type === 'application/json') return false
  }
  const first = payload[0] ?? 0
  return (first >= 0x80 && first <= 0x9f) || first === 0xd9
}

function cborOf(payload: Uint8Array): Parsed<unknown> {
  try {
    const pack: unknown = decode(payload, { useMaps: true, rejectDuplicateMapKeys: true, tags })
    return { value: Array.isArray(pack) ? pack.map(labelled) : pack }
  } catch (error) {
    return { reason: `the payload is not CBOR: ${error instanceof Error ? error.message : 'unreadable'}` }
  }
}

/** A CBOR map with text labels; a label given both as integer and as text invalidates the record. */
function labelled(map: unknown): unknown {
  if (!(map instanceof Map)) return map
  const record = Object.create(null) as Record<string, unknown>
  for (const [key, value] of map as ReadonlyMap<unknown, unknown>) {
    const label = typeof key === 'number' ? (cborLabels[key - firstCborLabel] ?? '') : key
    if (typeof label !== 'string' || label in record) return undefined
    if (label !== '') record[label] = plain(value)
  }
  return record
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (!(value instanceof Uint8Array)) return value
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64url')
}

type Content = () => unknown

/** Bignums and decimal fractions (RFC 8949 3.4.3 and 3.4.4), and the tag that marks CBOR itself (3.4.6). */
const tags = {
  2: (content: Content) => bignum(content(), (magnitude) => magnitude),
  3: (content: Content) => bignum(content(), (magnitude) => -1n - magnitude),
  4: (content: Content) => decimalFraction(content()),
  55799: (content: Content) => content(),
}

/** NaN if the content is not a byte string, or exceeds every double. */
function bignum(bytes: unknown, sign: (magnitude: bigint) => bigint): bigint | number {
  if (!(bytes instanceof Uint8Array) || bytes.length > bignumBytesMax) return Number.NaN
  return sign(BigInt(`0x0${Buffer.from(bytes).toString('hex')}`))
}

/** [exponent, mantissa]: parsed as decimal text, so that it is rounded only once. */
function decimalFraction(content: unknown): number {
  if (!Array.isArray(content) || content.length !== 2) return Number.NaN
  const [exponent, mantissa] = content as readonly unknown[]
  return isWhole(exponent) && isWhole(mantissa) ? Number(`${mantissa}e${exponent}`) : Number.NaN
}

const isWhole = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || Number.isSafeInteger(value)
