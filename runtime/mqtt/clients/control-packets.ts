/**
 * Parses CONNECT, SUBSCRIBE and UNSUBSCRIBE into values (MQTT 3.1.1 and 5, sections 3.1, 3.8 and 3.10). The
 * library mqtt-packet reads the bytes; this file rejects what the library accepts against the standard. Pure.
 */
import {
  type IConnectPacket,
  type ISubscribePacket,
  type IUnsubscribePacket,
  type Packet,
  parser,
} from 'mqtt-packet'
import { limits } from '#base/limits/limits.ts'
import type { Terms } from '#mqtt/link/traffic.ts'
import type { Will } from '#mqtt/sessions/wills.ts'
import { type Grant, plainGrant } from '#mqtt/wire/filter-tree.ts'
import { encodeWill, type WillProperties } from '#mqtt/wire/properties.ts'
import { fault, malformed, type PacketFault, protocolError, reasons } from '#mqtt/wire/reasons.ts'
import { asQos } from '#mqtt/wire/wire.ts'

export interface ConnectRequest {
  /** Empty when the server must assign one. */
  readonly clientId: string
  readonly username: string | undefined
  readonly password: Uint8Array | undefined
  /** Requests enhanced authentication (MQTT 5, section 4.12). */
  readonly usesMethod: boolean
  /** CleanSession, or Clean Start of MQTT 5. */
  readonly clean: boolean
  /** Session expiry interval of MQTT 5 in seconds; undefined before MQTT 5. */
  readonly expirySeconds: number | undefined
  readonly terms: Terms
  readonly will: Omit<Will, 'client'> | undefined
}

export function readConnect(bytes: Buffer): ConnectRequest | PacketFault {
  const packet = parsed<IConnectPacket>(bytes, undefined)
  if ('reason' in packet) return packet
  const isFive = packet.protocolVersion === 5
  const { properties = {}, will } = packet
  if (!isWellFormed(properties) || !isWellFormed(will?.properties ?? {})) {
    return protocolError('a property is repeated or truncated')
  }
  if (will !== undefined && will.qos! > 2) return malformed('the QoS of a will must not be 3 [MQTT-3.1.2-14]')
  if (properties.receiveMaximum === 0 || properties.maximumPacketSize === 0) {
    return protocolError('Receive Maximum and Maximum Packet Size must be at least 1')
  }
  const { authenticationMethod, authenticationData } = properties
  if (authenticationData !== undefined && authenticationMethod === undefined) {
    return protocolError('authentication data without a method')
  }
  const stated = will === undefined ? undefined : willOf(will)
  if ((stated?.message.properties?.length ?? 0) > limits.messagePropertiesBytesMax.value) {
    return fault(reasons.quotaExceeded, 'the properties of the will are too large')
  }
  return {
    clientId: packet.clientId,
    username: packet.username,
    password: packet.password === undefined ? undefined : Buffer.from(packet.password),
    usesMethod: authenticationMethod !== undefined,
    clean: packet.clean !== false,
    expirySeconds: isFive ? (properties.sessionExpiryInterval ?? 0) : undefined,
    terms: {
      isFive,
      keepaliveSeconds: packet.keepalive ?? 0,
      receiveMax: properties.receiveMaximum ?? 65_535,
      packetBytesMax: properties.maximumPacketSize ?? Number.POSITIVE_INFINITY,
    },
    will: stated,
  }
}

function willOf(will: NonNullable<IConnectPacket['will']>): Omit<Will, 'client'> {
  const properties = (will.properties ?? {}) as WillProperties
  return {
    message: {
      topic: will.topic,
      payload: Buffer.from(will.payload as Buffer),
      qos: asQos(will.qos ?? 0),
      properties: encodeWill(properties),
    },
    retain: will.retain === true,
    expirySeconds: properties.messageExpiryInterval,
    delaySeconds: properties.willDelayInterval ?? 0,
  }
}

export interface SubscribeRequest {
  readonly id: number
  readonly subscriptions: readonly {
    readonly filter: string
    readonly grant: Grant
    /** Retain Handling: 0 always sends retained messages, 1 only for a new subscription, 2 never. */
    readonly retainHandling: number
  }[]
}

export function readSubscribe(bytes: Buffer, isFive: boolean): SubscribeRequest | PacketFault {
  const packet = parsed<ISubscribePacket>(bytes, isFive)
  if ('reason' in packet) return packet
  const { messageId: id, subscriptions } = packet
  const problem = requestProblem(id, subscriptions.length, packet.properties)
  if (problem !== undefined) return problem
  const identifier = packet.properties?.subscriptionIdentifier
  if (identifier === 0) return protocolError('a subscription identifier must not be 0')
  return {
    id: id!,
    subscriptions: subscriptions.map(({ topic, qos: stated, nl, rap, rh }) => {
      const qos = asQos(stated)
      const isPlain = nl !== true && rap !== true && identifier === undefined
      const grant: Grant = isPlain
        ? plainGrant(qos)
        : {
            qos,
            ownQos: nl === true ? undefined : qos,
            keepsRetain: rap === true,
            subscriptions: identifier === undefined ? [] : [identifier],
          }
      return { filter: topic, grant, retainHandling: rh ?? 0 }
    }),
  }
}

export interface UnsubscribeRequest {
  readonly id: number
  readonly filters: readonly string[]
}

export function readUnsubscribe(bytes: Buffer, isFive: boolean): UnsubscribeRequest | PacketFault {
  const packet = parsed<IUnsubscribePacket>(bytes, isFive)
  if ('reason' in packet) return packet
  const { messageId: id, unsubscriptions: filters } = packet
  return requestProblem(id, filters.length, packet.properties) ?? { id: id!, filters }
}

function requestProblem(
  id: number | undefined,
  count: number,
  properties: object = {},
): PacketFault | undefined {
  if (id === undefined || id <= 0) return protocolError('a packet identifier must not be 0 [MQTT-2.3.1-1]')
  if (count === 0) return protocolError('no topic filter [MQTT-3.8.3-3] [MQTT-3.10.3-2]')
  return isWellFormed(properties) ? undefined : protocolError('a property is repeated or truncated')
}

/** The library turns a repeated property into a list, and a truncated one into -1 or null. */
const isWellFormed = (properties: object): boolean =>
  Object.values(properties).every((value) => !Array.isArray(value) && value !== -1 && value !== null)

function parsed<Kind extends Packet>(bytes: Buffer, isFive: boolean | undefined): Kind | PacketFault {
  let found: Packet | undefined
  let problem = 'the packet is truncated'
  const reader = parser(isFive === undefined ? {} : { protocolVersion: isFive ? 5 : 4 })
  reader.on('packet', (packet: Packet) => {
    found = packet
  })
  reader.on('error', (error: Error) => {
    problem = error.message
  })
  reader.parse(bytes)
  return found === undefined ? malformed(problem) : (found as Kind)
}
