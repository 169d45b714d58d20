/**
 * Entity documents as rows. A document is JSON text in core-compacted normalized form; `n` is the log number it
 * includes. Index rows (types, scalars, places) are written beside it, exactly those that the document implies.
 */
import { limits } from '#base/limits.ts'
import type { Database } from './database.ts'

export const entityWrites = {
  'entity.insert':
    'INSERT INTO entity (rid, id, n, created, modified, sys, doc) VALUES (?, ?, ?, ?, ?, ?, ?)',
  'entity.update': 'UPDATE entity SET n = ?, modified = ?, sys = ?, doc = ? WHERE rid = ?',
  'entity.times': 'UPDATE entity SET created = ?, modified = ?, sys = ? WHERE id = ?',
  'entity.delete': 'DELETE FROM entity WHERE rid = ?',
  'tombstone.insert': 'INSERT INTO tombstone (n, id, rid, at, doc, heard) VALUES (?, ?, ?, ?, ?, ?)',
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

export interface EntityRow {
  readonly rid: number
  readonly id: string
  readonly n: number
  readonly created: number
  readonly modified: number
  readonly sys: string
  readonly doc: string
}

export interface TombstoneRow {
  readonly n: number
  readonly id: string
  readonly rid: number
  readonly at: number
  readonly doc: string
  /** Through which other brokers it had been created; null where it began here. */
  readonly heard: string | null
}

/** A row kept in memory, and whether it was read since it came to its place in the line. */
interface Recent {
  readonly row: EntityRow
  isRead: boolean
}

const columns = 'rid, id, n, created, modified, sys, doc'

/** Read access to entity documents. */
export function createEntities(database: Database) {
  const byId = database.prepare<[string], EntityRow>(`SELECT ${columns} FROM entity WHERE id = ?`)
  const byRid = database.prepare<[number], EntityRow>(`SELECT ${columns} FROM entity WHERE rid = ?`)
  // CROSS JOIN keeps the order of the loops: the few rids outside, one look-up each inside.
  const byRids = database
    .prepare<[string], readonly unknown[]>(
      'SELECT d.rid, d.id, n, created, modified, sys, doc FROM json_each(?) j CROSS JOIN entity d WHERE rid = j.value',
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
  const behind = database
    .prepare<[number, number], readonly unknown[]>(
      `SELECT ${columns} FROM entity WHERE rid > ? ORDER BY rid LIMIT ?`,
    )
    .raw()
  /**
   * Rows read lately; whoever publishes a new version renews them. They leave in the order they came,
   * but one that was read since then comes again instead: to reorder a map with every read would cost as much as the rest
   * of the read.
   */
  const recent = new Map<string, Recent>()
  const recentByRid = new Map<number, Recent>()
  let recentBytes = 0
  let expiresFirst: number | undefined
  const forget = (id: string): void => {
    const known = recent.get(id)
    if (known === undefined) return
    recent.delete(id)
    recentByRid.delete(known.row.rid)
    recentBytes -= bytesOf(known.row)
  }
  const remember = (row: EntityRow): void => {
    const entry = { row, isRead: false }
    recent.set(row.id, entry)
    recentByRid.set(row.rid, entry)
    recentBytes += bytesOf(row)
    while (recentBytes > limits.documentsCachedBytes.value) {
      const [id, oldest] = recent.entries().next().value!
      if (oldest.isRead) {
        oldest.isRead = false
        recent.delete(id)
        recent.set(id, oldest)
      } else forget(id)
    }
  }
  const known = (rid: number): EntityRow | undefined => {
    const entry = recentByRid.get(rid)
    if (entry !== undefined) entry.isRead = true
    return entry?.row
  }
  return Object.freeze({
    byId(id: string): EntityRow | undefined {
      const known = recent.get(id)
      if (known !== undefined) {
        known.isRead = true
        return known.row
      }
      const row = byId.get(id)
      if (row !== undefined) remember(row)
      return row
    },
    /** To be called for every entity that was deleted, once that is on disk. */
    forget,
    /** To be called with every row that was written, once it is on disk: it takes the place of the one known. */
    renew(row: EntityRow): void {
      if (!recent.has(row.id)) return
      forget(row.id)
      remember(row)
    },
    byRid: (rid: number) => known(rid) ?? byRid.get(rid),
    /** The rows of these rids in their order, without those that are no more; one statement for all not in memory. */
    byRids(rids: readonly number[]): readonly EntityRow[] {
      const rows = rids.map(known)
      const missing = rids.filter((_, i) => rows[i] === undefined)
      if (missing.length === 0) return rows as EntityRow[]
      const read = new Map<number, EntityRow>()
      for (const values of byRids.all(JSON.stringify(missing))) {
        const row = rowOf(values)
        read.set(row.rid, row)
        remember(row)
      }
      return rids.flatMap((rid, i) => rows[i] ?? read.get(rid) ?? [])
    },
    /** The first rows behind a rid; they are not kept in memory. */
    behind: (rid: number, limit: number): readonly EntityRow[] => behind.all(rid, limit).map(rowOf),
    lastRid: () => lastRid.get()?.rid ?? 0,
    lastPlace: () => lastPlace.get()?.i ?? 0,
    count: () => total.get()?.c ?? 0,
    /** Entities of which something has expired, the longest ago first. */
    expired: (at: number, most: number): readonly number[] => expired.all(at, most).map(({ rid }) => rid),
    /** When something of an entity expires first; infinity, where nothing does. Costs nothing: reads ask it. */
    firstExpiry(): number {
      expiresFirst ??= firstExpiry.get()?.at ?? Number.POSITIVE_INFINITY
      return expiresFirst
    },
    /** To be called when expiries were written, once they are on disk. */
    renewExpiry(): void {
      expiresFirst = undefined
    },
    ...createGraves(database),
  })
}

/** What is left of deleted entities. */
function createGraves(database: Database) {
  const gravesWithin = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, heard FROM tombstone WHERE at >= ? AND at < ? ORDER BY n',
  )
  const graveOf = database.prepare<[number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, heard FROM tombstone WHERE rid = ?',
  )
  const graves = database.prepare<[string], TombstoneRow>(
    'SELECT n, id, rid, at, doc, heard FROM tombstone WHERE id = ? ORDER BY n',
  )
  const gravesBehind = database.prepare<[number, number], TombstoneRow>(
    'SELECT n, id, rid, at, doc, heard FROM tombstone WHERE n > ? ORDER BY n LIMIT ?',
  )
  return {
    tombstones: (id: string) => graves.all(id),
    /** Entities deleted within from <= ms < to, in order. */
    gravesWithin: (from: number, to: number): readonly TombstoneRow[] => gravesWithin.all(from, to),
    /** The first that were deleted after a log number, in order. */
    gravesBehind: (n: number, limit: number): readonly TombstoneRow[] => gravesBehind.all(n, limit),
    graveOf: (rid: number) => graveOf.get(rid),
  }
}

/** Columns made into an object here, because that is faster than to let the library do it. */
export function rowOf(values: readonly unknown[]): EntityRow {
  const [rid, id, n, created, modified, sys, doc] = values as [
    ...[number, string, number, number, number, string, string],
  ]
  return { rid, id, n, created, modified, sys, doc }
}

/** What a row holds in memory, about. */
const bytesOf = (row: EntityRow): number => row.doc.length + row.sys.length + row.id.length + 200

export type Entities = ReturnType<typeof createEntities>
