/** The width of the interval that a virtual sensor states with each prediction. */
import { describe, expect, it } from 'vitest'
import { intervalAround, intervalModelOf, quantileOf, type ValidationCase } from './intervals.ts'

/** Residuals of 0 to 1, evenly, of predictions that differ only in sign. */
const block = (count: number, scale = 1): ValidationCase[] =>
  Array.from({ length: count }, (_, i) => ({
    predicted: i % 2,
    spread: 0,
    residual: (scale * (i + 1)) / count,
  }))
const point = { predicted: 0.5, spread: 0, missing: 0 }

describe('the interval of a prediction', () => {
  it('contains nine of ten errors of the validation', () => {
    const { halfWidth } = intervalAround(intervalModelOf([block(1000)], [1]), point)
    expect(halfWidth).toBeCloseTo(0.9, 1)
  })

  it('is as wide as the worst block needs if there are few cases', () => {
    const few = intervalModelOf([block(100), block(100, 2)], [1])
    const many = intervalModelOf([block(1000), block(1000, 2)], [1])
    expect(intervalAround(few, point).halfWidth).toBeCloseTo(1.8, 1)
    expect(intervalAround(many, point).halfWidth).toBeCloseTo(1.35, 1)
  })

  it('grows by the factor of the missing sources, at most by the last one', () => {
    const model = intervalModelOf([block(1000)], [1, 2, 3])
    const width = (missing: number): number => intervalAround(model, { ...point, missing }).halfWidth
    expect(width(1) / width(0)).toBeCloseTo(2)
    expect(width(9) / width(0)).toBeCloseTo(3)
  })
})

it.each([
  [0.9, 9],
  [0.5, 5],
  [1, 9],
])('the quantile %d of 1 to 9 is %d', (share, expected) => {
  expect(quantileOf([9, 8, 7, 6, 5, 4, 3, 2, 1], share)).toBe(expected)
})
