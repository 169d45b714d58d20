/**
 * The times of the newest observations of each stream that were counted, so that an observation that arrives
 * again is not counted twice. One older than all of them counts as known.
 */
import { limits } from '#base/limits/limits.ts'
import type { PluginDatabase } from '#contract'
import { prepareCountedStatements } from './broker-statements.ts'

export interface CountedTimes {
  /** @param n number of the stream. @param time of the observation, ms. */
  has(n: number, time: number): boolean
  add(n: number, time: number): void
  /**
   * Saves the times of a stream, in the transaction that saves its record. Returns what follows once it is
   * committed.
   */
  save(n: number): () => void
  /** Removes a deleted stream, in the same way. */
  remove(n: number): () => void
}

export function createCountedTimes(database: PluginDatabase): CountedTimes {
  const sql = prepareCountedStatements(database)
  const unsaved = new Map<number, Set<number>>()
  const floorOf = (n: number): number =>
    (sql.at.get(n, limits.qualityCountedMax.value - 1) as number | undefined) ?? Number.NEGATIVE_INFINITY

  return Object.freeze({
    has: (n, time) =>
      unsaved.get(n)?.has(time) === true || time < floorOf(n) || sql.find.get(n, time) !== undefined,
    add(n, time) {
      const times = unsaved.get(n)
      if (times === undefined) unsaved.set(n, new Set([time]))
      else times.add(time)
    },
    save(n) {
      const times = unsaved.get(n) ?? []
      for (const time of newestOf(times)) sql.put.run(n, time)
      sql.trim.run(n, floorOf(n))
      return () => void unsaved.delete(n)
    },
    remove(n) {
      sql.remove.run(n)
      return () => void unsaved.delete(n)
    },
  } satisfies CountedTimes)
}

const newestOf = (times: Iterable<number>): number[] =>
  [...times].toSorted((a, b) => a - b).slice(-limits.qualityCountedMax.value)
