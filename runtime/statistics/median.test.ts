/** The median of a few values. */
import { expect, it } from 'vitest'
import { medianOf } from './median.ts'

it.each([
  [[3], 3],
  [[9, 1, 5], 5],
  [[9, 1, 5, 2], 3.5],
  [[], Number.NaN],
])('of %j is %d', (values, expected) => expect(medianOf(Float64Array.from(values))).toBe(expected))

it('leaves the values in their order', () => {
  const values = Float64Array.of(2, 1)
  medianOf(values)
  expect([...values]).toEqual([2, 1])
})
