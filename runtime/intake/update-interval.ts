/**
 * The update interval of a stream, learnt from when its observations were made. It answers only where the stream
 * has a rhythm: a sensor that reports changes has none, and a wrong interval would make its quality wrong.
 */

const intervalsMin = 10
/** How far from the median an interval may be to count as regular, and how many have to. */
const tolerance = 0.2
const regularShare = 0.8

/**
 * @param times milliseconds, in any order; repeats do not count
 * @returns seconds, rounded to what jitter leaves; undefined with fewer than 10 intervals or without a rhythm
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

/** Whole seconds from 10 s on, tenths from 1 s on, else milliseconds. */
function roundedSeconds(seconds: number): number {
  const parts = seconds >= 10 ? 1 : seconds >= 1 ? 10 : 1000
  return Math.max(Math.round(seconds * parts), 1) / parts
}
