/**
 * PUBLISH and its acknowledgements as they come from a client, and DISCONNECT (MQTT 3.1.1 and 5, sections 3.3 to 3.7
 * and 3.14), read straight from the bytes. Pure.
 */
import { readAckProperties, readPublishProperties, readSessionExpiry } from '#mqtt/wire/properties.ts'
import { type Fault, fault, malformed, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { type AckType, asQos, type Qos } from '#mqtt/wire/wire.ts'

/** `topic` holds its bytes as Latin-1 characters, whatever they mean. */
export interface Incoming {
  readonly topic: string
  /** A view of the bytes received, not a copy. */
  readonly payload: Uint8Array
  readonly qos: Qos
  readonly retain: boolean
  readonly dup: boolean
  readonly id: number
  /** Of MQTT 5: what subscribers get unchanged, how long the message lives, its alias and its media type. */
  readonly properties: Uint8Array | undefined
  readonly expirySeconds: number | undefined
  readonly alias: number | undefined
  readonly contentType: string | undefined
}

/** Where a packet lies in some bytes: its beginning, its variable header, its end; and its first byte. */
export interface Place {
  readonly bytes: Buffer
  readonly at: number
  readonly from: number
  readonly end: number
  readonly first: number
}

/** Reads a PUBLISH. Returns what is wrong with it when it breaks the protocol. */
export function readPublish({ bytes, from, end, first }: Place, isFive: boolean): Incoming | Fault {
  const qos = (first >> 1) & 3
  const topicEnd = from + 2 + ((bytes[from]! << 8) | bytes[from + 1]!)
  const headEnd = qos === 0 ? topicEnd : topicEnd + 2
  if (end - from < 2 || headEnd > end) return malformed('PUBLISH is cut short')
  if (qos === 3) return malformed('QoS 3 [MQTT-3.3.1-4]')
  if (qos === 0 && (first & 8) !== 0) return malformed('DUP with QoS 0 [MQTT-3.3.1-2]')
  const id = qos === 0 ? 0 : (bytes[topicEnd]! << 8) | bytes[topicEnd + 1]!
  if (qos > 0 && id === 0) return protocolError('packet identifier 0 [MQTT-2.3.1-1]')
  const stated = isFive ? readPublishProperties(bytes, headEnd, end) : undefined
  if (stated !== undefined && 'reason' in stated) return stated
  return {
    topic: bytes.toString('latin1', from + 2, topicEnd),
    payload: bytes.subarray(stated?.end ?? headEnd, end),
    qos: asQos(qos),
    retain: (first & 1) === 1,
    dup: (first & 8) !== 0,
    id,
    properties: stated?.passed,
    expirySeconds: stated?.expirySeconds,
    alias: stated?.alias,
    contentType: stated?.contentType,
  }
}

/** PUBACK, PUBREC, PUBREL or PUBCOMP from a client. */
export interface Answer {
  readonly type: AckType
  readonly id: number
  readonly code: number
}

const answerTypes: Readonly<Record<number, AckType>> = { 4: 'puback', 5: 'pubrec', 6: 'pubrel', 7: 'pubcomp' }

/** Reads an acknowledgement, whose type is the upper half of its first byte. */
export function readAnswer({ bytes, from, end, first }: Place, isFive: boolean): Answer | Fault {
  const type = answerTypes[first >> 4]!
  const flags = type === 'pubrel' ? 2 : 0
  if ((first & 15) !== flags) return malformed(`${type} has other reserved flags [MQTT-2.2.2-2]`)
  if (end - from < 2 || (!isFive && end - from > 2)) return malformed(`${type} has another length`)
  const id = bytes.readUInt16BE(from)
  if (id === 0) return protocolError(`${type} of packet identifier 0`)
  const code = end - from > 2 ? bytes[from + 2]! : reasons.success
  const problem = end - from > 3 ? readAckProperties(bytes, from + 3, end) : undefined
  return problem ?? { type, id, code }
}

/** DISCONNECT from a client. */
export interface Leaving {
  /** Whether its will is published all the same. */
  readonly keepsWill: boolean
  /** The session expiry interval it states, in seconds. */
  readonly expirySeconds: number | undefined
}

/** Reads a DISCONNECT. Versions before 5 say nothing in it. */
export function readLeaving({ bytes, from, end, first }: Place, isFive: boolean): Leaving | Fault {
  if ((first & 15) !== 0) return malformed('DISCONNECT has other reserved flags [MQTT-3.14.1-1]')
  if (!isFive) {
    return end === from
      ? { keepsWill: false, expirySeconds: undefined }
      : malformed('DISCONNECT has another length')
  }
  const code = end > from ? bytes[from]! : reasons.success
  const expirySeconds = end - from > 1 ? readSessionExpiry(bytes, from + 1, end) : undefined
  if (typeof expirySeconds === 'object') return expirySeconds
  return { keepsWill: code === reasons.disconnectWithWill || code >= 0x80, expirySeconds }
}

/** The topics that a client of MQTT 5 has given numbers to, for as long as it is connected. */
export interface Aliases {
  /** The message with its topic, or what is wrong with its alias. */
  resolve(incoming: Incoming): Incoming | Fault
}

/** `aliasMax` is the highest number that a client may give. */
export function createAliases(aliasMax: number): Aliases {
  const topics = new Map<number, string>()
  return Object.freeze({
    resolve(incoming) {
      const { alias, topic } = incoming
      if (alias === undefined) {
        return topic === '' ? protocolError('a topic is left out, and no alias stands for it') : incoming
      }
      if (alias === 0 || alias > aliasMax) {
        return fault(reasons.topicAliasInvalid, `topic alias ${alias}, allowed are 1 to ${aliasMax}`)
      }
      if (topic !== '') {
        topics.set(alias, topic)
        return incoming
      }
      const known = topics.get(alias)
      return known === undefined
        ? protocolError(`topic alias ${alias} stands for no topic yet`)
        : { ...incoming, topic: known }
    },
  } satisfies Aliases)
}
