/**
 * SUBSCRIBE and UNSUBSCRIBE (MQTT 3.1.1 and 5, sections 3.8 to 3.11): each filter has its own reason code, in
 * order. A subscription of a session takes effect when it is on disk. Retained messages follow SUBACK
 * ([MQTT-3.3.1-6]).
 */
import { generate } from 'mqtt-packet'
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { RetainedMessages } from '#mqtt/publish/retained.ts'
import type { Routes } from '#mqtt/publish/topic-routes.ts'
import type { Presence, Presences } from '#mqtt/sessions/presence.ts'
import type { Sessions } from '#mqtt/sessions/sessions.ts'
import { type PacketFault, reasons } from '#mqtt/wire/reasons.ts'
import { filterProblem, sharePrefix } from '#mqtt/wire/topics.ts'
import { asQos } from '#mqtt/wire/wire.ts'
import { readSubscribe, readUnsubscribe, type SubscribeRequest } from './control-packets.ts'

export interface SubscriptionsPorts {
  readonly presences: Presences
  readonly sessions: Sessions
  readonly retained: RetainedMessages
  readonly routes: Routes
}

type Subscription = SubscribeRequest['subscriptions'][number]

export function createSubscriptions({ presences, sessions, retained, routes }: SubscriptionsPorts) {
  const yieldIfDue = createYield(() => performance.now(), limits.mqttTurnMs.value)

  /** The reason code of one filter: its granted QoS, or a failure. */
  function reasonCodeOf(presence: Presence, { filter, grant }: Subscription): number {
    // Shared subscriptions are not supported; as plain filters they would never match.
    if (filter.startsWith(sharePrefix)) return reasons.sharedSubscriptionsNotSupported
    return presences.reserve(presence, filter) ? grant.qos : reasons.quotaExceeded
  }

  /** An invalid filter ends the connection in every version. */
  function faultOf(filters: readonly string[]): PacketFault | undefined {
    for (const filter of filters) {
      const reason = filterProblem(filter)
      if (reason !== undefined) return { code: reasons.topicFilterInvalid, reason }
    }
    return undefined
  }

  async function subscribe(presence: Presence, request: SubscribeRequest): Promise<void> {
    const { link, session } = presence
    const problem = faultOf(request.subscriptions.map(({ filter }) => filter))
    if (problem !== undefined) {
      link.fail(problem.reason, problem.code)
      return
    }
    const added = new Set(
      request.subscriptions.map(({ filter }) => filter).filter((filter) => !presence.filters.has(filter)),
    )
    const codes = request.subscriptions.map((subscription) => reasonCodeOf(presence, subscription))
    const granted = request.subscriptions.filter((_, at) => codes[at]! <= 2)
    if (session !== undefined) await sessions.subscribe(session, granted)
    if (link.isClosed()) return
    for (const { filter, grant } of granted) presences.subscribe(presence, filter, grant)
    const protocolVersion = link.isFive() ? 5 : 4
    const answers = link.isFive() ? codes : codes.map((code) => (code > 2 ? failure : code))
    link.write(generate({ cmd: 'suback', messageId: request.id, granted: answers }, { protocolVersion }))
    const wanted = granted.filter(
      ({ filter, retainHandling }) => retainHandling === 0 || (retainHandling === 1 && added.has(filter)),
    )
    if (wanted.length > 0) setImmediate(() => void sendRetained(link, wanted))
  }

  /** Sends retained messages as fast as the client reads them, and yields to other work. */
  async function sendRetained(link: Link, subscriptions: readonly Subscription[]): Promise<void> {
    for (const { filter, grant } of subscriptions) {
      await yieldIfDue()
      const topics = retained.matching(filter).map((message) => message.topic)
      for (const topic of topics) {
        await yieldIfDue()
        while (link.isOpen() && link.isBacklogged())
          await new Promise<void>((resolve) => link.whenDrained(resolve))
        if (!link.isOpen()) return
        const message = retained.get(topic)
        if (message === undefined) continue
        const qos = asQos(Math.min(message.qos, grant.qos))
        routes.deliver(link, message, { qos, retain: true, subscriptions: grant.subscriptions })
      }
    }
  }

  return Object.freeze({
    async subscribe(link: Link, bytes: Buffer): Promise<void> {
      const request = readSubscribe(bytes, link.isFive())
      const presence = presences.of(link)
      if ('reason' in request) link.fail(request.reason, request.code)
      else if (presence !== undefined) await subscribe(presence, request)
    },
    async unsubscribe(link: Link, bytes: Buffer): Promise<void> {
      const request = readUnsubscribe(bytes, link.isFive())
      const presence = presences.of(link)
      const problem = 'reason' in request ? request : faultOf(request.filters)
      if (problem !== undefined || 'reason' in request) {
        link.fail(problem!.reason, problem!.code)
        return
      }
      if (presence === undefined) return
      const codes = request.filters.map((filter) =>
        presence.filters.has(filter) ? reasons.success : reasons.noSubscriptionExisted,
      )
      if (presence.session !== undefined) await sessions.unsubscribe(presence.session, request.filters)
      if (link.isClosed()) return
      for (const filter of request.filters) presences.unsubscribe(presence, filter)
      const protocolVersion = link.isFive() ? 5 : 4
      link.write(generate({ cmd: 'unsuback', messageId: request.id, granted: codes }, { protocolVersion }))
    },
  })
}

/** SUBACK return code of MQTT 3.1.1 for a refused subscription. */
const failure = 0x80
