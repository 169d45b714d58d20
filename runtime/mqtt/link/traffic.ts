/**
 * Message handling that depends on a connection's CONNECT: topic aliases and Receive Maximum of received
 * messages; version, maximum packet size and Receive Maximum of sent ones. Clients before MQTT 5 state none
 * of these. The rules for topic aliases are in `incoming.ts`, those for sent messages in flight in
 * `wire/window.ts`; Receive Maximum of received messages is enforced here.
 */

import { limits } from '#base/limits/limits.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { fault, isFailure, type PacketFault, reasons } from '#mqtt/wire/reasons.ts'
import { createWindow, type Window } from '#mqtt/wire/window.ts'
import { type Acknowledgement, type Message, type PublishFlags, publishBytes } from '#mqtt/wire/wire.ts'
import { createAliases, type Incoming } from './incoming.ts'
import type { Outlet } from './outlet.ts'

/** The parameters of a connection, as stated in CONNECT. */
export interface Terms {
  readonly isFive: boolean
  /** 0 for none. */
  readonly keepaliveSeconds: number
  /** Limits that an MQTT 5 client states. */
  readonly receiveMax: number
  readonly packetBytesMax: number
}

export interface Traffic {
  readonly window: Window
  isFive(): boolean
  /**
   * Sends a message; false when it has expired, or exceeds the client's maximum packet size ([MQTT-3.1.2-24]
   * of MQTT 5).
   */
  send(message: Message, flags: PublishFlags, subscriptions: readonly number[]): boolean
  /** Sends an acknowledgement; a client before MQTT 5 gets no reason code. */
  acknowledge(answer: Acknowledgement): void
}

export interface OwnTraffic extends Traffic {
  /** Call when CONNECT was read. */
  greet(terms: Terms): void
  terms(): Terms
  /** A message from the client with its topic resolved, or a fault. */
  check(read: Incoming | PacketFault): Incoming | PacketFault
}

export interface TrafficPorts {
  readonly outlet: Outlet
  readonly clock: Clock
  /** Counts messages that had expired or were too large. */
  readonly unsent: Counter
}

export function createTraffic({ outlet, clock, unsent }: TrafficPorts): OwnTraffic {
  const window = createWindow()
  const aliases = createAliases(limits.topicAliasesMax.value)
  let terms = silentTerms
  /** QoS 1 and 2 messages received from the client and not yet acknowledged; counted only for MQTT 5. */
  let inFlight = 0

  return Object.freeze({
    window,
    isFive: () => terms.isFive,
    terms: () => terms,
    greet(stated) {
      terms = stated
      window.limit(stated.receiveMax)
    },
    check(read) {
      if ('reason' in read || !terms.isFive) return read
      const incoming = aliases.resolve(read)
      if ('reason' in incoming || incoming.qos === 0) return incoming
      inFlight++
      if (inFlight <= limits.mqttReceiveMax.value) return incoming
      return fault(reasons.receiveMaximumExceeded, 'more messages in flight than Receive Maximum allows')
    },
    send(message, flags, subscriptions) {
      const expirySeconds = remaining(message, clock)
      const extras = terms.isFive ? { subscriptions, expirySeconds } : undefined
      const isExpired = expirySeconds !== undefined && expirySeconds <= 0
      const bytes = isExpired ? undefined : publishBytes(message, flags, extras)
      if (bytes === undefined || bytes.length > terms.packetBytesMax) {
        unsent.value++
        return false
      }
      outlet.write(bytes)
      return true
    },
    acknowledge(answer) {
      const { type, id, code } = answer
      const isLast = type === 'puback' || type === 'pubcomp' || (type === 'pubrec' && isFailure(code))
      if (isLast && inFlight > 0) inFlight--
      const hasCode = terms.isFive || code === reasons.success
      outlet.acknowledge(hasCode ? answer : { type, id, code: reasons.success })
    },
  } satisfies OwnTraffic)
}

/** Applies until CONNECT was read. */
const silentTerms: Terms = {
  isFive: false,
  keepaliveSeconds: 0,
  receiveMax: Number.POSITIVE_INFINITY,
  packetBytesMax: Number.POSITIVE_INFINITY,
}

/** Seconds until a message expires, rounded up. */
function remaining({ expiresAt }: Message, clock: Clock): number | undefined {
  return expiresAt === undefined
    ? undefined
    : Math.min(Math.ceil((expiresAt - clock.now()) / 1000), 0xffffffff)
}
