/**
 * The Cholesky factor of a covariance; linear equations and the log density of a normal distribution by
 * it. The inverse and the determinant are never computed: with them, densities of small covariances
 * underflow. Pure functions.
 */

/**
 * The lower triangle L with L·Lᵀ = the matrix, row by row; undefined if the matrix is singular or
 * indefinite to the precision of the numbers.
 */
export function choleskyOf(matrix: readonly Float64Array[]): readonly Float64Array[] | undefined {
  const size = matrix.length
  const factor = matrix.map(() => new Float64Array(size))
  for (let i = 0; i < size; i++) {
    for (let j = 0; j <= i; j++) {
      let rest = matrix[i]![j]!
      for (let k = 0; k < j; k++) rest -= factor[i]![k]! * factor[j]![k]!
      if (i !== j) factor[i]![j] = rest / factor[j]![j]!
      else if (rest > size * Number.EPSILON * matrix[i]![i]!) factor[i]![i] = Math.sqrt(rest)
      else return undefined
    }
  }
  return factor
}

/** Solves matrix · x = right, by the Cholesky factor of the matrix. */
export function solveByCholesky(factor: readonly Float64Array[], right: ArrayLike<number>): Float64Array {
  const size = factor.length
  const solved = new Float64Array(size)
  for (let i = 0; i < size; i++) {
    let rest = right[i]!
    for (let j = 0; j < i; j++) rest -= factor[i]![j]! * solved[j]!
    solved[i] = rest / factor[i]![i]!
  }
  for (let i = size - 1; i >= 0; i--) {
    let rest = solved[i]!
    for (let j = i + 1; j < size; j++) rest -= factor[j]![i]! * solved[j]!
    solved[i] = rest / factor[i]![i]!
  }
  return solved
}

/** The log density at a point, of the normal distribution with this mean and Cholesky factor. */
export function logDensity(point: Float64Array, mean: Float64Array, factor: readonly Float64Array[]): number {
  const size = mean.length
  const solved = new Float64Array(size)
  let squares = 0
  let logRoot = 0
  for (let i = 0; i < size; i++) {
    const row = factor[i]!
    let rest = point[i]! - mean[i]!
    for (let j = 0; j < i; j++) rest -= row[j]! * solved[j]!
    solved[i] = rest / row[i]!
    squares += solved[i]! ** 2
    logRoot += Math.log(row[i]!)
  }
  return -0.5 * (squares + size * Math.log(2 * Math.PI)) - logRoot
}
