/**
 * Folded history by when it was committed, for those who follow the changes: which chunks and which entities may hold
 * something of a span of commit times.
 */
import { streamOfKey } from './chunk-key.ts'
import type { Database } from './database.ts'
import { type ChunkRow, chunkColumns } from './history.ts'

/** Read access to folded history by commit times (ms). */
export function createHistorySpans(database: Database) {
  const touched = database
    .prepare<[number, number], bigint>('SELECT k FROM chunk WHERE m1 >= ? AND m0 < ?')
    .safeIntegers()
    .pluck()
  const firstCommit = database
    .prepare<[number], number>('SELECT m0 FROM chunk WHERE m1 >= ? ORDER BY m1 LIMIT 1')
    .pluck()
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
    /** Entities with folded changes that may have been committed within from <= ms < to. */
    changed: (from: number, to: number): ReadonlySet<number> => new Set(changed.all(from, to)),
  })
}

export type HistorySpans = ReturnType<typeof createHistorySpans>
