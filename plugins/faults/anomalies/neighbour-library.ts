/**
 * Compares the latest values with all equally long stretches of the history: the score is the mean distance
 * to the three nearest. The distances are carried on from value to value (each stretch moves on by one), so
 * a value costs a few operations by library entry, whatever the length. The history enters late, so a
 * stretch does not match itself. Pure.
 */

export interface LibrarySettings {
  /** Values that are compared. */
  readonly length: number
  /** Values of history. */
  readonly size: number
}

const neighbours = 3
/** Rounding accumulates in carried distances: they are computed anew after so many values. */
const renewEvery = 1024

export function createNeighbourLibrary({ length, size }: LibrarySettings) {
  // Twice the size, so that dropping the oldest value seldom moves memory.
  const library = new Float64Array(2 * size)
  const distances = new Float64Array(2 * size)
  const latest = new Float64Array(2 * length)
  const latestLearns = new Uint8Array(2 * length)
  let first = 0
  let end = 0
  let count = 0

  /** The value `age` samples ago; 0 is the newest. */
  const past = (age: number): number => latest[(count - 1 - age) % (2 * length)]!

  /** The squared distance of the latest values to the stretch that ends at this place. */
  function distanceAt(place: number): number {
    let sum = 0
    for (let i = 0; i < length; i++) sum += (past(i) - library[place - i]!) ** 2
    return sum
  }

  /** Moves the distances on to the newest value; `dropped` left the stretch. */
  function carry(value: number, dropped: number): void {
    const from = first + length - 1
    for (let j = end - 1; j > from; j--) {
      const added = value - library[j]!
      const removed = dropped - library[j - length]!
      distances[j] = distances[j - 1]! + added * added - removed * removed
    }
    if (from < end) distances[from] = distanceAt(from)
  }

  function renew(): void {
    for (let j = first + length - 1; j < end; j++) distances[j] = distanceAt(j)
  }

  /** Adds the value that is `length` samples old. */
  function append(value: number): void {
    if (end === library.length) {
      library.copyWithin(0, first, end)
      distances.copyWithin(0, first, end)
      end -= first
      first = 0
    }
    library[end] = value
    end++
    if (end - first >= length) distances[end - 1] = distanceAt(end - 1)
    if (end - first > size) first++
  }

  function nearest(): number {
    const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    let [a, b, c] = best as [number, number, number]
    for (let j = first + length - 1; j < end; j++) {
      const distance = distances[j]!
      if (distance >= c) continue
      if (distance < a) {
        c = b
        b = a
        a = distance
      } else if (distance < b) {
        c = b
        b = distance
      } else c = distance
    }
    return (Math.sqrt(Math.max(a, 0)) + Math.sqrt(Math.max(b, 0)) + Math.sqrt(Math.max(c, 0))) / neighbours
  }

  return Object.freeze({
    /** The distance of the latest values to the history; undefined until there is enough of both. */
    take(value: number, learns: boolean): number | undefined {
      const ring = 2 * length
      const at = count % ring
      const dropped = count >= length ? latest[(count - length) % ring]! : 0
      const oldLearns = count >= length && latestLearns[(count - length) % ring] === 1
      latest[at] = value
      latestLearns[at] = learns ? 1 : 0
      count++
      if (count > length) {
        carry(value, dropped)
        if (oldLearns) append(dropped)
        if (count % renewEvery === 0) renew()
      }
      return end - first >= 2 * length ? nearest() : undefined
    },
  })
}
