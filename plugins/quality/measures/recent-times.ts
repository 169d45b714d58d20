/**
 * The times of the latest observations of a stream, to count a repeated one once. Pure. Times are ms modulo
 * 2^24, which a number of 32 bits holds exactly.
 */

/** A record's part of an array that several streams share, from `first` on. */
export interface RecordTable {
  /** The latest times; behind them is what `time-slots.ts` has. */
  readonly table: Float32Array
  readonly first: number
}

/** Observations among which a repeated one is found. */
export const recentTimes = 32
const modulus = 2 ** 24

/** Empties the times of a new record. */
export function clearTimes({ table, first }: RecordTable): void {
  table.fill(Number.NaN, first, first + recentTimes)
}

export function isRecent({ table, first }: RecordTable, time: number): boolean {
  const wanted = time % modulus
  for (let at = first; at < first + recentTimes; at++) if (table[at] === wanted) return true
  return false
}

/** @param count observations of the stream so far. */
export function addRecent({ table, first }: RecordTable, time: number, count: number): void {
  table[first + (count % recentTimes)] = time % modulus
}
