/**
 * Finds shifts: the mean of the latest values, or the logarithm of their variance, against slow moments of
 * that same statistic. Catches a change of level or of noise that no single value shows. Pure.
 */

export interface ShiftSettings {
  readonly statistic: 'mean' | 'variance'
  /** How many of the latest values. */
  readonly length: number
  /** The slow moments follow by one over this count. */
  readonly memory: number
}

export function createShift({ statistic, length, memory }: ShiftSettings) {
  const latest = new Float64Array(length)
  let count = 0
  let sum = 0
  let squares = 0
  let learned = 0
  let mean = 0
  let variance = 0

  function push(value: number): void {
    const at = count % length
    if (count >= length) {
      sum -= latest[at]!
      squares -= latest[at]! ** 2
    }
    latest[at] = value
    sum += value
    squares += value ** 2
    count++
    if (at === length - 1) recount()
  }

  /** Sums anew, so that rounding does not accumulate. */
  function recount(): void {
    sum = 0
    squares = 0
    for (let i = 0; i < length; i++) {
      sum += latest[i]!
      squares += latest[i]! ** 2
    }
  }

  function current(): number {
    if (statistic === 'mean') return sum / length
    const centre = sum / length
    return Math.log(Math.max(squares / length - centre ** 2, 0) + 1e-6)
  }

  return Object.freeze({
    /** The raw score of a standardised value; undefined until enough values were seen. */
    take(value: number, learns: boolean): number | undefined {
      push(value)
      if (count < length) return undefined
      const now = current()
      const score = learned < length ? undefined : Math.abs(now - mean) / Math.sqrt(variance + 1e-12)
      if (learns) {
        learned++
        const factor = Math.max(1 / learned, 1 / memory)
        const difference = now - mean
        mean += factor * difference
        variance += factor * ((1 - factor) * difference ** 2 - variance)
      }
      return score
    },
  })
}
