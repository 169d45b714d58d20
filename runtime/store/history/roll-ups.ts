/**
 * Roll-ups: what is kept of numbers when they become too old to be kept one by one, hour by hour: how many, least,
 * greatest, sum and sum of squares. They only ever add up, so the two halves of an hour that goes in two steps make one.
 */
import type { Database } from '#store/file/database.ts'

export const hourMs = 3_600_000

export const rollUpWrites = {
  'rollup.add': `INSERT INTO rollup (s, hour, count, min, max, sum, sumsq) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (s, hour) DO UPDATE SET count = count + excluded.count, min = min(min, excluded.min),
       max = max(max, excluded.max), sum = sum + excluded.sum, sumsq = sumsq + excluded.sumsq`,
  'rollup.trim': 'DELETE FROM rollup WHERE hour < ?',
  'rollup.erase': 'DELETE FROM rollup WHERE s = ?',
} as const

/** `hour` is its beginning, ms. */
export interface RollUpRow {
  readonly hour: number
  readonly count: number
  readonly min: number
  readonly max: number
  readonly sum: number
  readonly sumsq: number
}

/** Read access to roll-ups. */
export function createRollUps(database: Database) {
  const within = database.prepare<[number, number, number], RollUpRow>(
    'SELECT hour, count, min, max, sum, sumsq FROM rollup WHERE s = ? AND hour >= ? AND hour < ? ORDER BY hour',
  )
  const first = database.prepare<[], { hour: number | null }>('SELECT min(hour) AS hour FROM rollup')
  return Object.freeze({
    /** Hours of a stream that begin within a span, in order. */
    within: (s: number, from: number, to: number) => within.all(s, from, to),
    /** The oldest hour there is of any stream. */
    first: () => first.get()?.hour ?? undefined,
  })
}

export type RollUps = ReturnType<typeof createRollUps>
