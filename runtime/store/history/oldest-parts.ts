/**
 * The removable parts of history: chunks of streams, folded changes of entities, and tombstones, with their
 * time span and size. It also measures the space they use and records the gaps that removed parts leave.
 * Parts are removed whole, oldest first within their series. A gap record states how many instances were
 * removed and their time span. The broker room decides which parts to remove. The file never shrinks: removed
 * parts leave free pages that later rows fill, so only used pages are counted.
 */
import { slotMax } from '#store/chunks/chunk-key.ts'
import type { RowOf } from '#store/chunks/sql-value.ts'
import type { Database } from '#store/file/database.ts'
import type { historyEditWrites } from './history-edits.ts'
import type { historyWrites } from './history-rows.ts'

const gapColumns = 'g, s, rid, name, t0, t1, count, at, reason, since, m1, unread'

export const retentionWrites = {
  'gap.insert': `INSERT INTO gap (${gapColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  'gap.extend': `UPDATE gap SET g = ?, t0 = min(t0, ?), t1 = max(t1, ?), count = count + ?, at = ?, m1 = max(m1, ?),
       unread = max(unread, ?) WHERE g = ?`,
  // Runs before the last trace of an entity is deleted.
  'gap.own': `UPDATE gap SET owner = (SELECT json_object('id', id, 'type', doc -> '$.type') FROM tombstone WHERE n = ?)
     WHERE rid = ?`,
  // A single record per reason holds the sum of the dropped gap records.
  'gap.sum': `INSERT INTO gap (${gapColumns})
     SELECT CASE reason WHEN 'size' THEN 0 ELSE -1 END, 0, 0, 0, t0, t1, count, at, reason, 0, m1, unread
     FROM gap WHERE g = ?
     ON CONFLICT (g) DO UPDATE SET t0 = min(t0, excluded.t0), t1 = max(t1, excluded.t1),
       count = count + excluded.count, at = max(at, excluded.at), m1 = max(m1, excluded.m1)`,
  'gap.delete': 'DELETE FROM gap WHERE g = ?',
  'tombstone.delete': 'DELETE FROM tombstone WHERE n = ?',
  // A row number of an entity is never reused, even when its last trace was deleted.
  'rid.spend': `INSERT INTO meta (key, value) VALUES ('rid', ?)
     ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)`,
} as const

export type PartKind = 'chunk' | 'changes' | 'tombstone'
export type GapReason = 'size' | 'age'

/** A removable part. Times are ms: observedAt in chunks, commit time otherwise. */
export interface RemovablePart {
  readonly kind: PartKind
  /** Stream number, row number of the entity, or the tombstone's own log number. */
  readonly series: number
  /** Increases within a series: slot of a chunk, first log number of changes. */
  readonly place: number
  /** Row number of the entity; 0 for chunks, whose stream has it. */
  readonly rid: number
  /** Highest log number that the part includes; 0 for chunks, whose stream has it. */
  readonly number: number
  readonly t0: number
  readonly t1: number
  /** Commit time of its last instance, ms. */
  readonly m1: number
  readonly count: number
  readonly bytes: number
}

/** All parts of one kind, by series and place. */
export interface PartIndex {
  /** The oldest part of the first series with a higher number; undefined when there is none. */
  seriesAfter(series: number): RemovablePart | undefined
  /** The next part of the same series. */
  partAfter(part: RemovablePart): RemovablePart | undefined
  /** The part in its current state, which may have grown; undefined when it was removed. */
  partNow(part: RemovablePart): RemovablePart | undefined
}

/** A removed span of one stream (`s` = 0: entity changes). The span may hold instances that arrived later. */
export interface GapRow {
  readonly g: number
  readonly s: number
  readonly rid: number
  readonly name: number
  readonly t0: number
  readonly t1: number
  readonly count: number
  readonly at: number
  readonly reason: GapReason | 'restore'
  /** Start of the record, ms. It never changes and is unique among the records of the stream. */
  readonly since: number
  /** Commit time of the last removed instance, ms. */
  readonly m1: number
  /** 1 if a follower had not yet read some of the removed instances. */
  readonly unread: 0 | 1
}

/** With the entity's id and type as JSON, if the entity has no other trace. */
export type OwnedGapRow = GapRow & { readonly owner: string | null }

/** Approximate bytes of a row without its body. */
const rowBytes = 48
const logRowBytes = 24

/** Read access to removable parts and to gap records. */
export function createRemovableParts(database: Database) {
  const used = database.prepare<[], { used: number; rows: number }>(
    `SELECT (pages.page_count - free.freelist_count) * size.page_size AS used,
       coalesce((SELECT max(n) FROM log) - (SELECT min(n) FROM log) + 1, 0) AS rows
     FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size`,
  )
  const pages = database.prepare<[], { whole: number; free: number }>(
    `SELECT pages.page_count * size.page_size AS whole, free.freelist_count * size.page_size AS free
     FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size`,
  )
  const gapsOfStream = database.prepare<[number, number], GapRow>(
    `SELECT ${gapColumns} FROM gap WHERE rid = (SELECT rid FROM stream WHERE s = ?) AND s = ? ORDER BY t0`,
  )
  const lastGapOf = database.prepare<[number, number], GapRow>(
    `SELECT ${gapColumns} FROM gap WHERE rid = ? AND s = ? ORDER BY g DESC LIMIT 1`,
  )
  const gapsOfEntity = database.prepare<[number], GapRow>(
    `SELECT ${gapColumns} FROM gap WHERE rid = ? ORDER BY s, t0`,
  )
  const gapCount = database.prepare<[], { count: number }>(
    `SELECT count(*) AS count FROM gap WHERE g > 0 AND reason <> 'restore'`,
  )
  const lastGap = database.prepare<[], { g: number | null }>('SELECT max(g) AS g FROM gap')
  const oldestGaps = database.prepare<[number], { g: number }>(
    `SELECT g FROM gap WHERE g > 0 AND reason <> 'restore' ORDER BY g LIMIT ?`,
  )
  const gapsSince = database.prepare<[number, number, number, number], OwnedGapRow>(
    `SELECT ${gapColumns}, owner FROM gap WHERE g > ? AND (m1 >= ? OR (reason = 'restore' AND at >= ?))
     ORDER BY g LIMIT ?`,
  )
  const gapsUnread = database.prepare<[number, number, number], OwnedGapRow>(
    `SELECT ${gapColumns}, owner FROM gap WHERE g > ? AND (unread = 1 OR since < ? OR reason = 'restore') ORDER BY g LIMIT ?`,
  )
  const gapSums = database.prepare<[], GapRow>(`SELECT ${gapColumns} FROM gap WHERE g <= 0`)
  return Object.freeze({
    /** Bytes of used pages without the log, whose bodies take `logBytes`. Needs no scan. */
    usedBytes(logBytes: number): number {
      const found = used.get()!
      return found.used - logBytes - found.rows * logRowBytes
    },
    /** Bytes that the file should have, and bytes of its free pages. */
    pageBytes: () => pages.get()!,
    partIndexes: Object.freeze({
      chunk: chunkIndex(database),
      changes: changesIndex(database),
      tombstone: tombstoneIndex(database),
    } satisfies Record<PartKind, PartIndex>),
    /** Gaps of a stream, in order of time. */
    gaps: (s: number) => gapsOfStream.all(s, s),
    /** Gaps of an entity's streams and of its other changes. */
    gapsOfEntity: (rid: number) => gapsOfEntity.all(rid),
    /**
     * Gap records changed after a record number, for instances committed at or after a time (ms), in order of
     * their numbers. Restore records are selected by the time of the restore.
     */
    gapsSince: (g: number, since: number, limit: number) =>
      gapsSince.all(Math.max(0, g), since, since, limit),
    /**
     * Gap records changed after a record number that include instances a follower had not read, or that began
     * before a time (ms).
     */
    gapsUnread: (g: number, before: number, limit: number) => gapsUnread.all(Math.max(0, g), before, limit),
    /** The sums of the records beyond the limit. */
    gapSums: () => gapSums.all(),
    lastGapOf: (rid: number, s: number) => lastGapOf.get(rid, s),
    gapCount: () => gapCount.get()!.count,
    lastGap: () => Math.max(0, lastGap.get()?.g ?? 0),
    /** Number of the least recently changed record. */
    firstGap: () => oldestGaps.get(1)?.g,
    /** Numbers of the least recently changed records. */
    oldestGaps: (limit: number) => oldestGaps.all(limit).map(({ g }) => g),
  })
}

export type RemovableParts = ReturnType<typeof createRemovableParts>

/** The rows that remove a part. */
export function removalOf(
  part: RemovablePart,
): RowOf<typeof retentionWrites & typeof historyWrites & typeof historyEditWrites>[] {
  if (part.kind === 'chunk') return [['chunk.delete', part.series, part.place]]
  if (part.kind === 'changes') return [['entity-history.delete', part.series, part.place]]
  return [
    ['gap.own', part.number, part.rid],
    ['tombstone.delete', part.number],
    ['rid.spend', part.rid],
    ['history-edit.clear', part.rid],
    ['history-erased.clear', part.rid],
    ['history-born.clear', part.rid],
  ]
}

type PartRow = Omit<RemovablePart, 'kind'>

function chunkIndex(database: Database): PartIndex {
  const columns = `k >> 41 AS series, k & ${slotMax} AS place, 0 AS rid, 0 AS number, t0, t1, m1, count,
    octet_length(body) + octet_length(shapes) + ${rowBytes} AS bytes`
  const after = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM chunk WHERE k > ((? << 41) | ?) ORDER BY k LIMIT 1`,
  )
  const at = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM chunk WHERE k = ((? << 41) | ?)`,
  )
  return partIndex('chunk', { after, at, placeMax: slotMax })
}

function changesIndex(database: Database): PartIndex {
  const columns = `rid AS series, n0 AS place, rid, n1 AS number, t0, t1, t1 AS m1, count, octet_length(body) + ${rowBytes} AS bytes`
  const after = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM entity_history WHERE (rid, n0) > (?, ?) ORDER BY rid, n0 LIMIT 1`,
  )
  const at = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM entity_history WHERE rid = ? AND n0 = ?`,
  )
  return partIndex('changes', { after, at, placeMax: Number.MAX_SAFE_INTEGER })
}

/** Every tombstone is a series of its own, whose only place is 0. */
function tombstoneIndex(database: Database): PartIndex {
  const columns = `n AS series, 0 AS place, rid, n AS number, at AS t0, at AS t1, at AS m1, 0 AS count,
    octet_length(doc) + ${rowBytes} AS bytes`
  const after = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM tombstone WHERE (n, 0) > (?, ?) ORDER BY n LIMIT 1`,
  )
  const at = database.prepare<[number, number], PartRow>(
    `SELECT ${columns} FROM tombstone WHERE n = ? AND 0 = ?`,
  )
  return partIndex('tombstone', { after, at, placeMax: 0 })
}

/** Both statements take a series and a place. */
interface PartReads {
  /** The next part after a place, of the same or a later series. */
  readonly after: PartRead
  readonly at: PartRead
  readonly placeMax: number
}
type PartRead = { get(series: number, place: number): PartRow | undefined }

function partIndex(kind: PartKind, { after, at, placeMax }: PartReads): PartIndex {
  const partOf = (row: PartRow | undefined): RemovablePart | undefined => row && { kind, ...row }
  return Object.freeze({
    seriesAfter: (series: number) => partOf(after.get(series, placeMax)),
    partAfter(part: RemovablePart) {
      const next = after.get(part.series, part.place)
      return next?.series === part.series ? partOf(next) : undefined
    },
    partNow: ({ series, place }: RemovablePart) => partOf(at.get(series, place)),
  })
}
