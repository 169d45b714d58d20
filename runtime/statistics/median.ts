/** The median, by a sorted copy. Pure. */

/** The middle value, or the mean of the two middle ones; NaN of no values. */
export function medianOf(values: Float64Array): number {
  const sorted = values.toSorted()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
