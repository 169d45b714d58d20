/**
 * Routes of topics: the clients that subscribe now, and the sessions that queue the message. The route of a
 * topic is cached until a subscription changes, so a message costs one lookup however many filters there are.
 * A message without subscribers is not even encoded.
 */

import { isUtf8 } from 'node:buffer'
import { limits } from '#base/limits/limits.ts'
import type { Counter } from '#base/register/metrics.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { DeliveryOptions, Session } from '#mqtt/sessions/session-queue.ts'
import type { FilterTree, Grant } from '#mqtt/wire/filter-tree.ts'
import { type PacketFault, reasons } from '#mqtt/wire/reasons.ts'
import { topicProblem } from '#mqtt/wire/topics.ts'
import { asQos, type Message, type Qos } from '#mqtt/wire/wire.ts'

export interface TopicRoute {
  readonly topic: string
  /** The fault of an invalid topic; undefined when it is valid. */
  readonly problem: PacketFault | undefined
  links: readonly (readonly [Link, Grant])[]
  sessions: readonly (readonly [Session, Grant])[]
  /** Number of sessions that subscribe with QoS 1 or 2. */
  storedCopies: number
  linksGeneration: number
  sessionsGeneration: number
}

export interface RoutesPorts {
  readonly links: FilterTree<Link>
  readonly sessions: FilterTree<Session>
  /** Counts QoS 0 messages dropped because a subscriber does not keep up. */
  readonly undelivered: Counter
}

/** A message for subscribers, with the publisher's options. */
export interface Departure {
  readonly message: Message
  /** RETAIN as the publisher set it. */
  readonly retain: boolean
  /** Client identifier of the publisher, for No Local. */
  readonly source: string
}

/** Shared by topics without subscribers, which most are. */
const nobody: readonly never[] = []

/** Memory of a waiting message beside topic and payload. */
const overheadBytes = 256

/** The delivery of a message to the client with that identifier; undefined when No Local excludes it. */
export function deliveryTo(
  client: string,
  grant: Grant,
  { message, retain, source }: Departure,
): DeliveryOptions | undefined {
  const granted = client === source ? grant.ownQos : grant.qos
  if (granted === undefined) return undefined
  const qos = asQos(Math.min(message.qos, granted))
  return { qos, retain: retain && grant.keepsRetain, subscriptions: grant.subscriptions }
}

export function createTopicRoutes({ links, sessions, undelivered }: RoutesPorts) {
  const routes = new Map<string, TopicRoute>()

  function create(topic: string, problem: PacketFault | undefined): TopicRoute {
    return {
      topic,
      problem,
      links: nobody,
      sessions: nobody,
      storedCopies: 0,
      linksGeneration: -1,
      sessionsGeneration: -1,
    }
  }

  /** The route of a topic, whose bytes are given as Latin-1 characters. */
  function find(key: string): TopicRoute {
    let route = routes.get(key)
    if (route === undefined) {
      const bytes = Buffer.from(key, 'latin1')
      const text = bytes.toString()
      // One string for both, unless the topic has characters beyond ASCII.
      const topic = text === key ? key : text
      const problem = isUtf8(bytes) ? topicProblem(topic) : 'a topic must be well-formed UTF-8'
      route = create(
        topic,
        problem === undefined ? undefined : { code: reasons.topicNameInvalid, reason: problem },
      )
      if (route.problem !== undefined) return route
      if (routes.size >= limits.routesMax.value) routes.clear()
      routes.set(key, route)
    }
    return route
  }

  function linksOf(route: TopicRoute): TopicRoute['links'] {
    const generation = links.generation()
    if (route.linksGeneration !== generation) {
      const found = links.match(route.topic)
      route.links = found.size === 0 ? nobody : [...found]
      route.linksGeneration = generation
    }
    return route.links
  }

  /** Sessions that subscribe to the topic, each with its highest QoS. */
  function sessionsOf(route: TopicRoute): TopicRoute['sessions'] {
    const generation = sessions.generation()
    if (route.sessionsGeneration !== generation) {
      const found = sessions.match(route.topic)
      route.sessions = found.size === 0 ? nobody : [...found]
      route.storedCopies = route.sessions.filter(([, { qos }]) => qos > 0).length
      route.sessionsGeneration = generation
    }
    return route.sessions
  }

  /** Sends one message to one client. Without a session, messages are not kept for later. */
  function deliver(link: Link, message: Message, { qos, retain, subscriptions }: DeliveryOptions): void {
    if (!link.isOpen()) return
    if (link.isBacklogged()) {
      if (qos === 0) undelivered.value++
      else link.fail('the client does not keep up with its subscriptions', reasons.quotaExceeded)
      return
    }
    const send = (id: number): boolean => link.send(message, { qos, retain, dup: false, id }, subscriptions)
    if (qos === 0) {
      send(0)
      return
    }
    const bytes =
      overheadBytes + message.topic.length + message.payload.length + (message.properties?.length ?? 0)
    if (!link.window.offer(bytes, send)) {
      link.fail('the client leaves too many messages unacknowledged', reasons.quotaExceeded)
    }
  }

  /** Sends a message to all current subscribers, except what session queues deliver. */
  function fanOut(route: TopicRoute, departure: Departure): void {
    const { message } = departure
    for (const [link, grant] of linksOf(route)) {
      const delivery = deliveryTo(link.id(), grant, departure)
      if (delivery !== undefined) deliver(link, message, delivery)
    }
    for (const [{ link, client }, grant] of sessionsOf(route)) {
      const delivery = link === undefined ? undefined : deliveryTo(client, grant, departure)
      if (delivery?.qos === 0) deliver(link!, message, delivery)
    }
  }

  return Object.freeze({
    find,
    /** The route of a topic given as text. */
    ofTopic: (topic: string): TopicRoute => find(Buffer.from(topic).toString('latin1')),
    sessionsOf,
    /** Number of sessions that queue a message of this QoS. */
    storedCopies(route: TopicRoute, qos: Qos): number {
      if (qos === 0) return 0
      sessionsOf(route)
      return route.storedCopies
    },
    deliver,
    fanOut,
    /** True when nobody subscribes to the topic. */
    hasNoSubscribers: (route: TopicRoute): boolean =>
      linksOf(route).length === 0 && sessionsOf(route).length === 0,
  })
}

export type Routes = ReturnType<typeof createTopicRoutes>
