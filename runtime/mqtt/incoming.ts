/**
 * PUBLISH of QoS 0 and 1 as it comes from a client (MQTT 3.1.1, section 3.3), read straight from the bytes. Pure.
 */
import { asQos, type Qos } from './wire.ts'

/** `topic` holds its bytes as Latin-1 characters, whatever they mean. */
export interface Incoming {
  readonly topic: string
  /** A view of the bytes received, not a copy. */
  readonly payload: Uint8Array
  readonly qos: Qos
  readonly retain: boolean
  readonly dup: boolean
  readonly id: number
}

/** True for the first byte of a PUBLISH that is ours to read; QoS 2 is not. */
export const isPlainPublish = (first: number): boolean => first >> 4 === 3 && (first & 6) !== 4

/**
 * Reads the variable header and payload between `from` and `end` of a PUBLISH that begins with the byte `first`.
 * Returns what is wrong with it when it breaks the protocol.
 */
export function readPublish(bytes: Buffer, from: number, end: number, first: number): Incoming | string {
  const qos = (first >> 1) & 3
  const topicEnd = from + 2 + ((bytes[from]! << 8) | bytes[from + 1]!)
  const payloadFrom = qos === 0 ? topicEnd : topicEnd + 2
  if (end - from < 2 || payloadFrom > end) return 'PUBLISH is cut short'
  if (qos === 3) return 'QoS 3 [MQTT-3.3.1-4]'
  if (qos === 0 && (first & 8) !== 0) return 'DUP with QoS 0 [MQTT-3.3.1-2]'
  const id = qos === 0 ? 0 : (bytes[topicEnd]! << 8) | bytes[topicEnd + 1]!
  if (qos > 0 && id === 0) return 'packet identifier 0 [MQTT-2.3.1-1]'
  return {
    topic: bytes.toString('latin1', from + 2, topicEnd),
    payload: bytes.subarray(payloadFrom, end),
    qos: asQos(qos),
    retain: (first & 1) === 1,
    dup: (first & 8) !== 0,
    id,
  }
}
