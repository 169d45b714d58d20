/**
 * Learns the update interval of a stream from the times of its observations. There is a result only if the
 * observations are regular. A sensor that reports changes has no interval, and a wrong one would falsify its
 * quality.
 */

const intervalsMin = 10
/** Maximum deviation of a regular interval from the median, and the required share of regular intervals. */
const tolerance = 0.2
const regularShare = 0.8

/**
 * @param times milliseconds, in any order; duplicates do not count
 * @returns seconds, rounded to the precision that jitter allows; undefined with fewer than 10 intervals or
 * irregular ones
 */
export function learnInterval(times: readonly number[]): number | undefined {
  const sorted = Float64Array.from(new Set(times)).sort()
  if (sorted.length <= intervalsMin) return undefined
  const intervals = sorted.subarray(1).map((time, index) => time - sorted[index]!)
  const median = medianOf(intervals)
  const regular = intervals.filter((interval) => Math.abs(interval - median) <= tolerance * median)
  return regular.length < regularShare * intervals.length ? undefined : roundedSeconds(median / 1000)
}

function medianOf(values: Float64Array): number {
  const sorted = values.slice().sort()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Rounds to whole seconds from 10 s, to tenths from 1 s, otherwise to milliseconds. */
function roundedSeconds(seconds: number): number {
  const parts = seconds >= 10 ? 1 : seconds >= 1 ? 10 : 1000
  return Math.max(Math.round(seconds * parts), 1) / parts
}
