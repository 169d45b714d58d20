/** The newest values of a stream, in a list that is reused: a full list is not allocated again. */

/** Adds a value; the oldest one leaves a list of `most`. */
export function addNewest(newest: number[], value: number, most: number): void {
  if (newest.length < most) {
    newest.push(value)
    return
  }
  for (let i = 1; i < most; i++) newest[i - 1] = newest[i]!
  newest[most - 1] = value
}
