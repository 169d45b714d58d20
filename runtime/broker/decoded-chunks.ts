/**
 * Chunks of numbers that aggregates have read lately, decoded: whoever looks at a chart looks again, and the same few
 * chunks lie across the same ends of periods. Bounded; a chunk that was packed anew is told from the one that is known.
 */
import { limits } from '#base/limits.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { ChunkSummary, History } from '#store/history.ts'

export interface DecodedChunk {
  readonly times: Float64Array
  readonly values: Float64Array
}

export interface DecodedChunks {
  /** The numbers of a chunk; undefined where it is gone or holds something else. */
  numbersOf(s: number, chunk: ChunkSummary): DecodedChunk | undefined
}

export function createDecodedChunks(history: History): DecodedChunks {
  const known = new Map<string, DecodedChunk>()
  return {
    numbersOf(s, { t0, t1, count, sum, sumsq }) {
      const key = `${s} ${t0} ${t1} ${count} ${sum} ${sumsq}`
      const found = known.get(key)
      if (found !== undefined) {
        known.delete(key)
        known.set(key, found)
        return found
      }
      const row = history.chunkAt(s, t0)
      if (row === undefined) return undefined
      const { times, values } = decodeChunk(row)
      if (!(values instanceof Float64Array)) return undefined
      known.set(key, { times, values })
      if (known.size > limits.decodedChunksMax.value) known.delete(known.keys().next().value!)
      return { times, values }
    },
  }
}
