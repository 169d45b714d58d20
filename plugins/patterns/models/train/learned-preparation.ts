/**
 * Learns from windows how their segment means are prepared: levels, scales and weights of the streams, and
 * principal axes. All of it is linear, so that the model carries one vector of means, one of scales, and one
 * matrix. Pure.
 */
import { segmentsPerStream } from '#plugins/patterns/models/features.ts'
import type { Preparation } from '#plugins/patterns/models/preparation.ts'
import { eigenpairsOf } from '#statistics/symmetric-eigen.ts'

export interface PreparationChoices {
  /**
   * Whether a stream's own mean is subtracted from each window, so that only the course of the values counts.
   * Sensors that drift, or count with an offset, then do not hide patterns.
   */
  readonly levels: 'kept' | 'removed'
  /**
   * `regularity` weights each stream by the share of its variance that the mean course of all windows
   * explains: streams without a repeated course add only noise. It needs windows that start at the same
   * phase, such as days.
   */
  readonly weights: 'equal' | 'regularity'
  /** Principal axes are added until they explain this share of the variance. */
  readonly explained: number
}

/** More axes describe noise, at the few hundred windows that a site has. */
const axesMax = 8

/** @param windows segment means of at least one window, stream after stream. */
export function learnPreparation(
  windows: readonly Float64Array[],
  { levels, weights, explained }: PreparationChoices,
): Preparation {
  const means = meanOf(windows)
  const courses = levels === 'kept' ? windows : windows.map(withoutLevels)
  const scales = scalesOf(courses, meanOf(courses), levels)
  const weighting = weights === 'equal' ? means.map(() => 1) : regularitiesOf(courses, scales)
  const centre = meanOf(courses)
  const points = courses.map((course) =>
    course.map((value, i) => ((value - centre[i]!) / scales[i]!) * weighting[i]!),
  )
  const axes = principalAxes(points, explained).map((axis) => {
    const weighted = axis.map((value, i) => value * weighting[i]!)
    return levels === 'kept' ? weighted : withoutLevels(weighted)
  })
  return { means, scales, axes }
}

export function meanOf(points: readonly Float64Array[]): Float64Array {
  const mean = new Float64Array(points[0]!.length)
  for (const point of points) for (let i = 0; i < mean.length; i++) mean[i]! += point[i]! / points.length
  return mean
}

/** Subtracts the mean of each stream's segments. It is a symmetric projection, so it applies to axes too. */
function withoutLevels(window: Float64Array): Float64Array {
  const course = Float64Array.from(window)
  for (let start = 0; start < course.length; start += segmentsPerStream) {
    const own = course.subarray(start, start + segmentsPerStream)
    const level = own.reduce((sum, value) => sum + value, 0) / own.length
    for (let i = 0; i < own.length; i++) own[i]! -= level
  }
  return course
}

/** The standard deviation of each stream over all windows and segments; 1 for a constant stream. */
function scalesOf(
  courses: readonly Float64Array[],
  centre: Float64Array,
  levels: PreparationChoices['levels'],
): Float64Array {
  const scales = new Float64Array(centre.length)
  for (let start = 0; start < scales.length; start += segmentsPerStream) {
    const end = start + segmentsPerStream
    const level =
      levels === 'kept' ? centre.subarray(start, end).reduce((a, b) => a + b, 0) / segmentsPerStream : 0
    let squares = 0
    for (const course of courses) for (let i = start; i < end; i++) squares += (course[i]! - level) ** 2
    const deviation = Math.sqrt(squares / courses.length / segmentsPerStream)
    scales.fill(deviation > Number.EPSILON * Math.abs(level) ? deviation : 1, start, end)
  }
  return scales
}

/** Relative to the most regular stream; all 1 if no stream varies. */
function regularitiesOf(courses: readonly Float64Array[], scales: Float64Array): Float64Array {
  const shares = new Float64Array(scales.length)
  const meanCourse = withoutLevels(meanOf(courses)).map((value, i) => value / scales[i]!)
  for (let start = 0; start < shares.length; start += segmentsPerStream) {
    const own = meanCourse.subarray(start, start + segmentsPerStream)
    const share = own.reduce((sum, value) => sum + value ** 2, 0) / segmentsPerStream
    shares.fill(share, start, start + segmentsPerStream)
  }
  const most = shares.reduce((a, b) => Math.max(a, b))
  return most === 0 ? shares.fill(1) : shares.map((share) => share / most)
}

/** Directions of the largest variance, as rows. @param points with mean 0 */
function principalAxes(points: readonly Float64Array[], explained: number): readonly Float64Array[] {
  const pairs = eigenpairsOf(covarianceOf(points))
  const total = pairs.reduce((sum, { value }) => sum + value, 0)
  let sum = 0
  const enough = pairs.findIndex(({ value }) => {
    sum += value
    return sum >= explained * total
  })
  return pairs.slice(0, Math.min(axesMax, enough === -1 ? axesMax : enough + 1)).map(({ vector }) => vector)
}

/** @param points with mean 0 */
function covarianceOf(points: readonly Float64Array[]): readonly Float64Array[] {
  const size = points[0]!.length
  const covariance = Array.from({ length: size }, () => new Float64Array(size))
  for (const point of points) {
    for (let i = 0; i < size; i++) {
      const row = covariance[i]!
      const share = point[i]! / points.length
      for (let j = 0; j <= i; j++) row[j]! += share * point[j]!
    }
  }
  for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) covariance[j]![i] = covariance[i]![j]!
  return covariance
}
