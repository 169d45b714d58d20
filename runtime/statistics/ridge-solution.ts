/** Solves the normal equations of a ridge regression by the Cholesky factor. Pure. */
import { choleskyOf } from './cholesky.ts'

/**
 * The coefficients for a Gram matrix and its right side; the penalty grows until the system can be solved.
 */
export function solveRidge(
  gram: readonly Float64Array[],
  right: Float64Array,
  penalty: number,
): Float64Array {
  const size = right.length
  for (let added = Math.max(penalty, Number.MIN_VALUE); Number.isFinite(added); added *= 100) {
    const factor = choleskyOf(gram.map((row, i) => row.map((one, j) => (i === j ? one + added : one))))
    if (factor !== undefined) return solved(factor, right)
  }
  return new Float64Array(size)
}

/** Forward and backward substitution. */
function solved(factor: readonly Float64Array[], right: Float64Array): Float64Array {
  const size = right.length
  const solution = right.slice()
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < i; j++) solution[i]! -= factor[i]![j]! * solution[j]!
    solution[i]! /= factor[i]![i]!
  }
  for (let i = size - 1; i >= 0; i--) {
    for (let j = i + 1; j < size; j++) solution[i]! -= factor[j]![i]! * solution[j]!
    solution[i]! /= factor[i]![i]!
  }
  return solution
}
