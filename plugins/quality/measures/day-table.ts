/**
 * Counts of the last 24 hours of a stream's time, by half hour. Pure. Times are ms; older ones are dropped.
 * Most streams need one row of counts; the others are made with their first count, since memory is scarce.
 */

/** Counts of which most streams have none. `more`: received beyond those of `received`, which has 16 bits. */
const rareRows = { late: 0, excused: 1, outageSeconds: 2, more: 3 } as const
export type RareRow = keyof typeof rareRows
export type DaySums = Readonly<Record<'received' | Exclude<RareRow, 'more'>, number>>

export const binMs = 1_800_000
export const dayMs = 86_400_000
/** A day may begin within a half hour, so it touches 49. */
export const bins = 49
const receivedMax = 2 ** 16 - 1
export const rareSize = Object.keys(rareRows).length * bins

export interface DayTable {
  /** From `firstBin` on, the values received in each half hour. Several streams share the array. */
  readonly received: Uint16Array
  readonly firstBin: number
  /** `rareRows`; undefined before their first count. */
  rare: Float32Array | undefined
}

const binOf = (time: number): number => Math.floor(time / binMs)
const columnOf = (bin: number): number => ((bin % bins) + bins) % bins

/** Counts a value. @param newest the latest time in the table. */
export function addReceived(day: DayTable, time: number, newest: number): void {
  if (binOf(newest) - binOf(time) >= bins) return
  const at = day.firstBin + columnOf(binOf(time))
  // After 65,535 it is 0 again.
  if (++day.received[at]! > receivedMax) addRare(day, { row: 'more', time, count: receivedMax + 1 }, newest)
}

/** Adds a count of a time. @param newest the latest time in the table. */
export function addRare(
  day: DayTable,
  { row, time, count }: { readonly row: RareRow; readonly time: number; readonly count: number },
  newest: number,
): void {
  if (count === 0 || binOf(newest) - binOf(time) >= bins) return
  day.rare ??= new Float32Array(rareSize)
  day.rare[rareRows[row] * bins + columnOf(binOf(time))]! += count
}

/** Moves the table on from its latest time to a later one: the half hours between are empty. */
export function moveOn({ received, firstBin, rare }: DayTable, from: number, to: number): void {
  for (let bin = Math.max(binOf(from) + 1, binOf(to) - bins + 1); bin <= binOf(to); bin++) {
    const column = columnOf(bin)
    received[firstBin + column] = 0
    for (let at = column; rare !== undefined && at < rareSize; at += bins) rare[at] = 0
  }
}

/**
 * Adds to a row what happened in a span that ends at the latest time, by half hour.
 * @param countOf what happened between two times within the span.
 */
export function addSpan(
  day: DayTable,
  { row, from, to }: { readonly row: RareRow; readonly from: number; readonly to: number },
  countOf: (from: number, to: number) => number,
): void {
  for (let bin = Math.max(binOf(from), binOf(to) - bins + 1); bin <= binOf(to); bin++) {
    const [begin, end] = [Math.max(from, bin * binMs), Math.min(to, (bin + 1) * binMs)]
    addRare(day, { row, time: begin, count: countOf(begin, end) }, to)
  }
}

/**
 * Sums of the 24 hours before `at`, a multiple of the interval after the latest value. The half hour in which
 * the day begins counts with the part that its values have after that, if they come in the interval.
 * @param newest the latest time in the table, at most `at`.
 */
export function daySums(
  { received, firstBin, rare }: DayTable,
  at: number,
  { newest, intervalMs }: { readonly newest: number; readonly intervalMs: number },
): DaySums {
  const sums = { received: 0, late: 0, excused: 0, outageSeconds: 0 }
  const begin = at - dayMs
  for (let bin = Math.max(binOf(newest) - bins + 1, binOf(begin)); bin <= binOf(newest); bin++) {
    const column = columnOf(bin)
    const restMs = (bin + 1) * binMs - begin
    const values = (Math.ceil(restMs / intervalMs) - 1) * (intervalMs / binMs)
    const part = restMs > binMs ? 1 : Math.min(1, Math.max(0, values))
    sums.received += received[firstBin + column]! * part
    if (rare === undefined) continue
    sums.late += rare[column]! * part
    sums.received += rare[3 * bins + column]! * part
    sums.excused += rare[bins + column]! * part
    sums.outageSeconds += rare[2 * bins + column]! * Math.min(1, restMs / binMs)
  }
  return sums
}
