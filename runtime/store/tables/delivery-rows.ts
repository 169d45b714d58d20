/**
 * The outbox and its dead letters as rows. A delivery is pending as long as its row exists; `d` increases in
 * commit order. Higher rooms decide which subscriptions match and when a delivery is sent.
 */
import type { Database } from '#store/file/database.ts'

export const deliveryWrites = {
  'delivery.insert':
    'INSERT INTO delivery (d, sub, endpoint, entity, at, batch, stream, t, value, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  // Takes a JSON array of d
  'delivery.settle': 'DELETE FROM delivery WHERE d IN (SELECT value FROM json_each(?))',
  // All deliveries of an endpoint up to a commit time and a number
  'delivery.confirm': 'DELETE FROM delivery WHERE endpoint = ? AND (at < ? OR (at = ? AND d <= ?))',
  'delivery.forget': 'DELETE FROM delivery WHERE endpoint = ? AND sub = ?',
  'delivery.redirect': 'UPDATE delivery SET endpoint = ? WHERE endpoint = ? AND sub = ?',
  'dead_letter.insert':
    'INSERT OR REPLACE INTO dead_letter (d, sub, endpoint, entity, at, buried, reason, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  'dead_letter.delete': 'DELETE FROM dead_letter WHERE d = ?',
  // Keeps only the newest ones
  'dead_letter.trim':
    'DELETE FROM dead_letter WHERE d <= (SELECT d FROM dead_letter ORDER BY d DESC LIMIT 1 OFFSET ?)',
} as const

/**
 * A pending delivery to a subscriber: an observation (stream, t, value as JSON text) or a rendered data
 * member (body).
 */
export interface Delivery {
  /** Its number; deliveries are sent in this order. */
  readonly d: number
  /** Number of the subscription. */
  readonly sub: number
  /** URI of the receiver. */
  readonly endpoint: string
  readonly entity: string
  /** Time of the commit that created it, ms. */
  readonly at: number
  /**
   * Deliveries of one subscription with the same number come from one batch operation and may share a
   * notification.
   */
  readonly batch: number | null
  readonly stream: number | null
  readonly t: number | null
  readonly value: string | null
  readonly body: string | null
}

export interface DeadLetter extends Pick<Delivery, 'd' | 'sub' | 'endpoint' | 'entity' | 'at'> {
  /** Time when delivery was given up, ms. */
  readonly buried: number
  readonly reason: string
  readonly body: string
}

export type DeadLetterHead = Omit<DeadLetter, 'body'>

/** Identifies deliveries without their content. */
export type DeliveryHead = Pick<Delivery, 'd' | 'sub' | 'entity'>

/** Selects rows of an endpoint, in order of d: those above `after`, at most `count`. */
export interface DeliveryRange {
  readonly endpoint: string
  readonly after: number
  readonly count: number
}

const columns = 'd, sub, endpoint, entity, at, batch, stream, t, value, body'

/** Read access to the outbox and the dead letters. */
export function createDeliveries(database: Database) {
  const endpoints = database.prepare<[], { endpoint: string }>('SELECT DISTINCT endpoint FROM delivery')
  const backlog = database.prepare<[string], { count: number; last: number | null }>(
    'SELECT count(*) AS count, max(d) AS last FROM delivery WHERE endpoint = ?',
  )
  const among = database.prepare<[string, string], { count: number }>(
    'SELECT count(*) AS count FROM delivery WHERE endpoint = ? AND d IN (SELECT value FROM json_each(?))',
  )
  const next = database.prepare<[string, number, number], Delivery>(
    `SELECT ${columns} FROM delivery WHERE endpoint = ? AND d > ? ORDER BY d LIMIT ?`,
  )
  const nextOfPair = database.prepare<[string, number, number, number, string, number], Delivery>(
    `SELECT ${columns} FROM delivery WHERE endpoint = ? AND d > ? AND d <= ? AND sub = ? AND entity = ? ORDER BY d LIMIT ?`,
  )
  const heads = database.prepare<[string, number, number], DeliveryHead>(
    'SELECT d, sub, entity FROM delivery WHERE endpoint = ? AND d > ? ORDER BY d LIMIT ?',
  )
  const last = database.prepare<[], { last: number }>(
    'SELECT max(ifnull((SELECT max(d) FROM delivery), 0), ifnull((SELECT max(d) FROM dead_letter), 0)) AS last',
  )
  const deadLetters = database.prepare<[number, number], DeadLetter>(
    'SELECT d, sub, endpoint, entity, at, buried, reason, body FROM dead_letter WHERE d < ? ORDER BY d DESC LIMIT ?',
  )
  const headColumns = 'd, sub, endpoint, entity, at, buried, reason'
  const deadHeads = database.prepare<[number, number], DeadLetterHead>(
    `SELECT ${headColumns} FROM dead_letter WHERE d > 0 ORDER BY d DESC LIMIT ? OFFSET ?`,
  )
  const deadLetter = database.prepare<[number], DeadLetter>(
    `SELECT ${headColumns}, body FROM dead_letter WHERE d = ?`,
  )
  const deadCount = database.prepare<[], number>('SELECT count(*) FROM dead_letter WHERE d > 0').pluck()
  return Object.freeze({
    /** The highest d in use; the next delivery must be above it. */
    last: (): number => last.get()!.last,
    /** Endpoints with pending deliveries. */
    endpoints: (): string[] => endpoints.all().map(({ endpoint }) => endpoint),
    /**
     * Number of pending deliveries of an endpoint without those in `except`, and the highest d of all of
     * them.
     */
    backlog(endpoint: string, except: readonly number[]): { count: number; last: number } {
      const all = backlog.get(endpoint)!
      return { count: all.count - among.get(endpoint, JSON.stringify(except))!.count, last: all.last ?? 0 }
    },
    /** The next deliveries of an endpoint; stops once bodies and values exceed `bytes`. */
    next(span: DeliveryRange, bytes: number): Delivery[] {
      const rows: Delivery[] = []
      let left = bytes
      for (const row of next.iterate(span.endpoint, span.after, span.count)) {
        rows.push(row)
        left -= (row.body?.length ?? 0) + (row.value?.length ?? 0)
        if (left <= 0) break
      }
      return rows
    },
    /** The next deliveries of the same subscription and entity, up to `last`. */
    nextOfPair: (span: DeliveryRange, last: number, pair: DeliveryHead): Delivery[] =>
      nextOfPair.all(span.endpoint, span.after, last, pair.sub, pair.entity, span.count),
    /** The oldest deliveries of an endpoint, without content. */
    heads: (span: DeliveryRange): DeliveryHead[] => heads.all(span.endpoint, span.after, span.count),
    /** Dead letters without their bodies, newest first. */
    deadLetterHeads: (limit: number, offset: number): DeadLetterHead[] => deadHeads.all(limit, offset),
    deadLetter: (d: number): DeadLetter | undefined => deadLetter.get(d),
    deadLetterCount: (): number => deadCount.get() as number,
    /** Dead letters below `before`, newest first. */
    deadLetters: (count: number, before = Number.MAX_SAFE_INTEGER): DeadLetter[] =>
      deadLetters.all(before, count),
  })
}

export type Deliveries = ReturnType<typeof createDeliveries>
