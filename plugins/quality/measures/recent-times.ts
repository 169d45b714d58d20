/**
 * The times of the latest observations of a stream, to count a repeated one once. Pure. Times are ms modulo
 * 2^24, which a number of 32 bits holds exactly. They lie in the table of a record, behind the half hours.
 */
import { bins, type DayTable } from './day-table.ts'

/** Observations among which a repeated one is found. */
export const recentTimes = 32
const modulus = 2 ** 24

/** A table with the counts of half hours and the times. */
export function newTable(): Float32Array {
  const table = new Float32Array(bins + recentTimes)
  table.fill(Number.NaN, bins)
  return table
}

export function isRecent({ table }: DayTable, time: number): boolean {
  const wanted = time % modulus
  for (let at = bins; at < bins + recentTimes; at++) if (table[at] === wanted) return true
  return false
}

/** @param count observations of the stream so far. */
export function addRecent({ table }: DayTable, time: number, count: number): void {
  table[bins + (count % recentTimes)] = time % modulus
}
