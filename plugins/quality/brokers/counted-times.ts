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
  /** Forgets a deleted stream. */
  delete(n: number): void
  /** Writes what changed; to be called in a transaction. */
  write(): void
  /** Called when that transaction has ended. */
  written(): void
}

export function createCountedTimes(database: PluginDatabase): CountedTimes {
  const sql = prepareCountedStatements(database)
  const unsaved = new Map<number, Set<number>>()
  const removed = new Set<number>()
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
    delete(n) {
      unsaved.delete(n)
      removed.add(n)
    },
    write() {
      for (const n of removed) sql.remove.run(n)
      for (const [n, times] of unsaved) {
        const newest = times.size > limits.qualityCountedMax.value ? newestOf(times) : times
        for (const time of newest) sql.put.run(n, time)
        sql.trim.run(n, floorOf(n))
      }
    },
    written() {
      unsaved.clear()
      removed.clear()
    },
  } satisfies CountedTimes)
}

const newestOf = (times: ReadonlySet<number>): number[] =>
  [...times].toSorted((a, b) => a - b).slice(-limits.qualityCountedMax.value)
