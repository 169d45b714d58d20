/**
 * Counts of the last 24 hours of a stream's time, by hour, in one small typed array. Pure. Times are ms;
 * older ones are dropped.
 */

/** Rows of the table. */
export const rows = { received: 0, timely: 1, excused: 2, outageSeconds: 3 } as const
export type DayRow = keyof typeof rows
export type DaySums = Readonly<Record<DayRow, number>>

const hourMs = 3_600_000
export const dayMs = 24 * hourMs
/** A day may begin within an hour, so it touches 25. */
const hours = 25

/** `rows` times 25 counts. */
export type DayTable = Uint32Array

export const newDayTable = (): DayTable => new Uint32Array(Object.keys(rows).length * hours)

const hourOf = (time: number): number => Math.floor(time / hourMs)
const columnOf = (hour: number): number => ((hour % hours) + hours) % hours

/** Adds to the hour of a time. @param newest the latest time in the table. */
export function addTo(
  table: DayTable,
  { row, time, count }: { readonly row: DayRow; readonly time: number; readonly count: number },
  newest: number,
): void {
  if (hourOf(newest) - hourOf(time) < hours) table[rows[row] * hours + columnOf(hourOf(time))]! += count
}

/** Moves the table on from its latest time to a later one: the hours between are empty. */
export function moveOn(table: DayTable, from: number, to: number): void {
  for (let hour = Math.max(hourOf(from) + 1, hourOf(to) - hours + 1); hour <= hourOf(to); hour++)
    for (const row of Object.values(rows)) table[row * hours + columnOf(hour)] = 0
}

/** Sums of the 24 hours before `at`. @param newest the latest time in the table, at most `at`. */
export function daySums(table: DayTable, at: number, newest: number): DaySums {
  const sums = { received: 0, timely: 0, excused: 0, outageSeconds: 0 }
  const first = Math.max(hourOf(newest) - hours + 1, hourOf(at - dayMs))
  for (let hour = first; hour <= hourOf(newest); hour++) {
    // The hour in which the day begins counts with its part within the day.
    const share = Math.min(1, ((hour + 1) * hourMs - (at - dayMs)) / hourMs)
    for (const [name, row] of Object.entries(rows))
      sums[name as DayRow] += table[row * hours + columnOf(hour)]! * share
  }
  return sums
}
