/**
 * Caches decoded numeric chunks that aggregates read recently, and their sums between the ends of periods,
 * since a chart is usually requested again. Bounded. A chunk that was packed again is detected by comparing
 * its summary.
 */
import { limits } from '#base/limits/limits.ts'
import type { Statistics } from '#ngsi-ld/history/aggregate.ts'
import {
  type CompactNumbers,
  compactNumbers,
  createNumberReader,
  type NumericSeries,
} from '#store/chunks/chunk-codec.ts'
import type { ChunkSummary, History } from '#store/history/history-rows.ts'

/** The part of a chunk in one period. */
export interface Run {
  readonly first: number
  readonly last: number
  readonly statistics: Statistics
}

export interface DecodedChunks {
  /**
   * The numbers of a chunk, valid until the next call; undefined if it was removed, packed again, or is not
   * numeric.
   */
  numbersOf(s: number, chunk: ChunkSummary): NumericSeries | undefined
  /**
   * The cached sums of a chunk between these borders, or those computed by `find`; undefined if there are
   * none.
   */
  runsOf(
    s: number,
    chunk: ChunkSummary,
    borders: readonly number[],
    find: () => readonly Run[] | undefined,
  ): readonly Run[] | undefined
}

export function createDecodedChunks(history: History): DecodedChunks {
  const read = createNumberReader()
  const decoded = createRecent<CompactNumbers>(limits.decodedChunksBytes.value, ({ bytes }) => bytes)
  const runs = createRecent<readonly Run[]>(limits.chunkRunsMax.value, () => 1)
  return {
    numbersOf(s, chunk) {
      const found = decoded(`${s} ${chunk.t0}`, chunk, () => {
        const row = history.chunkAt(s, chunk.t0)
        return row && isSameChunk(row, chunk) ? compactNumbers(row) : undefined
      })
      return found && read(found)
    },
    runsOf: (s, chunk, borders, find) => runs(`${s} ${chunk.t0} ${borders.join()}`, chunk, find),
  }
}

interface Known<T> {
  readonly chunk: ChunkSummary
  readonly value: T
}

/** A cache of the most recently used results per chunk, bounded by total weight `most`. */
function createRecent<T>(most: number, weigh: (value: T) => number) {
  const known = new Map<string, Known<T>>()
  let weight = 0
  const forget = (key: string): void => {
    const one = known.get(key)
    if (one === undefined) return
    known.delete(key)
    weight -= weigh(one.value)
  }
  return (key: string, chunk: ChunkSummary, make: () => T | undefined): T | undefined => {
    const found = known.get(key)
    const value = found !== undefined && isSameChunk(found.chunk, chunk) ? found.value : make()
    forget(key)
    if (value === undefined) return undefined
    known.set(key, { chunk, value })
    weight += weigh(value)
    while (weight > most && known.size > 1) forget(known.keys().next().value!)
    return value
  }
}

/** Whether two summaries describe the same chunk contents. */
export const isSameChunk = (a: ChunkSummary, b: ChunkSummary): boolean =>
  a.t0 === b.t0 &&
  a.t1 === b.t1 &&
  a.count === b.count &&
  a.sum === b.sum &&
  a.sumsq === b.sumsq &&
  a.m0 === b.m0 &&
  a.m1 === b.m1
