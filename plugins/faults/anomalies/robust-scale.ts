/**
 * Location and scale of a stream that later outliers hardly move: the moments of the first values, then
 * moments of values limited to four deviations. They follow over about 20,000 values. Pure.
 */
const startCount = 64
const clipDeviations = 4
const factorMin = 1 / 20_000

export function createRobustScale() {
  let count = 0
  let mean = 0
  let variance = 0

  const deviation = (): number => Math.max(Math.sqrt(variance), Math.abs(mean) * 1e-6, 1e-9)

  return Object.freeze({
    learn(value: number): void {
      count++
      // Values that were all equal have no deviation yet: the first other one gives it.
      const isLimited = count > startCount && variance > 0
      const limit = isLimited ? clipDeviations * deviation() : Number.POSITIVE_INFINITY
      const factor = Math.max(1 / count, factorMin)
      const difference = Math.max(-limit, Math.min(limit, value - mean))
      mean += factor * difference
      variance += factor * ((1 - factor) * difference ** 2 - variance)
    },
    location: (): number => mean,
    deviation,
    count: (): number => count,
  })
}
