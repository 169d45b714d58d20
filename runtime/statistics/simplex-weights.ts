/**
 * Weights of several predictions of the same values: none is negative, their sum is 1, and the weighted
 * sum has the least squared error. A small penalty spreads the weight over predictions that are about as
 * good. Pure.
 */

const roundsMax = 2000

/** `errors[i]` are the errors of prediction i, in the same order of values for all. */
export function simplexWeights(errors: readonly Float64Array[], penalty: number): Float64Array {
  const products = errors.map((a) => Float64Array.from(errors, (b) => meanProduct(a, b)))
  const least = Math.min(...products.map((row, i) => row[i]!))
  products.forEach((row, i) => {
    row[i]! += penalty * least
  })
  const weights = new Float64Array(errors.length).fill(1 / errors.length)
  const slopes = products.map((row) => row.reduce((sum, value, j) => sum + value * weights[j]!, 0))
  for (let round = 0; round < roundsMax; round++) {
    let to = 0
    let from = -1
    slopes.forEach((slope, i) => {
      if (slope < slopes[to]!) to = i
      if (weights[i]! > 0 && (from < 0 || slope > slopes[from]!)) from = i
    })
    const gain = slopes[from]! - slopes[to]!
    if (!(gain > 1e-9 * least)) break
    // Moves weight between two predictions, as far as the error falls.
    const curvature = products[to]![to]! + products[from]![from]! - 2 * products[to]![from]!
    const step = curvature > 0 ? Math.min(weights[from]!, gain / curvature) : weights[from]!
    weights[to]! += step
    weights[from] = step === weights[from]! ? 0 : weights[from]! - step
    slopes.forEach((_, i) => {
      slopes[i]! += step * (products[i]![to]! - products[i]![from]!)
    })
  }
  return weights
}

function meanProduct(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum / Math.max(1, a.length)
}
