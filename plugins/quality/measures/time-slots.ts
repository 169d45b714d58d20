/**
 * Mean values of a stream in its latest time slots, at up to four slot lengths, in the table of its record.
 * Pure. Slots begin at multiples of their length since 1970, so the slots of two streams coincide. The
 * lengths begin with the update interval, rounded up to the next of `slotLengthsMs`.
 */
import { type RecordTable, recentTimes } from './recent-times.ts'

/** The shortest is the usual time between two writes: concordance does not change more often. */
export const slotLengthsMs = [10_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000] as const
/** Lengths per stream, so that a sensor of every minute has slots in common with one of every hour. */
const levels = 4
/** Slots per length. */
export const slotsKept = 24

/**
 * The slots of a record. In its table, behind recent times: for each length `slotsKept` means,
 * NaN if there is none, then the number of values in the newest slot of each length.
 */
export interface TimeSlots extends RecordTable {
  /** Index of the shortest length; undefined before the first number. */
  shortest: number | undefined
  /** The first value. Means are stored as differences from it, since they are numbers of 32 bits. */
  origin: number
  /** Stream time of the latest value, ms. */
  newestAt: number
}

/** Index of the first mean in the table. */
export const firstMean = recentTimes
/** Index of the first number of values. */
const firstCount = firstMean + levels * slotsKept
/** Numbers in the table of a record. */
export const tableSize = firstCount + levels

/** Begins the slots of a record. */
export function beginSlots(slots: TimeSlots, shortest: number, origin: number): void {
  slots.table.fill(Number.NaN, slots.first + firstMean, slots.first + tableSize)
  slots.shortest = shortest
  slots.origin = origin
  slots.newestAt = Number.NEGATIVE_INFINITY
}

/** Changes the shortest length; the lengths that were there before keep their means. */
export function changeSlots(slots: TimeSlots, shortest: number): void {
  const { table, first } = slots
  const before = table.slice(first, first + tableSize)
  const former = slots.shortest!
  table.fill(Number.NaN, first + firstMean, first + tableSize)
  slots.shortest = shortest
  for (let level = 0; level < levels; level++) {
    const from = shortest + level - former
    if (from < 0 || from >= levels) continue
    const means = firstMean + from * slotsKept
    table.set(before.subarray(means, means + slotsKept), first + firstMean + level * slotsKept)
    table[first + firstCount + level] = before[firstCount + from]!
  }
}

const columnOf = (slot: number): number => ((slot % slotsKept) + slotsKept) % slotsKept

/** Index of the shortest length for an update interval. */
export function shortestFor(intervalMs: number): number {
  const found = slotLengthsMs.findIndex((length) => length >= intervalMs)
  return found === -1 ? slotLengthsMs.length - 1 : found
}

/**
 * Adds a value. A late one fills its slot if that is empty.
 * @returns whether it begins a new slot of the shortest length.
 */
export function addToSlots(slots: TimeSlots, time: number, value: number): boolean {
  const { table: means, first: begin, newestAt, shortest, origin } = slots
  if (shortest === undefined || time === newestAt) return false
  const difference = value - origin
  for (let level = 0; level < levels && shortest + level < slotLengthsMs.length; level++) {
    const length = slotLengthsMs[shortest + level]!
    const [slot, newest] = [Math.floor(time / length), Math.floor(newestAt / length)]
    const first = begin + firstMean + level * slotsKept
    const at = first + columnOf(slot)
    const countAt = begin + firstCount + level
    if (slot > newest) {
      for (let empty = Math.max(newest + 1, slot - slotsKept + 1); empty < slot; empty++)
        means[first + columnOf(empty)] = Number.NaN
      means[at] = difference
      means[countAt] = 1
    } else if (slot === newest) {
      means[countAt]!++
      means[at]! += (difference - means[at]!) / means[countAt]!
    } else if (slot > newest - slotsKept && Number.isNaN(means[at]!)) means[at] = difference
  }
  const length = slotLengthsMs[shortest]!
  const isNew = Math.floor(time / length) > Math.floor(newestAt / length)
  slots.newestAt = Math.max(newestAt, time)
  return isNew
}

/**
 * Writes the means of the slots that two streams have in common into `own` and `other`.
 * @param index index of the slot length.
 * @returns the number of common slots; 0 if one of the streams has no slots of that length.
 */
export function commonSlots(
  [a, b]: readonly [TimeSlots, TimeSlots],
  index: number,
  { own, other }: { readonly own: Float32Array; readonly other: Float32Array },
): number {
  if (a.shortest === undefined || b.shortest === undefined) return 0
  const [aLevel, bLevel] = [index - a.shortest, index - b.shortest]
  if (Math.min(aLevel, bLevel) < 0 || Math.max(aLevel, bLevel) >= levels) return 0
  const length = slotLengthsMs[index]!
  const [aNewest, bNewest] = [Math.floor(a.newestAt / length), Math.floor(b.newestAt / length)]
  let count = 0
  const first = Math.max(aNewest, bNewest) - slotsKept + 1
  for (let slot = first; slot <= Math.min(aNewest, bNewest); slot++) {
    const column = columnOf(slot)
    const x = a.table[a.first + firstMean + aLevel * slotsKept + column]!
    const y = b.table[b.first + firstMean + bLevel * slotsKept + column]!
    if (Number.isNaN(x) || Number.isNaN(y)) continue
    own[count] = x
    other[count++] = y
  }
  return count
}
