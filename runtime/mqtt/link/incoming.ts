/**
 * Parses PUBLISH, acknowledgements and DISCONNECT from clients (MQTT 3.1.1 and 5, sections 3.3 to 3.7 and
 * 3.14), straight from the bytes. Also holds the rules for topic aliases of MQTT 5: their range, how a client
 * assigns one, and the fault for an invalid one. `traffic.ts` applies them to each message. No input or
 * output.
 */
import { readAckProperties, readPublishProperties, readSessionExpiry } from '#mqtt/wire/properties.ts'
import { fault, malformed, type PacketFault, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { type Acknowledgement, type AckType, asQos, type Qos } from '#mqtt/wire/wire.ts'

/** `topic` holds its bytes as Latin-1 characters, without decoding. */
export interface Incoming {
  readonly topic: string
  /** A view of the received bytes, not a copy. */
  readonly payload: Uint8Array
  readonly qos: Qos
  readonly retain: boolean
  readonly dup: boolean
  readonly id: number
  /**
   * For MQTT 5: properties passed on to subscribers unchanged, then message expiry, topic alias and media
   * type.
   */
  readonly properties: Uint8Array | undefined
  readonly expirySeconds: number | undefined
  readonly alias: number | undefined
  readonly contentType: string | undefined
}

/** The location of a packet in a buffer: its beginning, its variable header, its end; and its first byte. */
export interface PacketPlace {
  readonly bytes: Buffer
  readonly at: number
  readonly from: number
  readonly end: number
  readonly first: number
}

/** Parses a PUBLISH. Returns a fault when it violates the protocol. */
export function readPublish(
  { bytes, from, end, first }: PacketPlace,
  isFive: boolean,
): Incoming | PacketFault {
  const qos = (first >> 1) & 3
  const topicEnd = from + 2 + ((bytes[from]! << 8) | bytes[from + 1]!)
  const headEnd = qos === 0 ? topicEnd : topicEnd + 2
  if (end - from < 2 || headEnd > end) return malformed('PUBLISH is truncated')
  if (qos === 3) return malformed('QoS must not be 3 [MQTT-3.3.1-4]')
  if (qos === 0 && (first & 8) !== 0) return malformed('DUP must not be set with QoS 0 [MQTT-3.3.1-2]')
  const id = qos === 0 ? 0 : (bytes[topicEnd]! << 8) | bytes[topicEnd + 1]!
  if (qos > 0 && id === 0) return protocolError('a packet identifier must not be 0 [MQTT-2.3.1-1]')
  const parsed = isFive ? readPublishProperties(bytes, headEnd, end) : undefined
  if (parsed !== undefined && 'reason' in parsed) return parsed
  return {
    topic: bytes.toString('latin1', from + 2, topicEnd),
    payload: bytes.subarray(parsed?.end ?? headEnd, end),
    qos: asQos(qos),
    retain: (first & 1) === 1,
    dup: (first & 8) !== 0,
    id,
    properties: parsed?.passed,
    expirySeconds: parsed?.expirySeconds,
    alias: parsed?.alias,
    contentType: parsed?.contentType,
  }
}

const answerTypes: Readonly<Record<number, AckType>> = { 4: 'puback', 5: 'pubrec', 6: 'pubrel', 7: 'pubcomp' }

/** Parses an acknowledgement; the upper half of its first byte is its type. */
export function readAnswer(
  { bytes, from, end, first }: PacketPlace,
  isFive: boolean,
): Acknowledgement | PacketFault {
  const type = answerTypes[first >> 4]!
  const flags = type === 'pubrel' ? 2 : 0
  if ((first & 15) !== flags) return malformed(`${type} has wrong reserved flags [MQTT-2.2.2-2]`)
  if (end - from < 2 || (!isFive && end - from > 2)) return malformed(`${type} has a wrong length`)
  const id = bytes.readUInt16BE(from)
  if (id === 0) return protocolError(`${type} must not have packet identifier 0`)
  const code = end - from > 2 ? bytes[from + 2]! : reasons.success
  const problem = end - from > 3 ? readAckProperties(bytes, from + 3, end) : undefined
  return problem ?? { type, id, code }
}

/** DISCONNECT from a client. */
export interface Leaving {
  /** True when its will is published nevertheless. */
  readonly keepsWill: boolean
  /** The session expiry interval it states, in seconds. */
  readonly expirySeconds: number | undefined
}

/** Parses a DISCONNECT. Before MQTT 5 it has no content. */
export function readLeaving(
  { bytes, from, end, first }: PacketPlace,
  isFive: boolean,
): Leaving | PacketFault {
  if ((first & 15) !== 0) return malformed('DISCONNECT has wrong reserved flags [MQTT-3.14.1-1]')
  if (!isFive) {
    return end === from
      ? { keepsWill: false, expirySeconds: undefined }
      : malformed('DISCONNECT has a wrong length')
  }
  const code = end > from ? bytes[from]! : reasons.success
  const expirySeconds = end - from > 1 ? readSessionExpiry(bytes, from + 1, end) : undefined
  if (typeof expirySeconds === 'object') return expirySeconds
  return { keepsWill: code === reasons.disconnectWithWill || code >= 0x80, expirySeconds }
}

/** Topic aliases of one MQTT 5 connection. */
export interface Aliases {
  /** The message with its topic, or a fault if its alias is invalid. */
  resolve(incoming: Incoming): Incoming | PacketFault
}

/** `aliasMax` is the highest alias that a client may use. */
export function createAliases(aliasMax: number): Aliases {
  const topics = new Map<number, string>()
  return Object.freeze({
    resolve(incoming) {
      const { alias, topic } = incoming
      if (alias === undefined) {
        return topic === '' ? protocolError('the topic is empty and there is no topic alias') : incoming
      }
      if (alias === 0 || alias > aliasMax) {
        return fault(reasons.topicAliasInvalid, `topic alias must be 1 to ${aliasMax}, got ${alias}`)
      }
      if (topic !== '') {
        topics.set(alias, topic)
        return incoming
      }
      const known = topics.get(alias)
      return known === undefined
        ? protocolError(`topic alias ${alias} is not assigned to a topic`)
        : { ...incoming, topic: known }
    },
  } satisfies Aliases)
}
