/** The adjusted Rand index against values of scikit-learn 1.9 (`adjusted_rand_score`). */
import { expect, it } from 'vitest'
import { adjustedRandIndex } from './agreement.ts'

it.each([
  [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], 0.24242424242424243],
  [[0, 1, 2, 0, 1, 2, 0], ['a', 'b', 'a', 'b', 'a', 'b', 'b'], -0.23529411764705882],
  [[1, 1, 0], ['x', 'x', 'y'], 1],
])('the adjusted Rand index of %j and %j is %d', (found, known, expected) => {
  expect(adjustedRandIndex(found, known)).toBeCloseTo(expected, 12)
})
