/**
 * Folded history by commit time, for followers of changes: finds the chunks and entities that may hold
 * instances committed within a span.
 */
import { streamOfKey, streamSql } from '#store/chunks/chunk-key.ts'
import type { Database } from '#store/file/database.ts'
import { type ChunkRow, chunkColumns } from './history-rows.ts'

/** Amount of data of a stream committed between two times (ms), both included. */
export interface SpanVolume {
  /** Number of the stream. */
  readonly s: number
  readonly from: number
  readonly to: number
  readonly observations: number
  readonly bytes: number
  readonly isNumeric: boolean
  /** From the first to the last observedAt, ms. */
  readonly observedMs: number
}

/** Approximate bytes of a row without its body. */
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
    /** Keys, by stream, of chunks that may hold instances committed within from <= ms < to. */
    touched: (from: number, to: number): Map<number, bigint[]> =>
      Map.groupBy(touched.all(from, to), streamOfKey),
    /**
     * Commit time of the earliest instance in the first chunk whose latest instance was committed at `from`
     * or later.
     */
    firstCommit: (from: number) => firstCommit.get(from),
    chunk: (key: bigint) => byKey.get(key),
    /**
     * Chunks with instances committed at `from` or later. A chunk without recorded commit times counts as
     * new.
     */
    volumes: (from: number): SpanVolume[] =>
      volumes.all(from).map(({ numeric, ...volume }) => ({ ...volume, isNumeric: numeric === 1 })),
    /** Approximate bytes of the chunks without instances committed at `from` or later. */
    bytesBefore: (from: number): number => (before.get(from) as number) * (sample.get()?.bytes ?? 0),
    /** Entities with folded changes that may have been committed within from <= ms < to. */
    changed: (from: number, to: number): ReadonlySet<number> => new Set(changed.all(from, to)),
  })
}

export type HistorySpans = ReturnType<typeof createHistorySpans>
