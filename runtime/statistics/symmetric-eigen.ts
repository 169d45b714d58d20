/**
 * Eigenvalues and eigenvectors of a symmetric matrix by cyclic Jacobi rotations (Golub and Van Loan, Matrix
 * Computations, 8.5): accurate for small eigenvalues too, and fast enough for the few hundred features of a
 * model. Pure.
 */

export interface Eigenpair {
  readonly value: number
  /** Its length is 1, its sign arbitrary. */
  readonly vector: Float64Array
}

/** Quadratic convergence needs 6 to 10 rounds; more mean that the numbers cannot get more precise. */
const roundsMax = 30

/** The pairs by descending magnitude of the eigenvalue; equal ones in the order of the columns. */
export function eigenpairsOf(symmetric: readonly Float64Array[]): readonly Eigenpair[] {
  const size = symmetric.length
  const matrix = symmetric.map((row) => Float64Array.from(row))
  /** Row i converges to the eigenvector of `matrix[i][i]`. */
  const vectors = symmetric.map((_, i) => Float64Array.from({ length: size }, (_, j) => Number(i === j)))
  for (let round = 0; round < roundsMax && !isDiagonal(matrix); round++) sweep([matrix, vectors])
  return vectors
    .map((vector, i) => ({ value: matrix[i]![i]!, vector }))
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
}

function isDiagonal(matrix: readonly Float64Array[]): boolean {
  let diagonal = 0
  let others = 0
  matrix.forEach((row, i) => {
    row.forEach((value, j) => {
      if (i === j) diagonal += value ** 2
      else others += value ** 2
    })
  })
  return others <= diagonal * Number.EPSILON ** 2
}

/** The matrix, and the eigenvectors so far as rows. */
type Pair = readonly [matrix: readonly Float64Array[], vectors: readonly Float64Array[]]

/** Rotates every pair of rows and columns once. */
function sweep(pair: Pair): void {
  const [matrix] = pair
  for (let p = 0; p < matrix.length - 1; p++) for (let q = p + 1; q < matrix.length; q++) rotate(pair, p, q)
}

/** One Jacobi rotation: makes the element at (p, q) zero. */
function rotate([matrix, vectors]: Pair, p: number, q: number): void {
  const between = matrix[p]![q]!
  if (between === 0) return
  const slope = (matrix[q]![q]! - matrix[p]![p]!) / (2 * between)
  const tangent = (slope < 0 ? -1 : 1) / (Math.abs(slope) + Math.hypot(slope, 1))
  const cosine = 1 / Math.hypot(tangent, 1)
  const sine = tangent * cosine
  for (const row of matrix) {
    const [left, right] = [row[p]!, row[q]!]
    row[p] = cosine * left - sine * right
    row[q] = sine * left + cosine * right
  }
  for (const rows of [matrix, vectors]) {
    const [upper, lower] = [rows[p]!, rows[q]!]
    for (let k = 0; k < upper.length; k++) {
      const [above, below] = [upper[k]!, lower[k]!]
      upper[k] = cosine * above - sine * below
      lower[k] = sine * above + cosine * below
    }
  }
  matrix[p]![q] = 0
  matrix[q]![p] = 0
}
