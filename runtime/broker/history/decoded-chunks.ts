/**
 * Chunks of numbers that aggregates have read lately, decoded, and what they found in them between the ends of
 * periods: whoever looks at a chart looks again, and the same few chunks lie across the same ends or near them. Bounded;
 * a chunk that was packed anew is told from the one that is known.
 */
import { limits } from '#base/limits/limits.ts'
import type { Statistics } from '#ngsi-ld/history/aggregate.ts'
import {
  type CompactNumbers,
  compactNumbers,
  createNumberReader,
  type Numbers,
} from '#store/chunks/chunk-codec.ts'
import type { ChunkSummary, History } from '#store/history/history-rows.ts'

/** What lies in one period. */
export interface Run {
  readonly first: number
  readonly last: number
  readonly statistics: Statistics
}

export interface DecodedChunks {
  /** The numbers of a chunk, until the next are asked for; undefined where it is gone, packed anew, or holds something else. */
  numbersOf(s: number, chunk: ChunkSummary): Numbers | undefined
  /** What was found in a chunk between these borders, or is found now; undefined where nothing can be. */
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

/** Remembers what was asked for last of chunks, `most` by weight. */
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

/** Whether what is known of a chunk is of the same as it was. */
export const isSameChunk = (a: ChunkSummary, b: ChunkSummary): boolean =>
  a.t0 === b.t0 &&
  a.t1 === b.t1 &&
  a.count === b.count &&
  a.sum === b.sum &&
  a.sumsq === b.sumsq &&
  a.m0 === b.m0 &&
  a.m1 === b.m1
