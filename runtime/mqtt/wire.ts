/**
 * The few MQTT 3.1.1 packets that we write ourselves, as bytes: PUBLISH, PUBACK and PUBREL. All others are written
 * by the broker library.
 */

/** A message on its way to subscribers. */
export interface Message {
  readonly topic: string
  readonly payload: Uint8Array
  readonly qos: Qos
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

/** A PUBLISH packet (section 3.3). */
export function publishBytes(message: Message, { qos, retain, dup, id }: PublishFlags): Buffer {
  const { topic, payload } = message
  const topicLength = Buffer.byteLength(topic)
  const length = 2 + topicLength + (qos > 0 ? 2 : 0) + payload.length
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
  bytes.set(payload, at)
  return bytes
}

/** PUBACK packets (section 3.4), one after the other. */
export function pubackBytes(ids: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(4 * ids.length)
  let at = 0
  for (const id of ids) {
    bytes[at++] = 0x40
    bytes[at++] = 2
    bytes[at++] = id >> 8
    bytes[at++] = id & 0xff
  }
  return bytes
}

/** A PUBREL packet (section 3.6). */
export const pubrelBytes = (id: number): Buffer => Buffer.from([0x62, 2, id >> 8, id & 0xff])
