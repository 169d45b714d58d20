/**
 * Uplinks as rows: the progress of each (one row per subscription whose endpoint is a broker), losses not yet
 * reported, and changes that the other broker rejected. The uplink room defines the content of a state or a
 * loss.
 */
import type { Database } from '#store/file/database.ts'

export const uplinkWrites = {
  'uplink.put':
    'INSERT INTO uplink (id, state) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state',
  'uplink.delete': 'DELETE FROM uplink WHERE id = ?',
  'uplink-loss.put':
    'INSERT INTO uplink_loss (uplink, of, loss) VALUES (?, ?, ?) ON CONFLICT (uplink, of) DO UPDATE SET loss = excluded.loss',
  'uplink-loss.delete': 'DELETE FROM uplink_loss WHERE uplink = ? AND of = ?',
  'uplink-loss.clear': 'DELETE FROM uplink_loss WHERE uplink = ?',
  'uplink-refusal.insert':
    'INSERT INTO uplink_refusal (q, uplink, entity, at, reason, step) VALUES (?, ?, ?, ?, ?, ?)',
  'uplink-refusal.delete': 'DELETE FROM uplink_refusal WHERE q = ?',
} as const

/** Key in meta of the last refusal number, so that a number is never reused after a restart. */
export const lastRefusalKey = 'uplink-refusal'

/** A change that the central broker of an uplink rejected, as JSON text `step`; `at` is ms. */
export interface UplinkRefusalRow {
  readonly q: number
  readonly uplink: string
  readonly entity: string
  readonly at: number
  readonly reason: string
  readonly step: string
}

/** Read access to uplinks. */
export function createUplinkStates(database: Database) {
  const get = database.prepare<[string], string>('SELECT state FROM uplink WHERE id = ?').pluck()
  const losses = database.prepare<[string], { readonly of: string; readonly loss: string }>(
    'SELECT of, loss FROM uplink_loss WHERE uplink = ?',
  )
  const ids = database.prepare<[], string>('SELECT id FROM uplink').pluck()
  const last = database
    .prepare<[string], number | null>(
      `SELECT max(q) FROM (SELECT max(q) AS q FROM uplink_refusal UNION ALL
         SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?)`,
    )
    .pluck()
  const refusals = database.prepare<[number, number], UplinkRefusalRow>(
    'SELECT q, uplink, entity, at, reason, step FROM uplink_refusal WHERE q > 0 ORDER BY q DESC LIMIT ? OFFSET ?',
  )
  const count = database.prepare<[], number>('SELECT count(*) FROM uplink_refusal WHERE q > 0').pluck()
  const refusal = database.prepare<[number], UplinkRefusalRow>(
    'SELECT q, uplink, entity, at, reason, step FROM uplink_refusal WHERE q = ?',
  )
  const sizes = database.prepare<[], Pick<UplinkRefusalRow, 'q' | 'uplink'> & { readonly bytes: number }>(
    'SELECT q, uplink, length(step) AS bytes FROM uplink_refusal WHERE q > 0 ORDER BY q',
  )
  return Object.freeze({
    /** The state as JSON text. */
    get: (id: string) => get.get(id),
    /** Losses not yet reported, each as JSON text. Read when the uplink starts. */
    losses: (id: string) => losses.all(id),
    /** Read at start. */
    ids: () => ids.all(),
    /** Read at start; the oldest first. */
    refusalSizes: () => sizes.all(),
    /** The last number assigned, even if that refusal was deleted. */
    lastRefusal: () => last.get(lastRefusalKey) ?? 0,
    refusalCount: () => count.get() as number,
    /** The newest first. */
    refusals: (limit: number, offset: number) => refusals.all(limit, offset),
    refusal: (q: number) => refusal.get(q),
  })
}

export type UplinkStates = ReturnType<typeof createUplinkStates>
