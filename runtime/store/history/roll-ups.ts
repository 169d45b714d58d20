/**
 * Roll-ups: hourly statistics of numbers that are too old to be kept individually: count, minimum, maximum,
 * sum and sum of squares. A new roll-up is added to an existing one, so an hour removed in two steps yields
 * one roll-up.
 */
import type { Statistics } from '#ngsi-ld/history/aggregate.ts'
import type { Database } from '#store/file/database.ts'

export const hourMs = 3_600_000

export const rollUpWrites = {
  'rollup.add': `INSERT INTO rollup (s, hour, count, min, max, sum, sumsq) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (s, hour) DO UPDATE SET count = count + excluded.count, min = min(min, excluded.min),
       max = max(max, excluded.max), sum = sum + excluded.sum, sumsq = sumsq + excluded.sumsq`,
  'rollup.trim': 'DELETE FROM rollup WHERE hour < ?',
  'rollup.erase': 'DELETE FROM rollup WHERE s = ?',
} as const

/** `hour` is its start, ms. */
export interface RollUpRow extends Statistics {
  readonly hour: number
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
    /** The oldest hour of any stream. */
    first: () => first.get()?.hour ?? undefined,
  })
}

export type RollUps = ReturnType<typeof createRollUps>
