/**
 * Location and scale of a stream that outliers hardly move: median and median absolute deviation of the
 * first values, then exponential moments of values clipped at four deviations. Pure.
 */
import { medianOf } from '#statistics/median.ts'

const startCount = 64
const clipDeviations = 4
const factorMin = 1 / 20_000

export function createRobustScale() {
  const start = new Float64Array(startCount)
  let count = 0
  let mean = 0
  let variance = 0

  function restart(): void {
    const seen = start.slice(0, count)
    mean = medianOf(seen)
    const deviation = 1.4826 * medianOf(seen.map((value) => Math.abs(value - mean)))
    variance =
      deviation > 0 ? deviation ** 2 : seen.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count
  }

  const deviationOf = (): number => Math.max(Math.sqrt(variance), Math.abs(mean) * 1e-6, 1e-9)

  return Object.freeze({
    learn(value: number): void {
      count++
      if (count <= startCount) {
        start[count - 1] = value
        // The median of the first values is renewed at doublings and at the end.
        if ((count & (count - 1)) === 0 || count === startCount) restart()
        return
      }
      const factor = Math.max(1 / count, factorMin)
      // Values that were all equal have no deviation yet: the first other one gives it.
      const limit = variance > 0 ? clipDeviations * deviationOf() : Number.POSITIVE_INFINITY
      const difference = Math.max(-limit, Math.min(limit, value - mean))
      mean += factor * difference
      variance += factor * (difference ** 2 - variance)
    },
    location: (): number => mean,
    deviation: deviationOf,
    count: (): number => count,
  })
}
