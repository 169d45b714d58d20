/**
 * Means, and sums of products around the means, of the columns of a table. They are all that a linear
 * regression needs, for any subset of the columns: a regression without some of the columns is one small
 * solve. Plain numbers, so that they can be stored as JSON. Pure.
 */

export interface Moments {
  readonly rows: number
  readonly means: readonly number[]
  /** Symmetric: the sum over the rows of (column i - its mean) * (column j - its mean). */
  readonly products: readonly (readonly number[])[]
}

/** Every value is finite: the caller omits rows with a missing value. */
export function momentsOf(rows: readonly Float64Array[]): Moments {
  const width = rows[0]?.length ?? 0
  const means = new Float64Array(width)
  for (const row of rows) for (let i = 0; i < width; i++) means[i]! += row[i]! / rows.length
  const products = Array.from({ length: width }, () => new Float64Array(width))
  const centred = new Float64Array(width)
  for (const row of rows) {
    for (let i = 0; i < width; i++) centred[i] = row[i]! - means[i]!
    for (let i = 0; i < width; i++) {
      const [sums, factor] = [products[i]!, centred[i]!]
      for (let j = 0; j <= i; j++) sums[j]! += factor * centred[j]!
    }
  }
  for (let i = 0; i < width; i++) for (let j = i + 1; j < width; j++) products[i]![j] = products[j]![i]!
  return { rows: rows.length, means: [...means], products: products.map((sums) => [...sums]) }
}
