/**
 * The rated value of a metric by reward and punishment, as the platform's quality analyser defines it. Pure.
 *
 * The definition: R begins at 1 with a window of five successes. An update with alpha (1 good, 0 bad) sets
 * R := R - 2 (a / 4 - (a + alpha) / 5), where a counts the successes among the newest four. The sum of these
 * steps is 0.4, 0.3, 0.2 and 0.1 for the newest four updates. They are the whole state. R lies in 0..1.
 */

/** The last four updates: one bit each, 1 if good, the newest lowest. `unrated` before the first update. */
export type Rating = number

export const unrated: Rating = -1
const allGood = 0b1111

export function rate(rating: Rating, isGood: boolean): Rating {
  const before = rating === unrated ? allGood : rating
  return ((before << 1) | (isGood ? 1 : 0)) & 0b1111
}

/** Punishes a number of times. */
export function punish(rating: Rating, times: number): Rating {
  if (times <= 0) return rating
  let punished = rating
  for (let i = 0; i < Math.min(times, 4); i++) punished = rate(punished, false)
  return punished
}

/** The rated value, 0..1 in steps of 0.1; undefined before the first update. */
export const ratedValue = (rating: Rating): number | undefined =>
  rating === unrated ? undefined : values[rating]

const values = Array.from({ length: 16 }, (_, bits) => {
  const tenths = [4, 3, 2, 1].reduce((sum, weight, i) => sum + weight * ((bits >> i) & 1), 0)
  return tenths / 10
})
