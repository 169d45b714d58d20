/**
 * Aligns the readings of sensors in slots of one length. The value of a slot is the last reading in it; a
 * source without a reading in a slot holds its last known value until that is older than three of the
 * source's own intervals. Missing values are NaN. Pure.
 */

export interface Readings {
  /** In milliseconds, ascending. */
  readonly times: Float64Array
  readonly values: Float64Array
}

export interface SlotGrid {
  readonly slotMs: number
  /** The number of the first slot: slot n begins at n * slotMs. */
  readonly first: number
  readonly count: number
}

/** How many of a source's own intervals its last known value is used. */
export const heldIntervals = 3

/** The median time between readings; undefined with fewer than two. */
export function ownInterval(times: Float64Array): number | undefined {
  const gaps = Float64Array.from(
    { length: Math.max(0, times.length - 1) },
    (_, i) => times[i + 1]! - times[i]!,
  )
  return gaps.sort()[gaps.length >> 1]
}

/**
 * The slots from the first to the last reading, at most the latest `countMax`; undefined without a
 * reading.
 */
export function gridOf({ times }: Readings, slotMs: number, countMax: number): SlotGrid | undefined {
  if (times.length === 0) return undefined
  const last = Math.floor(times.at(-1)! / slotMs)
  const first = Math.max(Math.floor(times[0]! / slotMs), last - countMax + 1)
  return { slotMs, first, count: last - first + 1 }
}

/** The value per slot; a value is held into later slots that begin at most `holdMs` after its reading. */
export function slotValues({ times, values }: Readings, grid: SlotGrid, holdMs = 0): Float64Array {
  let next = 0
  let known = -1
  return Float64Array.from({ length: grid.count }, (_, i) => {
    const begin = (grid.first + i) * grid.slotMs
    while (next < times.length && times[next]! < begin + grid.slotMs) {
      if (Number.isFinite(values[next]!)) known = next
      next++
    }
    return known >= 0 && begin - times[known]! <= holdMs ? values[known]! : Number.NaN
  })
}
