/**
 * The latest values of a stream by slot, with gaps. Single precision around the first value: 8 KB for 2,048
 * slots.
 */

export function createSlotHistory(size: number) {
  const ring = new Float32Array(size).fill(Number.NaN)
  let next = 0
  let origin: number | undefined

  return Object.freeze({
    push(value: number | undefined): void {
      origin ??= value
      ring[next % size] = value === undefined ? Number.NaN : value - origin!
      next++
    },
    /** The slot that comes next; the first one is 0. */
    slot: (): number => next,
    firstSlot: (): number => Math.max(0, next - size),
    /** From the oldest; NaN is a missing value. */
    values(): Float64Array {
      const first = Math.max(0, next - size)
      return Float64Array.from({ length: next - first }, (_, i) => ring[(first + i) % size]! + (origin ?? 0))
    },
  })
}
