/** The cached values of one stream, one per time, in order of time. */
import { numberOf } from '#client/streams/stream-entities.ts'

export interface CachedSeries {
  readonly times: number[]
  readonly values: number[]
}

export const newSeries = (): CachedSeries => ({ times: [], values: [] })

/** Index of the first time that is not before a time. */
export function firstFrom(times: readonly number[], time: number): number {
  let low = 0
  let high = times.length
  // Most values are the newest.
  if (high > 0 && times[high - 1]! < time) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (times[middle]! < time) low = middle + 1
    else high = middle
  }
  return low
}

/** Adds a value, or replaces the value of the same time. Returns false if it was there already. */
export function put({ times, values }: CachedSeries, time: number, value: number): boolean {
  const at = firstFrom(times, time)
  if (times[at] === time) {
    if (values[at] === value) return false
    values[at] = value
    return true
  }
  if (at === times.length) {
    times.push(time)
    values.push(value)
  } else {
    times.splice(at, 0, time)
    values.splice(at, 0, value)
  }
  return true
}

/**
 * Removes the values before a time, except the last of them, which fills the first rows. Returns the removed
 * times.
 */
export function removeBefore({ times, values }: CachedSeries, time: number): readonly number[] {
  const count = firstFrom(times, time) - 1
  if (count <= 0) return []
  values.splice(0, count)
  return times.splice(0, count)
}

/** A number, also written as text; true is 1, false is 0. */
export const cachedValueOf = (value: unknown): number | undefined =>
  typeof value === 'boolean' ? Number(value) : numberOf(value)
