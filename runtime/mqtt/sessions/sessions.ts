/**
 * Persistent sessions (MQTT 3.1.1, section 3.1.2.4; MQTT 5, section 4.1): the existing sessions, their
 * subscriptions and their expiry. They survive a restart. A session whose client stays away ends after its
 * session expiry interval, or by age. While a board's clock is not set, the last-seen time is unknown and
 * stored as 0; times before the year 2000 are never used as an age.
 */

import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { FilterTree, Grant } from '#mqtt/wire/filter-tree.ts'
import { asQos } from '#mqtt/wire/wire.ts'
import { type FilterRow, messageKey, type SessionRows } from '#store/tables/mqtt-rows.ts'
import type { BackgroundWrites } from './background-writes.ts'
import type { Presence } from './presence.ts'
import { emptyQueue, type Session, type SessionQueues } from './session-queue.ts'

export interface SessionsPorts extends ClockAndLog {
  readonly door: Pick<Door, 'commit'>
  readonly rows: SessionRows
  readonly backgroundWrites: BackgroundWrites
  readonly queues: SessionQueues
  readonly tree: FilterTree<Session>
}

export interface SessionSettings {
  readonly sessionsMax: number
  readonly sessionAgeMs: number
}

export function createSessions(ports: SessionsPorts, settings: SessionSettings) {
  const { door, rows, backgroundWrites, queues, tree, clock } = ports
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
      expiryMs: settings.sessionAgeMs,
      isStored,
      queue: emptyQueue(),
    }
    byClient.set(client, session)
    return session
  }

  /** Restores the sessions that existed when the gateway ended. */
  function restore(): void {
    const byNumber = new Map<number, Session>()
    for (const row of rows.sessions()) {
      const session = createSession(row.s, row.client, true)
      byNumber.set(row.s, session)
      // A client that was connected at shutdown counts as last seen now; its stored time is ignored.
      if (row.sent !== null) session.seen = row.seen
      if (row.expiry !== null) session.expiryMs = row.expiry * 1000
      session.queue.last = row.last
      session.queue.stored = row.last
      session.queue.sentBefore = row.sent ?? row.last
      queues.restore(session, row.messages, row.bytes)
    }
    for (const { s, filter, ...row } of rows.filters()) {
      const session = byNumber.get(s)
      if (session !== undefined) subscribe(session, filter, grantOf(row))
    }
    // Deletes sessions with expiry 0 that outlived their connection because the gateway stopped.
    for (const session of byNumber.values()) if (session.expiryMs === 0) erase(session)
  }

  function subscribe(session: Session, filter: string, grant: Grant): void {
    session.filters.set(filter, grant)
    tree.add(filter, session, grant)
  }

  /** Writes the row of a session, always before rows that refer to it. */
  function put(stage: Stage, session: Session): void {
    const { s, client, link, seen, expiryMs, queue } = session
    const expiry = expiryMs === settings.sessionAgeMs ? null : expiryMs / 1000
    stage.write('session.put', s, client, seen, link === undefined ? queue.sentBefore : null, expiry)
    stage.published(() => {
      session.isStored = true
    })
  }

  function note(session: Session): void {
    session.seen = seenNow()
    backgroundWrites.set(`session:${session.s}`, (stage) => {
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

  /** Ends a session for good; its rows are deleted soon. */
  function erase(session: Session): void {
    backgroundWrites.set(`erase:${session.s}`, forget(session))
  }

  /** True when the client of a session has been away for too long. */
  function isExpired(session: Session, now: number): boolean {
    return session.link === undefined && session.seen > 0 && now - session.seen > session.expiryMs
  }

  const mayExpire = (): boolean => clock.trust?.mayRemove() ?? true

  restore()

  return Object.freeze({
    get: (client: string) => byClient.get(client),
    all: () => byClient.values(),
    count: () => byClient.size,
    /** True when no new session can be created. */
    isFull: () => byClient.size >= settings.sessionsMax,
    /** True when a connecting client has a session; ends a session that has expired. */
    isPresent(client: string): boolean {
      const session = byClient.get(client)
      if (session === undefined) return false
      if (!mayExpire() || !isExpired(session, clock.now())) return true
      erase(session)
      return false
    },
    /** The session of a connecting client; creates it if there is none. */
    begin(client: string): Session {
      const found = byClient.get(client)
      if (found !== undefined) {
        found.seen = seenNow()
        return found
      }
      if (byClient.size >= settings.sessionsMax) {
        throw new GatewayError('mqtt.ceiling', `the maximum of ${settings.sessionsMax} sessions is reached`)
      }
      return createSession(++lastNumber, client, false)
    },
    open(session: Session, { link, expiryMs }: Presence): void {
      session.link = link
      session.expiryMs = expiryMs
      note(session)
      queues.open(session)
    },
    /** The connection of a session was closed; ignored if the client has a newer connection. */
    leave(session: Session, { link, expiryMs }: Presence): void {
      if (session.link !== link) return
      queues.leave(session)
      session.link = undefined
      session.expiryMs = expiryMs
      if (expiryMs === 0) erase(session)
      else note(session)
    },
    /** Ends a session for good ([MQTT-3.1.2-6]); resolves when it is deleted from disk. */
    async end(client: string): Promise<void> {
      const session = byClient.get(client)
      if (session === undefined) return
      const erase = forget(session)
      await door.commit(erase).catch((error) => {
        backgroundWrites.set(`erase:${session.s}`, erase)
        throw error
      })
    },
    /** Resolves when the filters are on disk; they match only from then on. */
    async subscribe(session: Session, filters: readonly { filter: string; grant: Grant }[]): Promise<void> {
      const changed = filters.filter(({ filter, grant }) => !isSame(session.filters.get(filter), grant))
      if (changed.length === 0) return
      await door.commit((stage) => {
        if (!session.isStored) put(stage, session)
        for (const { filter, grant } of changed) {
          stage.write(
            'session-filter.put',
            session.s,
            filter,
            grant.qos,
            optionsOf(grant),
            grant.subscriptions[0] ?? null,
          )
        }
        stage.published(() => {
          if (byClient.get(session.client) !== session) return
          for (const { filter, grant } of changed) subscribe(session, filter, grant)
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
    /** Ends sessions whose clients have been away for too long. */
    expire(): void {
      if (!mayExpire()) return
      const now = clock.now()
      for (const session of byClient.values()) {
        if (session.link !== undefined) continue
        if (session.seen < limits.observedAtFloorMs.value) session.seen = now
        if (!isExpired(session, now)) continue
        ports.log.info('mqtt.session-ended', { client: session.client, messages: session.queue.messages })
        erase(session)
      }
    },
    /** Before the gateway ends, stores the progress of every connected session. */
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

const noLocal = 1
const retainAsPublished = 2

/** The options of a subscription, as stored. */
const optionsOf = (grant: Grant): number =>
  (grant.ownQos === undefined ? noLocal : 0) | (grant.keepsRetain ? retainAsPublished : 0)

function grantOf({ qos: stored, options, identifier }: Omit<FilterRow, 's' | 'filter'>): Grant {
  const qos = asQos(stored)
  return {
    qos,
    ownQos: (options & noLocal) !== 0 ? undefined : qos,
    keepsRetain: (options & retainAsPublished) !== 0,
    subscriptions: identifier === null ? [] : [identifier],
  }
}

const isSame = (a: Grant | undefined, b: Grant): boolean =>
  a !== undefined &&
  a.qos === b.qos &&
  optionsOf(a) === optionsOf(b) &&
  a.subscriptions[0] === b.subscriptions[0]

export type Sessions = ReturnType<typeof createSessions>
