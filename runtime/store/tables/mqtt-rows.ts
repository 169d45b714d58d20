/**
 * MQTT state as rows: persistent sessions with their filters and queued messages, retained messages, wills,
 * and receipts of QoS 2 messages. Only statements and reads; the MQTT room defines what a session is.
 *
 * The key of a queued message packs its session and its place in that session's queue. A queue is therefore
 * one range of one table: appended at its end, deleted at its beginning, read in order.
 */
import type { Database } from '#store/file/database.ts'

export const sessionWrites = {
  'session.put':
    'INSERT INTO session (s, client, seen, sent, expiry) VALUES (?, ?, ?, ?, ?) ON CONFLICT (s) DO UPDATE SET seen = excluded.seen, sent = excluded.sent, expiry = excluded.expiry',
  'session.delete': 'DELETE FROM session WHERE s = ?',
  'session-filter.put':
    'INSERT INTO session_filter (s, filter, qos, options, identifier) VALUES (?, ?, ?, ?, ?) ON CONFLICT (s, filter) DO UPDATE SET qos = excluded.qos, options = excluded.options, identifier = excluded.identifier',
  'session-filter.delete': 'DELETE FROM session_filter WHERE s = ? AND filter = ?',
  'session-filter.clear': 'DELETE FROM session_filter WHERE s = ?',
  'session-message.insert':
    'INSERT INTO session_message (k, qos, bytes, topic, payload, retain, properties, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  'session-message.release':
    "UPDATE session_message SET released = 1, payload = x'', properties = NULL WHERE k = ?",
  'session-message.cut': 'DELETE FROM session_message WHERE k BETWEEN ? AND ?',
  'retained.put':
    'INSERT INTO retained (topic, qos, payload, properties, expires) VALUES (?, ?, ?, ?, ?) ON CONFLICT (topic) DO UPDATE SET qos = excluded.qos, payload = excluded.payload, properties = excluded.properties, expires = excluded.expires',
  'retained.delete': 'DELETE FROM retained WHERE topic = ?',
  'will.put':
    'INSERT INTO will (client, topic, qos, retain, payload, properties, expiry, delay, due) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (client) DO UPDATE SET topic = excluded.topic, qos = excluded.qos, retain = excluded.retain, payload = excluded.payload, properties = excluded.properties, expiry = excluded.expiry, delay = excluded.delay, due = excluded.due',
  'will.delete': 'DELETE FROM will WHERE client = ?',
  'incoming.insert': 'INSERT OR IGNORE INTO incoming (s, message_id) VALUES (?, ?)',
  'incoming.delete': 'DELETE FROM incoming WHERE s = ? AND message_id = ?',
  'incoming.clear': 'DELETE FROM incoming WHERE s = ?',
} as const

const placesPerSession = 2 ** 32

/** Key of the message at `place` (1 to 2^32 - 1) in the queue of session `s`. */
export const messageKey = (s: number, place: number): number => s * placesPerSession + place

/** Place in its queue of the message with key `k`. */
export const placeOf = (k: number): number => k % placesPerSession

export interface SessionRow {
  readonly s: number
  readonly client: string
  readonly seen: number
  /** Newest place ever sent; null when the gateway ended while the client was connected. */
  readonly sent: number | null
  /** Session expiry interval of MQTT 5 in seconds; null when the session ends by age. */
  readonly expiry: number | null
  /** Number of queued messages, their bytes and the newest place; zeros when the queue is empty. */
  readonly messages: number
  readonly bytes: number
  readonly last: number
}

export interface FilterRow {
  readonly s: number
  readonly filter: string
  readonly qos: 0 | 1 | 2
  /** Bit 0: No Local; bit 1: Retain As Published. */
  readonly options: number
  /** Subscription identifier of MQTT 5. */
  readonly identifier: number | null
}

export interface QueuedRow {
  readonly k: number
  readonly qos: 1 | 2
  readonly released: 0 | 1
  readonly bytes: number
  readonly topic: string
  readonly payload: Uint8Array
  /** Whether it is delivered with RETAIN. */
  readonly retain: 0 | 1
  /** Properties of MQTT 5 as bytes. */
  readonly properties: Uint8Array | null
  /** Wall-clock ms from which on it is no longer delivered. */
  readonly expires: number | null
}

export interface RetainedRow extends Pick<QueuedRow, 'topic' | 'payload' | 'properties' | 'expires'> {
  readonly qos: 0 | 1 | 2
}

export interface WillRow extends Omit<RetainedRow, 'expires'> {
  readonly client: string
  readonly retain: 0 | 1
  /** Message expiry interval, seconds. */
  readonly expiry: number | null
  /** Will delay interval, seconds. */
  readonly delay: number
  /** Wall-clock ms when it is published; null while its client is connected. */
  readonly due: number | null
}

/** Read access to MQTT state. All of it except `queued` and `oldest` is read once, at start. */
export function createSessionRows(database: Database) {
  const sessions = database.prepare<[], Pick<SessionRow, 's' | 'client' | 'seen' | 'sent' | 'expiry'>>(
    'SELECT s, client, seen, sent, expiry FROM session ORDER BY s',
  )
  const queue = database.prepare<[number, number], { messages: number; bytes: number; last: number | null }>(
    'SELECT count(*) AS messages, coalesce(sum(bytes), 0) AS bytes, max(k) AS last FROM session_message WHERE k BETWEEN ? AND ?',
  )
  const filters = database.prepare<[], FilterRow>(
    'SELECT s, filter, qos, options, identifier FROM session_filter',
  )
  const incoming = database.prepare<[], { s: number; message_id: number }>(
    'SELECT s, message_id FROM incoming',
  )
  const retained = database.prepare<[], RetainedRow>(
    'SELECT topic, qos, payload, properties, expires FROM retained',
  )
  const wills = database.prepare<[], WillRow>(
    'SELECT client, topic, qos, retain, payload, properties, expiry, delay, due FROM will',
  )
  const queued = database.prepare<[number, number, number], QueuedRow>(
    'SELECT k, qos, released, bytes, topic, payload, retain, properties, expires FROM session_message WHERE k > ? AND k <= ? ORDER BY k LIMIT ?',
  )
  const oldest = database.prepare<[number, number, number], { k: number; bytes: number }>(
    'SELECT k, bytes FROM session_message WHERE k > ? AND k <= ? ORDER BY k LIMIT ?',
  )
  const lastSession = database.prepare<[], { s: number | null }>('SELECT max(s) AS s FROM session')
  return Object.freeze({
    lastSession: () => lastSession.get()?.s ?? 0,
    sessions: (): SessionRow[] =>
      sessions.all().map((row) => {
        const { messages, bytes, last } = queue.get(messageKey(row.s, 1), messageKey(row.s + 1, 0) - 1)!
        return { ...row, messages, bytes, last: last === null ? 0 : placeOf(last) }
      }),
    filters: () => filters.all(),
    incoming: () => incoming.all(),
    retained: () => retained.all(),
    wills: () => wills.all(),
    /** Messages queued for a session after one place, up to and including another, oldest first. */
    queued: (s: number, after: number, upTo: number, limit: number) =>
      queued.all(messageKey(s, after), messageKey(s, upTo), limit),
    /** Like `queued`, without the message content. */
    oldest: (s: number, after: number, upTo: number, limit: number) =>
      oldest.all(messageKey(s, after), messageKey(s, upTo), limit),
  })
}

export type SessionRows = ReturnType<typeof createSessionRows>
