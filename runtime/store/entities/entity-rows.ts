/**
 * Entity documents as rows. A document is JSON text in core-compacted normalized form; `n` is the log number
 * it includes. Its index rows (types, scalars, places) are written with it, exactly those that the document
 * implies.
 */

import { limits } from '#base/limits/limits.ts'
import type { Database } from '#store/file/database.ts'
import { createKnownColumns } from './known-columns.ts'
import { createKnownPages } from './known-pages.ts'
import { type EntityRow, type RowsWithin, rowsWithin } from './page-rows.ts'
import { createRecentRows, createRowBudget } from './recent-rows.ts'

export const entityWrites = {
  'entity.insert':
    'INSERT INTO entity (rid, id, n, created, modified, sys, doc) VALUES (?, ?, ?, ?, ?, ?, ?)',
  'entity.update': 'UPDATE entity SET n = ?, modified = ?, sys = ?, doc = ? WHERE rid = ?',
  'entity.times': 'UPDATE entity SET created = ?, modified = ?, sys = ? WHERE id = ?',
  'entity.delete': 'DELETE FROM entity WHERE rid = ?',
  'tombstone.insert':
    'INSERT INTO tombstone (n, id, rid, at, doc, via, created) VALUES (?, ?, ?, ?, ?, ?, ?)',
  'expiry.insert': 'INSERT INTO expiry (at, rid) VALUES (?, ?)',
  'expiry.delete': 'DELETE FROM expiry WHERE at = ? AND rid = ?',
  'type.insert': 'INSERT OR IGNORE INTO entity_type (type, rid) VALUES (?, ?)',
  'type.delete': 'DELETE FROM entity_type WHERE type = ? AND rid = ?',
  'shape.insert': 'INSERT OR IGNORE INTO entity_shape (shape, rid) VALUES (?, ?)',
  'shape.delete': 'DELETE FROM entity_shape WHERE shape = ? AND rid = ?',
  'scalar.insert': 'INSERT OR IGNORE INTO scalar (name, kind, value, rid) VALUES (?, ?, ?, ?)',
  'scalar.delete': 'DELETE FROM scalar WHERE name = ? AND kind = ? AND value = ? AND rid = ?',
  'attribute.insert': 'INSERT OR IGNORE INTO has_attribute (name, rid) VALUES (?, ?)',
  'attribute.delete': 'DELETE FROM has_attribute WHERE name = ? AND rid = ?',
  'place.insert':
    'INSERT INTO place (i, x0, x1, y0, y1, rid, name, lon, lat) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  'place.note': 'INSERT INTO place_of (rid, name, i) VALUES (?, ?, ?)',
  'place.delete': 'DELETE FROM place WHERE i IN (SELECT i FROM place_of WHERE rid = ? AND name = ?)',
  'place.forget': 'DELETE FROM place_of WHERE rid = ? AND name = ?',
} as const

export interface TombstoneRow {
  readonly n: number
  readonly id: string
  readonly rid: number
  readonly at: number
  readonly doc: string
  /** Via chain of its creation; null when it was created at this gateway. */
  readonly via: string | null
  /** ms; null when it was not recorded. */
  readonly created: number | null
}

const none: ReadonlyMap<number, EntityRow> = new Map()
const columns = 'rid, id, n, created, modified, sys, doc'

/**
 * Read access to entity documents.
 * @param budget the row cache budget that all tenants share
 */
export function createEntities(database: Database, budget = createRowBudget()) {
  const byId = database
    .prepare<[string], readonly unknown[]>(`SELECT ${columns} FROM entity WHERE id = ?`)
    .raw()
  const byRid = database
    .prepare<[number], readonly unknown[]>(`SELECT ${columns} FROM entity WHERE rid = ?`)
    .raw()
  // CROSS JOIN fixes the loop order: the few rids outside, one lookup each inside. SQLite knows the length of
  // a document without reading it.
  const shortByRids = database
    .prepare<[string, number], readonly unknown[]>(
      `SELECT d.rid, d.id, n, created, modified, sys, doc FROM json_each(?) j CROSS JOIN entity d
       WHERE rid = j.value AND octet_length(doc) <= ?`,
    )
    .raw()
  const lastRid = database.prepare<[], { rid: number | null }>(
    `SELECT max((SELECT coalesce(max(rid), 0) FROM entity), (SELECT coalesce(max(rid), 0) FROM tombstone),
       (SELECT coalesce(max(value), 0) FROM meta WHERE key = 'rid')) AS rid`,
  )
  const lastPlace = database.prepare<[], { i: number | null }>('SELECT max(rowid) AS i FROM place_rowid')
  const total = database.prepare<[], { c: number }>('SELECT count(*) AS c FROM entity')
  const expired = database.prepare<[number, number], { rid: number }>(
    'SELECT rid FROM expiry WHERE at <= ? ORDER BY at LIMIT ?',
  )
  const firstExpiry = database.prepare<[], { at: number | null }>('SELECT min(at) AS at FROM expiry')
  const rowsAfter = database
    .prepare<[number, number], readonly unknown[]>(
      `SELECT ${columns} FROM entity WHERE rid > ? ORDER BY rid LIMIT ?`,
    )
    .raw()
  let expiresFirst: number | undefined
  let lastPlaceKnown: number | undefined
  const recent = createRecentRows(budget)
  return Object.freeze({
    byId(id: string): EntityRow | undefined {
      const known = recent.byId(id)
      if (known !== undefined) return known
      const values = byId.get(id)
      return values === undefined ? undefined : recent.remember(rowOf(values))
    },
    /** Call for every deleted entity, once the deletion is on disk. */
    forget: recent.forget,
    /** Call when the tenant closes, so that other tenants can use the space. */
    forgetAll: recent.forgetAll,
    /** Call with every written row, once it is on disk: it replaces the cached row. */
    renew: recent.renew,
    byRid(rid: number): EntityRow | undefined {
      const known = recent.byRid(rid)
      if (known !== undefined) return known
      const values = byRid.get(rid)
      return values === undefined ? undefined : rowOf(values)
    },
    /** Rows of the rids that fit into a page; reads those that are neither cached nor in `read`. */
    byRids(rids: readonly number[], read: ReadonlyMap<number, EntityRow> = none): RowsWithin {
      const known = rids.map((rid) => read.get(rid) ?? recent.forSearch(rid))
      const missing = rids.filter((_, i) => known[i] === undefined)
      let found: readonly (readonly unknown[])[] = []
      let next = 0
      let taken = 0
      return rowsWithin(rids, (rid, i) => {
        if (known[i] !== undefined) return known[i]
        if (next % limits.shortRowsRead.value === 0) {
          const slice = missing.slice(next, next + limits.shortRowsRead.value)
          found = shortByRids.all(JSON.stringify(slice), limits.shortRowBytes.value)
          taken = 0
        }
        next++
        const values = found[taken]?.[0] === rid ? found[taken++] : byRid.get(rid)
        return values === undefined ? undefined : recent.admit(rowOf(values))
      })
    },
    /** Like `byRids`, but only if all rows are cached. */
    knownRows(rids: readonly number[]): RowsWithin | undefined {
      const rows: EntityRow[] = []
      for (const rid of rids) {
        const row = recent.byRid(rid)
        if (row === undefined) return undefined
        rows.push(row)
      }
      return rowsWithin(rids, (_, i) => rows[i])
    },
    /** Forget these when entity types were written, once that is on disk. */
    pages: createKnownPages(),
    /** Notify these of written index rows, once they are on disk. */
    columns: createKnownColumns(database),
    /** The first rows after a rid that fit into a page; none after the last. They are not cached. */
    rowsAfter(rid: number, limit: number): readonly EntityRow[] {
      const rows: EntityRow[] = []
      let characters = 0
      for (const values of rowsAfter.iterate(rid, limit)) {
        const row = rowOf(values)
        rows.push(row)
        characters += row.doc.length
        if (characters > limits.scannedPageBytes.value) break
      }
      return rows
    },
    lastRid: () => lastRid.get()?.rid ?? 0,
    /**
     * The last number of a place that is not a point; 0 if there is none. Cached, because every search needs
     * it.
     */
    lastPlace(): number {
      lastPlaceKnown ??= lastPlace.get()?.i ?? 0
      return lastPlaceKnown
    },
    /** Call when places were written, once they are on disk. */
    renewPlaces(): void {
      lastPlaceKnown = undefined
    },
    count: () => total.get()?.c ?? 0,
    /** Entities with expired parts, earliest expiry first. */
    expired: (at: number, most: number): readonly number[] => expired.all(at, most).map(({ rid }) => rid),
    /** Time of the next expiry; infinity if there is none. Cached, because every read needs it. */
    firstExpiry(): number {
      expiresFirst ??= firstExpiry.get()?.at ?? Number.POSITIVE_INFINITY
      return expiresFirst
    },
    /** Call when expiries were written, once they are on disk. */
    renewExpiry(): void {
      expiresFirst = undefined
    },
    ...createTombstones(database),
  })
}

/** Read access to the tombstones of deleted entities. */
function createTombstones(database: Database) {
  const tombstonesBetween = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, via, created FROM tombstone WHERE at >= ? AND at < ? ORDER BY n',
  )
  const tombstoneOf = database.prepare<[number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, via, created FROM tombstone WHERE rid = ?',
  )
  const ofId = database.prepare<[string], TombstoneRow>(
    'SELECT n, id, rid, at, doc, via, created FROM tombstone WHERE id = ? ORDER BY n',
  )
  const tombstonesSince = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, via, created FROM tombstone WHERE n > ? ORDER BY n LIMIT ?',
  )
  return {
    tombstones: (id: string) => ofId.all(id),
    /** Tombstones of entities deleted within from <= ms < to, in order. */
    tombstonesBetween: (from: number, to: number): readonly TombstoneRow[] => tombstonesBetween.all(from, to),
    /** The first tombstones after a log number, in order. */
    tombstonesSince: (n: number, limit: number): readonly TombstoneRow[] => tombstonesSince.all(n, limit),
    tombstoneOf: (rid: number) => tombstoneOf.get(rid),
  }
}

/** Builds the object here, because that is faster than in the library. */
export function rowOf(values: readonly unknown[]): EntityRow {
  const [rid, id, n, created, modified, sys, doc] = values as [
    ...[number, string, number, number, number, string, string],
  ]
  return { rid, id, n, created, modified, sys, doc }
}

export type Entities = ReturnType<typeof createEntities>
