/**
 * Encodes the MQTT packets that are frequent or end a connection: PUBLISH, its acknowledgements, PINGRESP,
 * and DISCONNECT of MQTT 5. The library mqtt-packet encodes all others.
 */
import { ids, varint } from './properties.ts'

/** A message on its way to subscribers. */
export interface Message {
  readonly topic: string
  readonly payload: Uint8Array
  readonly qos: Qos
  /** Properties of MQTT 5 that subscribers get, as bytes; left out when there are none. */
  readonly properties?: Uint8Array | undefined
  /** Wall-clock ms from which on the message is no longer delivered. */
  readonly expiresAt?: number | undefined
}

export type Qos = 0 | 1 | 2

export const asQos = (value: number): Qos => (value === 0 ? 0 : value === 1 ? 1 : 2)

export interface PublishFlags {
  readonly qos: Qos
  readonly retain: boolean
  readonly dup: boolean
  /** Packet identifier; left out with QoS 0. */
  readonly id: number
}

/** MQTT 5 properties of a PUBLISH beside those of its message. */
export interface Extras {
  readonly subscriptions: readonly number[]
  /** Remaining lifetime of the message. */
  readonly expirySeconds: number | undefined
}

/** Encodes a PUBLISH packet (section 3.3), of MQTT 5 when `extras` is given. */
export function publishBytes(
  message: Message,
  { qos, retain, dup, id }: PublishFlags,
  extras?: Extras,
): Buffer {
  const { topic, payload } = message
  const properties = extras === undefined ? undefined : propertyBytes(message.properties, extras)
  const topicLength = Buffer.byteLength(topic)
  const length = 2 + topicLength + (qos > 0 ? 2 : 0) + (properties?.length ?? 0) + payload.length
  const head = length < 0x80 ? 2 : length < 0x4000 ? 3 : length < 0x200000 ? 4 : 5
  const bytes = Buffer.allocUnsafe(head + length)
  bytes[0] = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  let at = 1
  for (let rest = length; ; rest >>>= 7) {
    const more = rest > 0x7f
    bytes[at++] = (rest & 0x7f) | (more ? 0x80 : 0)
    if (!more) break
  }
  bytes[at++] = topicLength >> 8
  bytes[at++] = topicLength & 0xff
  bytes.write(topic, at)
  at += topicLength
  if (qos > 0) {
    bytes[at++] = id >> 8
    bytes[at++] = id & 0xff
  }
  if (properties !== undefined) {
    bytes.set(properties, at)
    at += properties.length
  }
  bytes.set(payload, at)
  return bytes
}

const noProperties = Uint8Array.of(0)

/** Properties with their length prefix. */
function propertyBytes(passed: Uint8Array | undefined, extras: Extras): Uint8Array {
  const { subscriptions, expirySeconds } = extras
  if (passed === undefined && expirySeconds === undefined && subscriptions.length === 0) return noProperties
  const own: number[] = []
  if (expirySeconds !== undefined) {
    own.push(ids.messageExpiry)
    for (const shift of [24, 16, 8, 0]) own.push((expirySeconds >>> shift) & 0xff)
  }
  for (const subscription of subscriptions) own.push(ids.subscription, ...varint(subscription))
  const rest = passed ?? new Uint8Array()
  return Buffer.concat([Uint8Array.from([...varint(own.length + rest.length), ...own]), rest])
}

/** An acknowledgement to be written: packet identifier and reason code. */
export interface Acknowledgement {
  readonly type: AckType
  readonly id: number
  readonly code: number
}

export type AckType = 'puback' | 'pubrec' | 'pubrel' | 'pubcomp'

const firstBytes: Readonly<Record<AckType, number>> = {
  puback: 0x40,
  pubrec: 0x50,
  pubrel: 0x62,
  pubcomp: 0x70,
}

/** Encodes acknowledgements (sections 3.4 to 3.7) one after the other; a reason code of 0 is left out. */
export function ackBytes(acknowledgements: readonly Acknowledgement[]): Buffer {
  const bytes = Buffer.allocUnsafe(5 * acknowledgements.length)
  let at = 0
  for (const { type, id, code } of acknowledgements) {
    bytes[at++] = firstBytes[type]
    bytes[at++] = code === 0 ? 2 : 3
    bytes[at++] = id >> 8
    bytes[at++] = id & 0xff
    if (code !== 0) bytes[at++] = code
  }
  return bytes.subarray(0, at)
}

/** Encodes PUBACK packets one after the other. */
export const pubackBytes = (acknowledged: readonly number[]): Buffer =>
  ackBytes(acknowledged.map((id) => ({ type: 'puback', id, code: 0 })))

export const pingrespBytes: Uint8Array = Buffer.from([0xd0, 0])

/** Encodes a DISCONNECT of MQTT 5 (section 3.14), without properties. */
export const disconnectBytes = (code: number): Buffer => Buffer.from([0xe0, 2, code, 0])
