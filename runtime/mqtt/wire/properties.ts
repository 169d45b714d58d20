/**
 * Properties of MQTT 5 (section 2.2.2), read from the bytes of a packet. Properties of a message are kept as
 * received bytes and passed on to subscribers unchanged and in order ([MQTT-3.3.2-17]). Properties for this
 * broker alone are read and left out. Pure.
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '#base/limits/limits.ts'
import { fault, malformed, type PacketFault, protocolError, reasons } from './reasons.ts'

export const ids = {
  payloadFormat: 0x01,
  messageExpiry: 0x02,
  contentType: 0x03,
  responseTopic: 0x08,
  correlationData: 0x09,
  subscription: 0x0b,
  sessionExpiry: 0x11,
  reasonString: 0x1f,
  topicAlias: 0x23,
  userProperty: 0x26,
} as const

/** The content of a PUBLISH beside topic and payload. */
export interface PublishProperties {
  /** Bytes passed on to subscribers; undefined when there are none. */
  readonly passed: Uint8Array | undefined
  readonly expirySeconds: number | undefined
  readonly alias: number | undefined
  readonly contentType: string | undefined
  /** End of the properties and start of the payload. */
  readonly end: number
}

/** A variable byte integer (section 1.5.5) and the position after it. */
interface Varint {
  readonly value: number
  readonly next: number
}

interface Property {
  readonly id: number
  /** The value, without the length prefix of texts and binary data. */
  readonly from: number
  readonly to: number
}

type Visit = (property: Property) => PacketFault | undefined

/** Reads the properties of a PUBLISH that begin at `from`; the packet ends at `end`. */
export function readPublishProperties(
  bytes: Buffer,
  from: number,
  end: number,
): PublishProperties | PacketFault {
  const pieces: Buffer[] = []
  let expirySeconds: number | undefined
  let alias: number | undefined
  let contentType: string | undefined
  let pairs = 0
  const visit: Visit = ({ id, from: valueFrom, to }) => {
    if (id === ids.messageExpiry) expirySeconds = bytes.readUInt32BE(valueFrom)
    else if (id === ids.topicAlias) alias = bytes.readUInt16BE(valueFrom)
    else if (id === ids.contentType) contentType = bytes.toString('utf8', valueFrom, to)
    else if (id === ids.payloadFormat && bytes[valueFrom]! > 1)
      return malformed('payload format must be 0 or 1')
    else if (id === ids.responseTopic && /[+#]/.test(bytes.toString('latin1', valueFrom, to))) {
      return protocolError('a response topic must not have wildcards [MQTT-3.3.2-14]')
    } else if (id === ids.userProperty && ++pairs > limits.userPropertiesMax.value) {
      return fault(reasons.quotaExceeded, `more than ${limits.userPropertiesMax.value} user properties`)
    }
    return undefined
  }
  const read = walk(bytes, { from, end, allowed: publishIds, visit, pieces })
  if (typeof read !== 'number') return read
  const passed = pieces.length === 0 ? undefined : Buffer.concat(pieces)
  if (passed !== undefined && passed.length > limits.messagePropertiesBytesMax.value) {
    return fault(
      reasons.quotaExceeded,
      `more than ${limits.messagePropertiesBytesMax.value} bytes of properties`,
    )
  }
  return { passed, expirySeconds, alias, contentType, end: read }
}

/** The session expiry interval in a DISCONNECT, in seconds; undefined when it has none. */
export function readSessionExpiry(
  bytes: Buffer,
  from: number,
  end: number,
): number | PacketFault | undefined {
  let expiry: number | undefined
  const visit: Visit = (property) => {
    if (property.id === ids.sessionExpiry) expiry = bytes.readUInt32BE(property.from)
    return undefined
  }
  const read = walk(bytes, { from, end, allowed: disconnectIds, visit, pieces: undefined })
  return typeof read === 'number' ? expiry : read
}

/** Validates the properties of an acknowledgement. */
export function readAckProperties(bytes: Buffer, from: number, end: number): PacketFault | undefined {
  const read = walk(bytes, { from, end, allowed: ackIds, visit: () => undefined, pieces: undefined })
  return typeof read === 'number' ? undefined : read
}

interface Walk {
  readonly from: number
  readonly end: number
  readonly allowed: ReadonlySet<number>
  readonly visit: Visit
  /** Collects the bytes of properties that are passed on. */
  readonly pieces: Buffer[] | undefined
}

/** Visits all properties; returns the position after them. */
function walk(bytes: Buffer, { from, end, allowed, visit, pieces }: Walk): number | PacketFault {
  const length = readVarint(bytes, from, end)
  if (length === undefined || length.next + length.value > end)
    return malformed('the properties are truncated')
  const stop = length.next + length.value
  const seen = new Set<number>()
  let at = length.next
  while (at < stop) {
    const id = bytes[at]!
    const size = kinds[id]
    if (size === undefined) return malformed(`unknown property ${id}`)
    if (!allowed.has(id)) return protocolError(`property ${id} is not allowed in this packet`)
    if (seen.has(id) && id !== ids.userProperty) return protocolError(`property ${id} is repeated`)
    seen.add(id)
    const value = size(bytes, at + 1, stop)
    if (value === undefined || value.to > stop) return malformed(`property ${id} is malformed`)
    const problem = visit({ id, from: value.from, to: value.to })
    if (problem !== undefined) return problem
    if (passedIds.has(id)) pieces?.push(bytes.subarray(at, value.to))
    at = value.to
  }
  return stop
}

type Measure = (bytes: Buffer, at: number, stop: number) => { from: number; to: number } | undefined

const fixed =
  (size: number): Measure =>
  (_bytes, at, stop) =>
    at + size > stop ? undefined : { from: at, to: at + size }

const binary: Measure = (bytes, at, stop) => {
  if (at + 2 > stop) return undefined
  const to = at + 2 + bytes.readUInt16BE(at)
  return to > stop ? undefined : { from: at + 2, to }
}

/** Well-formed UTF-8 without U+0000 ([MQTT-1.5.4-1], [MQTT-1.5.4-2]). */
const text: Measure = (bytes, at, stop) => {
  const found = binary(bytes, at, stop)
  if (found === undefined) return undefined
  const value = bytes.subarray(found.from, found.to)
  return isUtf8(value) && !value.includes(0) ? found : undefined
}

const pair: Measure = (bytes, at, stop) => {
  const name = text(bytes, at, stop)
  return name && text(bytes, name.to, stop)
}

const kinds: Readonly<Record<number, Measure>> = {
  [ids.payloadFormat]: fixed(1),
  [ids.messageExpiry]: fixed(4),
  [ids.contentType]: text,
  [ids.responseTopic]: text,
  [ids.correlationData]: binary,
  [ids.subscription]: (bytes, at, stop) => {
    const found = readVarint(bytes, at, stop)
    return found && { from: at, to: found.next }
  },
  [ids.sessionExpiry]: fixed(4),
  [ids.reasonString]: text,
  [ids.topicAlias]: fixed(2),
  [ids.userProperty]: pair,
}

const passedIds: ReadonlySet<number> = new Set([
  ids.payloadFormat,
  ids.contentType,
  ids.responseTopic,
  ids.correlationData,
  ids.userProperty,
])
/** A client must not send subscription identifiers ([MQTT-3.3.4-6]). */
const publishIds: ReadonlySet<number> = new Set([...passedIds, ids.messageExpiry, ids.topicAlias])
const ackIds: ReadonlySet<number> = new Set([ids.reasonString, ids.userProperty])
const disconnectIds: ReadonlySet<number> = new Set([...ackIds, ids.sessionExpiry])

function readVarint(bytes: Buffer, at: number, stop: number): Varint | undefined {
  let value = 0
  for (let i = 0; i < 4 && at + i < stop; i++) {
    const byte = bytes[at + i]!
    value += (byte & 0x7f) * 128 ** i
    if (byte < 0x80) return { value, next: at + i + 1 }
  }
  return undefined
}

/** Encodes a number as a variable byte integer. */
export function varint(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    const isLast = rest < 128
    bytes.push(isLast ? rest : (rest % 128) | 0x80)
    if (isLast) return bytes
  }
}

/** Puts subscription identifiers before the properties of a message. */
export function withSubscriptions(
  properties: Uint8Array | undefined,
  subscriptions: readonly number[],
): Uint8Array | undefined {
  if (subscriptions.length === 0) return properties
  const front = subscriptions.flatMap((subscription) => [ids.subscription, ...varint(subscription)])
  return Buffer.concat([Uint8Array.from(front), properties ?? new Uint8Array()])
}

/** Properties of a will as the library mqtt-packet reads them. */
export interface WillProperties {
  readonly willDelayInterval?: number
  readonly payloadFormatIndicator?: boolean
  readonly messageExpiryInterval?: number
  readonly contentType?: string
  readonly responseTopic?: string
  readonly correlationData?: Uint8Array
  readonly userProperties?: Readonly<Record<string, string | string[]>>
}

/** Encodes the properties of a will that subscribers get. */
export function encodeWill(will: WillProperties): Uint8Array | undefined {
  const pieces: Uint8Array[] = []
  const sized = (value: string | Uint8Array): Buffer => {
    const data = Buffer.from(value as string)
    const length = Buffer.alloc(2)
    length.writeUInt16BE(data.length)
    return Buffer.concat([length, data])
  }
  const add = (id: number, ...values: (string | Uint8Array)[]): void => {
    pieces.push(Uint8Array.of(id), ...values.map(sized))
  }
  if (will.payloadFormatIndicator !== undefined) {
    pieces.push(Uint8Array.of(ids.payloadFormat, will.payloadFormatIndicator ? 1 : 0))
  }
  if (will.contentType !== undefined) add(ids.contentType, will.contentType)
  if (will.responseTopic !== undefined) add(ids.responseTopic, will.responseTopic)
  if (will.correlationData !== undefined) add(ids.correlationData, will.correlationData)
  for (const [name, value] of Object.entries(will.userProperties ?? {})) {
    for (const one of [value].flat()) add(ids.userProperty, name, one)
  }
  return pieces.length === 0 ? undefined : Buffer.concat(pieces)
}
