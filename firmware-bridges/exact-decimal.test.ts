/** Sums and products of decimals are exact decimals; infinite values and NaN are unchanged. */
import { expect, it } from 'vitest'
import { exactDecimal } from './exact-decimal.ts'

it('removes binary rounding errors', () => {
  expect(exactDecimal(0.1 + 0.2)).toBe(0.3)
  expect(exactDecimal(3 * 0.1)).toBe(0.3)
  expect(exactDecimal(2 ** 53)).toBe(9007199254740990)
  expect(exactDecimal(21.37)).toBe(21.37)
  expect(exactDecimal(Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY)
  expect(exactDecimal(Number.NaN)).toBeNaN()
})
