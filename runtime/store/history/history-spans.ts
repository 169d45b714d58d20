/**
 * Folded history by when it was committed, for those who follow the changes: which chunks and which entities may hold
 * something of a span of commit times.
 */
import { streamOfKey, streamSql } from '#store/chunks/chunk-key.ts'
import type { Database } from '#store/file/database.ts'
import { type ChunkRow, chunkColumns } from './history-rows.ts'

/** How much of a stream was committed between two times (ms), both included. */
export interface SpanVolume {
  /** Its number. */
  readonly s: number
  readonly from: number
  readonly to: number
  readonly observations: number
  readonly bytes: number
  readonly isNumeric: boolean
  /** From the first to the last time of observation, ms. */
  readonly observedMs: number
}

/** A row of the table beside its body, about. */
const rowBytes = 48

/** Read access to folded history by commit times (ms). */
export function createHistorySpans(database: Database) {
  const touched = database
    .prepare<[number, number], bigint>('SELECT k FROM chunk WHERE m1 >= ? AND m0 < ?')
    .safeIntegers()
    .pluck()
  const firstCommit = database
    .prepare<[number], number>('SELECT m0 FROM chunk WHERE m1 >= ? ORDER BY m1 LIMIT 1')
    .pluck()
  const volumes = database.prepare<[number], SpanVolume & { readonly numeric: number }>(
    `SELECT ${streamSql('k')} AS s, m0 AS "from", m1 AS "to", count AS observations, octet_length(body) + ${rowBytes} AS bytes,
       min IS NOT NULL AS numeric, t1 - t0 AS observedMs FROM chunk WHERE m1 >= ?`,
  )
  const before = database.prepare<[number], number>('SELECT count(*) FROM chunk WHERE m1 < ?').pluck()
  const sample = database.prepare<[], { bytes: number | null }>(
    `SELECT avg(size) AS bytes FROM (SELECT octet_length(body) + ${rowBytes} AS size FROM chunk WHERE k > 0 ORDER BY k LIMIT 200)`,
  )
  const byKey = database.prepare<[bigint], ChunkRow>(`SELECT ${chunkColumns} FROM chunk WHERE k = ?`)
  const changed = database
    .prepare<[number, number], number>('SELECT rid FROM entity_history WHERE t1 >= ? AND t0 < ?')
    .pluck()
  return Object.freeze({
    /** Chunks that may hold instances committed within from <= ms < to: their keys by stream. */
    touched: (from: number, to: number): Map<number, bigint[]> =>
      Map.groupBy(touched.all(from, to), streamOfKey),
    /** Commit time of the earliest instance of the first chunk whose latest was committed at `from` or later. */
    firstCommit: (from: number) => firstCommit.get(from),
    chunk: (key: bigint) => byKey.get(key),
    /** Chunks with instances committed at `from` or later; one from before their commit times were known counts as new. */
    volumes: (from: number): SpanVolume[] =>
      volumes.all(from).map(({ numeric, ...volume }) => ({ ...volume, isNumeric: numeric === 1 })),
    /** About how many bytes the chunks take that hold nothing committed at `from` or later. */
    bytesBefore: (from: number): number => (before.get(from) as number) * (sample.get()?.bytes ?? 0),
    /** Entities with folded changes that may have been committed within from <= ms < to. */
    changed: (from: number, to: number): ReadonlySet<number> => new Set(changed.all(from, to)),
  })
}

export type HistorySpans = ReturnType<typeof createHistorySpans>
