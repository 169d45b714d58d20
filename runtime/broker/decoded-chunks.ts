/**
 * Chunks of numbers that aggregates have read lately, decoded, and what they found in them between the ends of periods:
 * whoever looks at a chart looks again, and the same few chunks lie across the same ends. Bounded; a chunk that was
 * packed anew is told from the one that is known.
 */
import { limits } from '#base/limits.ts'
import type { Statistics } from '#ngsi-ld/aggregate.ts'
import { decodeNumbers } from '#store/chunk-codec.ts'
import type { ChunkSummary, History } from '#store/history.ts'

export interface DecodedChunk {
  readonly times: Float64Array
  readonly values: Float64Array
}

/** What lies in one period. */
export interface Run {
  readonly first: number
  readonly last: number
  readonly statistics: Statistics
}

export interface DecodedChunks {
  /** The numbers of a chunk; undefined where it is gone or holds something else. */
  numbersOf(s: number, chunk: ChunkSummary): DecodedChunk | undefined
  /** What was found in a chunk between these borders, or is found now. */
  runsOf(
    s: number,
    chunk: ChunkSummary,
    borders: readonly number[],
    find: () => readonly Run[],
  ): readonly Run[]
}

const keyOf = (s: number, { t0, t1, count, sum, sumsq }: ChunkSummary): string =>
  `${s} ${t0} ${t1} ${count} ${sum} ${sumsq}`

export function createDecodedChunks(history: History): DecodedChunks {
  const known = createRecent<DecodedChunk>(limits.decodedChunksMax.value)
  const runs = createRecent<readonly Run[]>(limits.chunkRunsMax.value)
  return {
    numbersOf: (s, chunk) =>
      known(keyOf(s, chunk), () => {
        const row = history.chunkAt(s, chunk.t0)
        return row === undefined ? undefined : decodeNumbers(row)
      }),
    runsOf: (s, chunk, borders, find) => runs(`${keyOf(s, chunk)} ${borders.join()}`, find) ?? [],
  }
}

/** Remembers what was asked for last. */
function createRecent<T>(most: number) {
  const known = new Map<string, T>()
  return <F extends T | undefined>(key: string, make: () => F): T | F => {
    const found = known.get(key) ?? make()
    if (found === undefined) return found
    known.delete(key)
    known.set(key, found)
    if (known.size > most) known.delete(known.keys().next().value!)
    return found
  }
}
