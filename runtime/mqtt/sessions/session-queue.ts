/**
 * Message queues of persistent sessions. The queue is on disk; memory holds only counters and the few
 * messages in flight. A message is added in the commit that stores the message itself, and deleted when the
 * client has acknowledged it. Packet identifiers follow from the place in the queue, so they are the same
 * after a restart ([MQTT-4.4.0-1]).
 *
 * At a limit the oldest messages are dropped. A slow or absent client costs disk space up to the limit, never
 * memory.
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
import { asQos, type Message, type Qos } from '#mqtt/wire/wire.ts'
import { messageKey, placeOf, type QueuedRow, type SessionRows } from '#store/tables/mqtt-rows.ts'
import type { BackgroundWrites } from './background-writes.ts'

/** How a message is delivered to one subscriber. */
export interface DeliveryOptions {
  readonly qos: Qos
  readonly retain: boolean
  readonly subscriptions: readonly number[]
}

export interface Session {
  readonly s: number
  readonly client: string
  /** Topic filters and their grants. */
  readonly filters: Map<string, Grant>
  /** The connection, while the client is connected and ready. */
  link: Link | undefined
  /** Last seen, wall-clock ms. */
  seen: number
  /** How long it lives while its client is away, ms; 0 ends it with the connection. */
  expiryMs: number
  /** True once its row is on disk. */
  isStored: boolean
  readonly queue: SessionQueue
}

export interface SessionQueue {
  /** Newest assigned place; some places stay empty. */
  last: number
  /** Newest place on disk. */
  stored: number
  /** All messages up to this place were dropped at a limit. */
  cut: number
  /** Newest place sent on this connection, and on any earlier one. */
  sent: number
  sentBefore: number
  /** Sent and not acknowledged, by packet identifier. */
  readonly inFlight: Map<number, InFlight>
  /** Acknowledged places that are still on disk. */
  readonly settled: Set<number>
  messages: number
  bytes: number
  /** True when an eviction was logged since the client last connected. */
  isWarned: boolean
  waitsForDrain: boolean
}

interface InFlight {
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
  readonly backgroundWrites: BackgroundWrites
  readonly sessions: () => Iterable<Session>
  readonly log: Log
  readonly metrics: Metrics
}

const idOf = (place: number): number => ((place - 1) % queueIdsMax) + 1
/** Size of a message beside topic and payload. */
const overheadBytes = 32
const readAtOnce = 256
/** Messages may be large, so few are read ahead of the client; reading them singly would be slow. */
const sentAtOnce = 16

export const emptyQueue = (): SessionQueue => ({
  last: 0,
  stored: 0,
  cut: 0,
  sent: 0,
  sentBefore: 0,
  inFlight: new Map(),
  settled: new Set(),
  messages: 0,
  bytes: 0,
  isWarned: false,
  waitsForDrain: false,
})

export function createSessionQueues(ports: QueuePorts, ceilings: Ceilings) {
  const { rows, backgroundWrites } = ports
  const evicted = ports.metrics.counter('selvedge_mqtt_offline_evicted_total')
  let messages = 0
  let bytes = 0

  function account(queue: SessionQueue, count: number, size: number): void {
    queue.messages += count
    queue.bytes += size
    messages += count
    bytes += size
  }

  /**
   * Adds a message to a session's queue, as part of a commit; the payload must not be a view of a larger
   * buffer.
   */
  function enqueue(stage: Stage, session: Session, { message: sent, delivery }: Enqueued): void {
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

  /** Drops the oldest messages on disk, at least `count` and `size` bytes if there are that many. */
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
    for (const [id, { place }] of queue.inFlight) if (place <= cut) queue.inFlight.delete(id)
    evicted.value += dropped
    if (queue.isWarned || dropped === 0) return
    queue.isWarned = true
    ports.log.warn('mqtt.session-evicted', {
      client: session.client,
      kept: queue.messages,
      bytes: queue.bytes,
    })
  }

  /**
   * A message is on disk: sends it at once if all earlier ones were sent, otherwise `pump` reads it in order.
   */
  function arrived(session: Session, queued: Queued): void {
    const { queue, link } = session
    queue.stored = queued.place
    if (link === undefined) return
    if (queue.sent !== queued.place - 1 || !hasRoom(session)) pump(session)
    else send(session, queued)
  }

  const inFlightMax = ({ link }: Session): number =>
    Math.min(limits.sessionInFlightMax.value, link!.window.queueRoom())

  const hasRoom = (session: Session): boolean =>
    session.queue.inFlight.size < inFlightMax(session) &&
    session.link!.isOpen() &&
    !session.link!.isBacklogged()

  /** Sends queued messages in order, as far as the client accepts them. */
  function pump(session: Session): void {
    const { queue, link } = session
    if (link === undefined) return
    let read = 0
    while (queue.sent < queue.stored && hasRoom(session)) {
      // Expired and oversized messages take no place in flight, so a long queue of them is skipped in several
      // turns.
      if (read >= readAtOnce) {
        setImmediate(() => pump(session))
        return
      }
      const queued = rows.queued(session.s, Math.max(queue.sent, queue.cut), queue.stored, sentAtOnce)
      read += queued.length
      for (const row of queued) if (hasRoom(session)) send(session, queuedMessage(row))
      if (queued.length === 0) queue.sent = queue.stored
    }
    if (queue.waitsForDrain || !link.isBacklogged()) return
    queue.waitsForDrain = true
    link.whenDrained(() => {
      queue.waitsForDrain = false
      pump(session)
    })
  }

  function send(session: Session, queued: Queued): void {
    const { queue } = session
    queue.sent = queued.place
    if (queue.settled.has(queued.place)) return
    const id = idOf(queued.place)
    const stuck = queue.inFlight.get(id)
    if (stuck !== undefined) settle(session, id, stuck)
    queue.inFlight.set(id, { place: queued.place, bytes: queued.size, isReleased: queued.released })
    const link = session.link!
    if (queued.released) {
      link.acknowledge({ type: 'pubrel', id, code: reasons.success })
      return
    }
    const { message, retain } = queued
    const flags = { qos: message.qos, retain, dup: queued.place <= queue.sentBefore, id }
    if (!link.send(message, flags, [])) settle(session, id, queue.inFlight.get(id)!)
  }

  function settle(session: Session, id: number, { place, bytes: size }: InFlight): void {
    const { queue } = session
    queue.inFlight.delete(id)
    // An evicted message was already subtracted.
    if (place <= queue.cut) return
    queue.settled.add(place)
    account(queue, -1, -size)
    backgroundWrites.set(`settled:${session.s}`, (stage) => forget(stage, session))
  }

  /** Deletes acknowledged messages, one statement per contiguous run. */
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
    /** The client connected: every queued message is sent again from the beginning ([MQTT-4.4.0-1]). */
    open(session: Session): void {
      const { queue } = session
      queue.inFlight.clear()
      session.link?.window.share(() => queue.inFlight.size)
      queue.sent = 0
      queue.isWarned = false
      queue.waitsForDrain = false
      pump(session)
    },
    /** The client disconnected; messages already sent may be sent again. */
    leave({ queue }: Session): void {
      queue.sentBefore = Math.max(queue.sentBefore, queue.sent)
      queue.inFlight.clear()
    },
    /** Handles PUBACK, PUBCOMP, or a PUBREC with a failure code. */
    acknowledged(session: Session, id: number): void {
      const found = session.queue.inFlight.get(id)
      if (found !== undefined) settle(session, id, found)
    },
    /** Sends more once enough messages were acknowledged, so that messages are read from disk in batches. */
    resume(session: Session): void {
      const max = inFlightMax(session)
      const room = max - session.queue.inFlight.size
      if (room >= Math.min(sentAtOnce, Math.ceil(max / 4))) pump(session)
      session.link?.window.resume()
    },
    /**
     * Handles PUBREC: resolves when the disk records that only PUBREL is pending. Returns false for an
     * unknown message.
     */
    async received(session: Session, id: number): Promise<boolean> {
      const found = session.queue.inFlight.get(id)
      if (found === undefined) return false
      if (found.isReleased) return true
      await ports.door.commit((stage) => {
        stage.write('session-message.release', messageKey(session.s, found.place))
      })
      found.isReleased = true
      return true
    },
    /** Subtracts the messages of a session that ends. */
    drop({ queue }: Session): void {
      account(queue, -queue.messages, -queue.bytes)
    },
    /** Adds the messages that were on disk at start. */
    restore({ queue }: Session, count: number, size: number): void {
      account(queue, count, size)
    },
    messages: () => messages,
    bytes: () => bytes,
  })
}

export type SessionQueues = ReturnType<typeof createSessionQueues>

/** A message and its delivery to the client of a session; its QoS is 1 or 2. */
export interface Enqueued {
  readonly message: Message
  readonly delivery: DeliveryOptions
}

interface Queued {
  readonly place: number
  readonly size: number
  readonly released: boolean
  readonly retain: boolean
  readonly message: Message
}

const queuedMessage = ({
  k,
  bytes,
  released,
  retain,
  topic,
  payload,
  qos,
  properties,
  expires,
}: QueuedRow): Queued => ({
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
