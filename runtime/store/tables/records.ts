/**
 * Small records of a tenant: facts about the file, interned names, the log, contexts, quarantine,
 * subscriptions. Statements only; higher rooms define the content.
 */
import type { Database } from '#store/file/database.ts'

/** Added to the kind of a log row whose times are from a clock that was not set. */
export const unsettled = 4

/** True when a log row holds observations; otherwise it holds a change. */
export const isOfObservations = ({ kind }: Pick<LogRow, 'kind'>): boolean => kind % unsettled === 1

export const recordWrites = {
  'meta.put':
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  'meta.delete': 'DELETE FROM meta WHERE key = ?',
  'name.insert': 'INSERT OR IGNORE INTO name (i, text) VALUES (?, ?)',
  'log.blob': 'INSERT INTO log (n, at, kind, body, via) VALUES (?, ?, ?, ?, ?)',
  'log.change': 'INSERT INTO log (n, at, kind, rid, body) VALUES (?, ?, ?, ?, CAST(? AS BLOB))',
  'log.rewrite': 'UPDATE log SET kind = ?, body = ? WHERE n = ?',
  // The last row stays, because it holds the last used number and commit time
  'log.trim': 'DELETE FROM log WHERE n <= min(?, (SELECT max(n) FROM log) - 1)',
  'context.put':
    'INSERT INTO context (url, kind, fetched, expires, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET kind = excluded.kind, fetched = excluded.fetched, expires = excluded.expires, body = excluded.body',
  'context.delete': 'DELETE FROM context WHERE url = ?',
  'quarantine.insert':
    'INSERT INTO quarantine (q, at, topic, source, content_type, retained, transport, bridge, reason, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  'quarantine.trim': 'DELETE FROM quarantine WHERE q <= ?',
  'quarantine.delete': 'DELETE FROM quarantine WHERE q = ?',
  'subscription.insert': 'INSERT INTO subscription (i, id, doc, stats) VALUES (?, ?, ?, ?)',
  'subscription.update': 'UPDATE subscription SET doc = ? WHERE i = ?',
  'subscription.stats': 'UPDATE subscription SET stats = ? WHERE i = ?',
  'subscription.delete': 'DELETE FROM subscription WHERE i = ?',
} as const

export interface NameRow {
  readonly i: number
  readonly text: string
}

export interface LogRow {
  readonly n: number
  readonly at: number
  readonly kind: number
  readonly rid: number | null
  readonly body: Uint8Array
  /** Via chain of observations. */
  readonly via: string | null
}

export interface SubscriptionRow {
  readonly i: number
  readonly id: string
  readonly doc: string
  readonly stats: string
}

export interface ContextRow extends Omit<ContextFacts, 'bytes'> {
  readonly body: string
}

/** Facts about a stored @context, without its body. */
export interface ContextFacts {
  /** For a hosted context, its local id. */
  readonly url: string
  readonly kind: string
  readonly fetched: number
  readonly expires: number | null
  readonly bytes: number
}

/** A quarantined frame, as received. */
export interface QuarantinedRow {
  readonly q: number
  readonly at: number
  readonly topic: string
  readonly source: string | null
  readonly content_type: string | null
  readonly retained: number
  readonly transport: string
  readonly payload: Uint8Array
  readonly bridge: string | null
  readonly reason: string
}

/** Read access to the records. */
export function createRecords(database: Database) {
  const names = database.prepare<[], NameRow>('SELECT i, text FROM name ORDER BY i')
  const metaGet = database.prepare<[string], { value: string | number }>(
    'SELECT value FROM meta WHERE key = ?',
  )
  const logLast = database.prepare<[], { n: number | null }>('SELECT max(n) AS n FROM log')
  const logAfter = database.prepare<[number, number], LogRow>(
    `SELECT n, at, kind, rid, CASE kind % 4 WHEN 1 THEN body ELSE x'' END AS body, via
     FROM log WHERE n > ? ORDER BY n LIMIT ?`,
  )
  const logAt = database.prepare<[number], LogRow>('SELECT n, at, kind, rid, body, via FROM log WHERE n = ?')
  const logNext = database.prepare<[number], LogRow>(
    'SELECT n, at, kind, rid, body, via FROM log WHERE n > ? ORDER BY n LIMIT 1',
  )
  // Rows of a change have the time of their group; the change has its own, which may be earlier.
  const logTimes = database.prepare<[number, number], { earliest: number; latest: number }>(
    `SELECT min(CASE kind % ${unsettled} WHEN 1 THEN at ELSE body ->> '$.at' END) AS earliest, max(at) AS latest
     FROM log WHERE n > ? AND n <= ?`,
  )
  const logSize = database.prepare<[number], number>('SELECT length(body) FROM log WHERE n = ?').pluck()
  const logSizes = database
    .prepare<[number], [n: number, bytes: number]>(
      'SELECT n, length(body) FROM log WHERE n > 0 ORDER BY n LIMIT ?',
    )
    .raw()
  const logUnsettled = database.prepare<[number], LogRow>(
    'SELECT n, at, kind, rid, body, via FROM log WHERE kind > 4 ORDER BY n LIMIT ?',
  )
  const unsettledCount = database.prepare<[], { count: number }>(
    'SELECT count(*) AS count FROM log WHERE kind > 4',
  )
  const logBytes = database.prepare<[], { bytes: number | null }>(
    'SELECT sum(length(body)) AS bytes FROM log',
  )
  const subscriptions = database.prepare<[], SubscriptionRow>(
    'SELECT i, id, doc, stats FROM subscription ORDER BY i',
  )
  const contextGet = database.prepare<[string], ContextRow>(
    'SELECT url, kind, fetched, expires, body FROM context WHERE url = ?',
  )
  const contexts = database.prepare<[], ContextFacts>(
    'SELECT url, kind, fetched, expires, length(body) AS bytes FROM context ORDER BY fetched',
  )
  const choices = database.prepare<[], { key: string; value: string | number }>(
    "SELECT key, value FROM meta WHERE key >= 'choice:' AND key < 'choice;'",
  )
  const quarantineSizes = database.prepare<[], { q: number; size: number }>(
    'SELECT q, length(payload) AS size FROM quarantine ORDER BY q',
  )
  const quarantined = database.prepare<[number], QuarantinedRow>('SELECT * FROM quarantine WHERE q = ?')
  return Object.freeze({
    names: () => names.all(),
    meta: (key: string) => metaGet.get(key)?.value,
    /** Choices that an operator made while the gateway ran. */
    choices: () => choices.all(),
    logLast: () => logLast.get()?.n ?? 0,
    /** Rows in order; changes without their bodies. */
    logAfter: (n: number, limit: number) => logAfter.all(n, limit),
    logAt: (n: number) => logAt.get(n),
    /** Bytes of the contents of a row. */
    logSize: (n: number) => logSize.get(n) ?? 0,
    /** The first row after a number. */
    logNext: (n: number) => logNext.get(n),
    /** The earliest commit time and the latest time of a group (ms) of the rows after `n` up to `last`. */
    logTimes: (n: number, last: number) => logTimes.get(n, last)!,
    /** Number of the last of the first `rows` rows that have so many bytes together; at least of one row. */
    logNumberWithin(bytes: number, rows: number): number {
      let within = 0
      let sum = 0
      for (const [n, size] of logSizes.iterate(rows)) {
        sum += size
        if (within > 0 && sum > bytes) break
        within = n
      }
      return within
    },
    /** The first rows with times from a clock that was not set, read one by one. */
    logUnsettled: (most: number): Iterable<LogRow> => logUnsettled.iterate(most),
    unsettledCount: () => unsettledCount.get()!.count,
    /** Bytes of the stored rows. */
    logBytes: () => logBytes.get()?.bytes ?? 0,
    subscriptions: () => subscriptions.all(),
    context: (url: string) => contextGet.get(url),
    contexts: () => contexts.all(),
    quarantineSizes: () => quarantineSizes.all(),
    quarantined: (q: number) => quarantined.get(q),
    quarantineLast: () =>
      (database.prepare('SELECT max(q) AS q FROM quarantine').get() as { q: number | null }).q ?? 0,
  })
}

export type Records = ReturnType<typeof createRecords>
