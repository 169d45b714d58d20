/**
 * Persistent sessions (MQTT 3.1.1, section 3.1.2.4): which there are, what they subscribed to, when they end. They
 * survive a restart; one that nobody came back to ends by age. While the clock of a board is unsynced, when a client was
 * seen is not known: that is 0, and no time before the year 2000 is ever taken for an age.
 */
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Door } from '#broker/door.ts'
import type { Stage } from '#broker/stage.ts'
import { messageKey, type SessionRows } from '#store/sessions.ts'
import type { Chores } from './chores.ts'
import type { FilterTree } from './filter-tree.ts'
import type { Link } from './link.ts'
import { emptyQueue, type Session, type SessionQueues } from './session-queue.ts'
import { asQos, type Qos } from './wire.ts'

export interface SessionsPorts {
  readonly door: Pick<Door, 'commit'>
  readonly rows: SessionRows
  readonly chores: Chores
  readonly queues: SessionQueues
  readonly tree: FilterTree<Session>
  readonly clock: Clock
  readonly log: Log
}

export interface SessionSettings {
  readonly sessionsMax: number
  readonly sessionAgeMs: number
}

export function createSessions(ports: SessionsPorts, settings: SessionSettings) {
  const { door, rows, chores, queues, tree, clock } = ports
  const byClient = new Map<string, Session>()
  let lastNumber = rows.lastSession()
  const seenNow = (): number => (clock.trust?.stretch() === undefined ? clock.now() : 0)

  function createSession(s: number, client: string, isStored: boolean): Session {
    const session: Session = {
      s,
      client,
      filters: new Map(),
      link: undefined,
      seen: seenNow(),
      isStored,
      queue: emptyQueue(),
    }
    byClient.set(client, session)
    return session
  }

  /** Reads what was there when the gateway ended. */
  function restore(): void {
    const byNumber = new Map<number, Session>()
    for (const row of rows.sessions()) {
      const session = createSession(row.s, row.client, true)
      byNumber.set(row.s, session)
      // A client that was there at the end has been seen just now, whatever its row says.
      if (row.sent !== null) session.seen = row.seen
      session.queue.last = row.last
      session.queue.stored = row.last
      session.queue.sentBefore = row.sent ?? row.last
      queues.restore(session, row.messages, row.bytes)
    }
    for (const { s, filter, qos } of rows.filters()) {
      const session = byNumber.get(s)
      if (session !== undefined) subscribe(session, filter, qos)
    }
  }

  function subscribe(session: Session, filter: string, qos: Qos): void {
    session.filters.set(filter, qos)
    tree.add(filter, session, qos)
  }

  /** Writes the row of a session; rows that name a session are never on disk without it. */
  function put(stage: Stage, session: Session): void {
    const { s, client, link, seen, queue } = session
    stage.write('session.put', s, client, seen, link === undefined ? queue.sentBefore : null)
    stage.published(() => {
      session.isStored = true
    })
  }

  function note(session: Session): void {
    session.seen = seenNow()
    chores.set(`session:${session.s}`, (stage) => {
      if (byClient.get(session.client) === session) put(stage, session)
    })
  }

  function forget(session: Session): (stage: Stage) => void {
    for (const filter of session.filters.keys()) tree.remove(filter, session)
    byClient.delete(session.client)
    queues.drop(session)
    return (stage) => {
      stage.write('session.delete', session.s)
      stage.write('session-filter.clear', session.s)
      stage.write('incoming.clear', session.s)
      stage.write('session-message.cut', messageKey(session.s, 1), messageKey(session.s + 1, 0) - 1)
    }
  }

  restore()

  return Object.freeze({
    get: (client: string) => byClient.get(client),
    all: () => byClient.values(),
    count: () => byClient.size,
    /** True when a client that keeps no session yet would be one too many. */
    isFull: () => byClient.size >= settings.sessionsMax,
    /** The session of a client that connects with CleanSession 0, made when there is none. */
    begin(client: string): { session: Session; isPresent: boolean } {
      const found = byClient.get(client)
      if (found !== undefined) {
        found.seen = seenNow()
        return { session: found, isPresent: true }
      }
      if (byClient.size >= settings.sessionsMax) {
        throw new GatewayError('mqtt.ceiling', `there are ${settings.sessionsMax} sessions already`)
      }
      return { session: createSession(++lastNumber, client, false), isPresent: false }
    },
    open(session: Session, link: Link): void {
      session.link = link
      note(session)
      queues.open(session)
    },
    /** The connection of a session is gone; a newer connection of the same client is left alone. */
    leave(session: Session, link: Link): void {
      if (session.link !== link) return
      queues.leave(session)
      session.link = undefined
      note(session)
    },
    /** Ends a session for good ([MQTT-3.1.2-6]); settles when it is gone from disk. */
    async end(client: string): Promise<void> {
      const session = byClient.get(client)
      if (session === undefined) return
      const erase = forget(session)
      await door.commit(erase).catch((error) => {
        chores.set(`erase:${session.s}`, erase)
        throw error
      })
    },
    /** Settles when the filters are on disk; only then do they match. */
    async subscribe(session: Session, filters: readonly { topic: string; qos: number }[]): Promise<void> {
      const changed = filters.filter(({ topic, qos }) => qos <= 2 && session.filters.get(topic) !== qos)
      if (changed.length === 0) return
      await door.commit((stage) => {
        if (!session.isStored) put(stage, session)
        for (const { topic, qos } of changed) stage.write('session-filter.put', session.s, topic, qos)
        stage.published(() => {
          if (byClient.get(session.client) !== session) return
          for (const { topic, qos } of changed) subscribe(session, topic, asQos(qos))
        })
      })
    },
    async unsubscribe(session: Session, filters: readonly string[]): Promise<void> {
      const held = filters.filter((filter) => session.filters.has(filter))
      if (held.length === 0) return
      await door.commit((stage) => {
        for (const filter of held) stage.write('session-filter.delete', session.s, filter)
        stage.published(() => {
          for (const filter of held) {
            session.filters.delete(filter)
            tree.remove(filter, session)
          }
        })
      })
    },
    put,
    /** Ends sessions whose client has been away for too long. */
    expire(): void {
      if (!(clock.trust?.mayRemove() ?? true)) return
      const now = clock.now()
      for (const session of byClient.values()) {
        if (session.link !== undefined) continue
        if (session.seen < limits.observedAtFloorMs.value) session.seen = now
        if (now - session.seen <= settings.sessionAgeMs) continue
        ports.log.info('mqtt.session-ended', { client: session.client, messages: session.queue.messages })
        chores.set(`erase:${session.s}`, forget(session))
      }
    },
    /** Notes, before the gateway ends, how far every present session has come. */
    leaveAll(): void {
      for (const session of byClient.values()) {
        if (session.link === undefined) continue
        queues.leave(session)
        session.link = undefined
        note(session)
      }
    },
  })
}

export type Sessions = ReturnType<typeof createSessions>
