/**
 * Where a topic leads: the clients that subscribe to it now and the sessions it is owed to. What was found for a
 * topic is remembered until a subscription changes, so a message costs one lookup however many filters there are.
 * A message that nobody subscribes to is not even encoded.
 */
import { isUtf8 } from 'node:buffer'
import { limits } from '#base/limits.ts'
import type { Counter } from '#base/metrics.ts'
import type { FilterTree } from './filter-tree.ts'
import type { Link } from './link.ts'
import type { Session } from './session-queue.ts'
import { topicProblem } from './topics.ts'
import { asQos, type Message, publishBytes, type Qos } from './wire.ts'

export interface Route {
  readonly topic: string
  /** Why nothing can be published there, when nothing can. */
  readonly problem: string | undefined
  links: readonly (readonly [Link, number])[]
  sessions: readonly (readonly [Session, number])[]
  /** How many of the sessions subscribe with QoS 1 or 2. */
  owedTo: number
  linksGeneration: number
  sessionsGeneration: number
}

export interface RoutesPorts {
  readonly links: FilterTree<Link>
  readonly sessions: FilterTree<Session>
  /** QoS 0 messages that a subscriber did not get because it does not keep up. */
  readonly undelivered: Counter
}

const lowest = (a: number, b: number): Qos => asQos(Math.min(a, b))

export function createRoutes({ links, sessions, undelivered }: RoutesPorts) {
  const routes = new Map<string, Route>()

  function create(topic: string, problem: string | undefined): Route {
    return { topic, problem, links: [], sessions: [], owedTo: 0, linksGeneration: -1, sessionsGeneration: -1 }
  }

  /** The route of a topic given as its bytes in Latin-1 characters. */
  function find(key: string): Route {
    let route = routes.get(key)
    if (route === undefined) {
      const bytes = Buffer.from(key, 'latin1')
      const topic = bytes.toString()
      route = create(topic, isUtf8(bytes) ? topicProblem(topic) : 'a topic is well-formed UTF-8')
      if (route.problem !== undefined) return route
      if (routes.size >= limits.routesMax.value) routes.clear()
      routes.set(key, route)
    }
    return route
  }

  function linksOf(route: Route): Route['links'] {
    const generation = links.generation()
    if (route.linksGeneration !== generation) {
      route.links = [...links.match(route.topic)]
      route.linksGeneration = generation
    }
    return route.links
  }

  /** Sessions with subscriptions of QoS 1 and 2, and those of QoS 0, with the highest QoS of each. */
  function sessionsOf(route: Route): Route['sessions'] {
    const generation = sessions.generation()
    if (route.sessionsGeneration !== generation) {
      route.sessions = [...sessions.match(route.topic)]
      route.owedTo = route.sessions.filter(([, qos]) => qos > 0).length
      route.sessionsGeneration = generation
    }
    return route.sessions
  }

  /** Sends one message to one client; `qos` is what it gets. Messages without a session are not kept for later. */
  function deliver(link: Link, message: Message, qos: Qos, retain: boolean): void {
    if (!link.isOpen()) return
    if (link.isBacklogged()) {
      if (qos === 0) undelivered.value++
      else link.fail('does not keep up with what it subscribed to')
      return
    }
    const id = qos === 0 ? 0 : link.nextId()
    if (id === undefined) link.fail('leaves too many messages unacknowledged')
    else link.write(publishBytes(message, { qos, retain, dup: false, id }))
  }

  /** Sends a message to all who subscribe now, except what session queues deliver. */
  function fanOut(route: Route, message: Message): void {
    for (const [link, qos] of linksOf(route)) deliver(link, message, lowest(message.qos, qos), false)
    for (const [{ link }, qos] of sessionsOf(route)) {
      if (link !== undefined && lowest(message.qos, qos) === 0) deliver(link, message, 0, false)
    }
  }

  return Object.freeze({
    find,
    /** The route of a topic given as text. */
    ofTopic: (topic: string): Route => find(Buffer.from(topic).toString('latin1')),
    sessionsOf,
    /** To how many sessions a message of that QoS is owed. */
    owedTo(route: Route, qos: Qos): number {
      if (qos === 0) return 0
      sessionsOf(route)
      return route.owedTo
    },
    deliver,
    fanOut,
    /** Sends a message of the server itself; such topics are many and not remembered. */
    announce(message: Message): void {
      fanOut(create(message.topic, undefined), message)
    },
  })
}

export type Routes = ReturnType<typeof createRoutes>
