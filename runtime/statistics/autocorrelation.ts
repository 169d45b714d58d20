/** Autocovariances of a series, and the autoregression that they determine (Levinson and Durbin). Pure. */

/** The biased autocovariances at lags 0 to the largest one; the mean is subtracted. */
export function autocovariances(values: ArrayLike<number>, lagMax: number): Float64Array {
  const count = values.length
  let mean = 0
  for (let i = 0; i < count; i++) mean += values[i]! / count
  const centred = Float64Array.from(values, (value) => value - mean)
  const covariances = new Float64Array(lagMax + 1)
  for (let lag = 0; lag <= lagMax; lag++) {
    let sum = 0
    for (let i = lag; i < count; i++) sum += centred[i]! * centred[i - lag]!
    covariances[lag] = sum / count
  }
  return covariances
}

/** The coefficients of the autoregression of this order: the value one sample ago first. */
export function autoregressionOf(covariances: Float64Array, order: number): Float64Array {
  let coefficients: Float64Array = new Float64Array(order)
  let error = covariances[0]!
  for (let m = 0; m < order && error > 0; m++) {
    let rest = covariances[m + 1]!
    for (let i = 0; i < m; i++) rest -= coefficients[i]! * covariances[m - i]!
    const reflection = rest / error
    const next = coefficients.slice()
    next[m] = reflection
    for (let i = 0; i < m; i++) next[i] = coefficients[i]! - reflection * coefficients[m - 1 - i]!
    coefficients = next
    error *= 1 - reflection ** 2
  }
  return coefficients
}
