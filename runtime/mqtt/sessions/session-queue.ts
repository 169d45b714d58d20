/**
 * What is owed to persistent sessions. The queue is on disk; in memory are counts and the few messages under way.
 * A message enters it in the commit that stores the message itself, and leaves when the client has acknowledged it.
 * Packet identifiers follow from the place in the queue, so they are the same after a restart ([MQTT-4.4.0-1]).
 *
 * At a ceiling the oldest goes. A client that is slow or absent costs disk up to the ceiling, never memory.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Link } from '#mqtt/link/client-connection.ts'
import type { Grant } from '#mqtt/wire/filter-tree.ts'
import { withSubscriptions } from '#mqtt/wire/properties.ts'
import { reasons } from '#mqtt/wire/reasons.ts'
import { queueIdsMax } from '#mqtt/wire/window.ts'
import type { Qos } from '#mqtt/wire/wire.ts'
import { asQos, type Message } from '#mqtt/wire/wire.ts'
import { messageKey, placeOf, type QueuedRow, type SessionRows } from '#store/tables/mqtt-rows.ts'
import type { Chores } from './chores.ts'

/** How a message goes to one subscriber. */
export interface Delivery {
  readonly qos: Qos
  readonly retain: boolean
  readonly subscriptions: readonly number[]
}

export interface Session {
  readonly s: number
  readonly client: string
  /** Topic filters and what they entitle to. */
  readonly filters: Map<string, Grant>
  /** The connection, while its client is there and ready. */
  link: Link | undefined
  /** Last seen, wall-clock ms. */
  seen: number
  /** How long it lives while its client is away, ms; 0 ends it with the connection. */
  expiryMs: number
  /** True once its row is on disk. */
  isStored: boolean
  readonly queue: Queue
}

export interface Queue {
  /** Newest place given out; some places stay empty. */
  last: number
  /** Newest place on disk. */
  stored: number
  /** Up to here everything was dropped at a ceiling. */
  cut: number
  /** Newest place sent on this connection, and on any before. */
  sent: number
  sentBefore: number
  /** Sent and not acknowledged, by packet identifier. */
  readonly underWay: Map<number, UnderWay>
  /** Acknowledged places that are still on disk. */
  readonly settled: Set<number>
  messages: number
  bytes: number
  /** An eviction was logged since the client was last there. */
  isWarned: boolean
  waitsForDrain: boolean
}

interface UnderWay {
  readonly place: number
  readonly bytes: number
  isReleased: boolean
}

export interface Ceilings {
  readonly sessionMessages: number
  readonly sessionBytes: number
  readonly sessionsBytes: number
}

export interface QueuePorts {
  readonly door: Pick<Door, 'commit'>
  readonly rows: Pick<SessionRows, 'queued' | 'oldest'>
  readonly chores: Chores
  readonly sessions: () => Iterable<Session>
  readonly log: Log
  readonly metrics: Metrics
}

const idOf = (place: number): number => ((place - 1) % queueIdsMax) + 1
/** What a message costs beside topic and payload. */
const overheadBytes = 32
const readAtOnce = 256
/** Messages may be large, so few are read before the client has taken them; and not one by one. */
const sentAtOnce = 16

export const emptyQueue = (): Queue => ({
  last: 0,
  stored: 0,
  cut: 0,
  sent: 0,
  sentBefore: 0,
  underWay: new Map(),
  settled: new Set(),
  messages: 0,
  bytes: 0,
  isWarned: false,
  waitsForDrain: false,
})

export function createSessionQueues(ports: QueuePorts, ceilings: Ceilings) {
  const { rows, chores } = ports
  const evicted = ports.metrics.counter('selvedge_mqtt_offline_evicted_total')
  let messages = 0
  let bytes = 0

  function account(queue: Queue, count: number, size: number): void {
    queue.messages += count
    queue.bytes += size
    messages += count
    bytes += size
  }

  /** Owes a message to a session, as part of a commit; the payload of `message` is no view of a larger buffer. */
  function enqueue(stage: Stage, session: Session, { message: sent, delivery }: Debt): void {
    const { queue } = session
    const { qos, retain, subscriptions } = delivery
    const { topic, payload, expiresAt } = sent
    const properties = withSubscriptions(sent.properties, subscriptions)
    const place = ++queue.last
    const size = overheadBytes + topic.length + payload.length + (properties?.length ?? 0)
    account(queue, 1, size)
    stage.undone(() => account(queue, -1, -size))
    const key = messageKey(session.s, place)
    const rest = [retain ? 1 : 0, properties ?? null, expiresAt ?? null] as const
    stage.write('session-message.insert', key, qos, size, topic, payload, ...rest)
    const message: Message = { topic, payload, qos, properties, expiresAt }
    stage.published(() => arrived(session, { place, size, released: false, retain, message }))
    makeRoom(stage, session)
  }

  function makeRoom(stage: Stage, session: Session): void {
    const { queue } = session
    const overCount = queue.messages - ceilings.sessionMessages
    const overBytes = queue.bytes - ceilings.sessionBytes
    if (overCount > 0 || overBytes > 0) {
      const count = overCount > 0 ? overCount + (ceilings.sessionMessages >> 5) : 0
      const size = overBytes > 0 ? overBytes + (ceilings.sessionBytes >> 5) : 0
      evict(stage, session, count, size)
    }
    if (bytes <= ceilings.sessionsBytes) return
    let largest = session
    for (const other of ports.sessions()) if (other.queue.bytes > largest.queue.bytes) largest = other
    evict(stage, largest, 0, bytes - ceilings.sessionsBytes + (largest.queue.bytes >> 5))
  }

  /** Drops the oldest messages on disk, at least so many and so many bytes, where there are that many. */
  function evict(stage: Stage, session: Session, count: number, size: number): void {
    const { queue } = session
    const before = queue.cut
    let dropped = 0
    let freed = 0
    let batch: { k: number; bytes: number }[]
    do {
      batch = rows.oldest(session.s, queue.cut, queue.stored, readAtOnce)
      for (const row of batch) {
        if (dropped >= count && freed >= size) break
        queue.cut = placeOf(row.k)
        if (queue.settled.has(queue.cut)) continue
        dropped++
        freed += row.bytes
      }
    } while ((dropped < count || freed < size) && batch.length === readAtOnce)
    if (queue.cut === before) return
    account(queue, -dropped, -freed)
    stage.undone(() => {
      queue.cut = before
      account(queue, dropped, freed)
    })
    stage.write('session-message.cut', messageKey(session.s, before + 1), messageKey(session.s, queue.cut))
    const { cut } = queue
    stage.published(() => dropUpTo(session, cut, dropped))
  }

  function dropUpTo(session: Session, cut: number, dropped: number): void {
    const { queue } = session
    for (const [id, { place }] of queue.underWay) if (place <= cut) queue.underWay.delete(id)
    evicted.value += dropped
    if (queue.isWarned || dropped === 0) return
    queue.isWarned = true
    ports.log.warn('mqtt.session-evicted', {
      client: session.client,
      kept: queue.messages,
      bytes: queue.bytes,
    })
  }

  /** A message is on disk: it goes out at once when all before it have, else it is read when its turn comes. */
  function arrived(session: Session, owed: Owed): void {
    const { queue, link } = session
    queue.stored = owed.place
    if (link === undefined) return
    if (queue.sent !== owed.place - 1 || !hasRoom(session)) pump(session)
    else send(session, owed)
  }

  const inFlightMax = ({ link }: Session): number =>
    Math.min(limits.sessionInFlightMax.value, link!.window.queueRoom())

  const hasRoom = (session: Session): boolean =>
    session.queue.underWay.size < inFlightMax(session) &&
    session.link!.isOpen() &&
    !session.link!.isBacklogged()

  /** Sends what is owed, in order, as far as the client takes it. */
  function pump(session: Session): void {
    const { queue, link } = session
    if (link === undefined) return
    let read = 0
    while (queue.sent < queue.stored && hasRoom(session)) {
      // What has lapsed or is too large fills no room: a long queue of it is passed over in several turns.
      if (read >= readAtOnce) {
        setImmediate(() => pump(session))
        return
      }
      const owed = rows.queued(session.s, Math.max(queue.sent, queue.cut), queue.stored, sentAtOnce)
      read += owed.length
      for (const row of owed) if (hasRoom(session)) send(session, owedMessage(row))
      if (owed.length === 0) queue.sent = queue.stored
    }
    if (queue.waitsForDrain || !link.isBacklogged()) return
    queue.waitsForDrain = true
    link.whenDrained(() => {
      queue.waitsForDrain = false
      pump(session)
    })
  }

  function send(session: Session, owed: Owed): void {
    const { queue } = session
    queue.sent = owed.place
    if (queue.settled.has(owed.place)) return
    const id = idOf(owed.place)
    const stuck = queue.underWay.get(id)
    if (stuck !== undefined) settle(session, id, stuck)
    queue.underWay.set(id, { place: owed.place, bytes: owed.size, isReleased: owed.released })
    const link = session.link!
    if (owed.released) {
      link.acknowledge({ type: 'pubrel', id, code: reasons.success })
      return
    }
    const { message, retain } = owed
    const flags = { qos: message.qos, retain, dup: owed.place <= queue.sentBefore, id }
    if (!link.send(message, flags, [])) settle(session, id, queue.underWay.get(id)!)
  }

  function settle(session: Session, id: number, { place, bytes: size }: UnderWay): void {
    const { queue } = session
    queue.underWay.delete(id)
    // What is being dropped at a ceiling has left the account already.
    if (place <= queue.cut) return
    queue.settled.add(place)
    account(queue, -1, -size)
    chores.set(`settled:${session.s}`, (stage) => forget(stage, session))
  }

  /** Deletes what was acknowledged, run by run. */
  function forget(stage: Stage, { s, queue }: Session): void {
    const places = [...queue.settled].sort((a, b) => a - b)
    let from = 0
    for (let i = 0; i < places.length; i++) {
      if (places[i + 1] === places[i]! + 1) continue
      stage.write('session-message.cut', messageKey(s, places[from]!), messageKey(s, places[i]!))
      from = i + 1
    }
    stage.published(() => {
      for (const place of places) queue.settled.delete(place)
    })
  }

  return Object.freeze({
    enqueue,
    /** The client is there: everything owed is sent again from the beginning ([MQTT-4.4.0-1]). */
    open(session: Session): void {
      const { queue } = session
      queue.underWay.clear()
      session.link?.window.share(() => queue.underWay.size)
      queue.sent = 0
      queue.isWarned = false
      queue.waitsForDrain = false
      pump(session)
    },
    /** The client is gone; what was sent to it may be sent again. */
    leave({ queue }: Session): void {
      queue.sentBefore = Math.max(queue.sentBefore, queue.sent)
      queue.underWay.clear()
    },
    /** PUBACK or PUBCOMP came, or a PUBREC that refuses. */
    acknowledged(session: Session, id: number): void {
      const found = session.queue.underWay.get(id)
      if (found !== undefined) settle(session, id, found)
    },
    /** Sends more when enough was acknowledged; few messages are not read from disk one by one. */
    resume(session: Session): void {
      const max = inFlightMax(session)
      const room = max - session.queue.underWay.size
      if (room >= Math.min(sentAtOnce, Math.ceil(max / 4))) pump(session)
      session.link?.window.resume()
    },
    /** PUBREC came: settles when it is on disk that only PUBREL is owed; false when it is for no message of the queue. */
    async received(session: Session, id: number): Promise<boolean> {
      const found = session.queue.underWay.get(id)
      if (found === undefined) return false
      if (found.isReleased) return true
      await ports.door.commit((stage) => {
        stage.write('session-message.release', messageKey(session.s, found.place))
      })
      found.isReleased = true
      return true
    },
    /** Takes the messages of a session that ends out of the account. */
    drop({ queue }: Session): void {
      account(queue, -queue.messages, -queue.bytes)
    },
    /** Adds what was on disk at start. */
    restore({ queue }: Session, count: number, size: number): void {
      account(queue, count, size)
    },
    messages: () => messages,
    bytes: () => bytes,
  })
}

export type SessionQueues = ReturnType<typeof createSessionQueues>

/** A message, and how it goes to the client of a session; its QoS is 1 or 2. */
export interface Debt {
  readonly message: Message
  readonly delivery: Delivery
}

interface Owed {
  readonly place: number
  readonly size: number
  readonly released: boolean
  readonly retain: boolean
  readonly message: Message
}

const owedMessage = ({
  k,
  bytes,
  released,
  retain,
  topic,
  payload,
  qos,
  properties,
  expires,
}: QueuedRow): Owed => ({
  place: placeOf(k),
  size: bytes,
  released: released === 1,
  retain: retain === 1,
  message: {
    topic,
    payload,
    qos: asQos(qos),
    properties: properties ?? undefined,
    expiresAt: expires ?? undefined,
  },
})
