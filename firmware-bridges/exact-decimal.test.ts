/** Sums and products of decimals are the decimals people expect; what is not finite stays so. */
import { expect, it } from 'vitest'
import { exactDecimal } from './exact-decimal.ts'

it('removes what binary arithmetic added', () => {
  expect(exactDecimal(0.1 + 0.2)).toBe(0.3)
  expect(exactDecimal(3 * 0.1)).toBe(0.3)
  expect(exactDecimal(2 ** 53)).toBe(9007199254740990)
  expect(exactDecimal(21.37)).toBe(21.37)
  expect(exactDecimal(Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY)
  expect(exactDecimal(Number.NaN)).toBeNaN()
})
