/**
 * Arithmetic on decimal numbers: 0.1 + 0.2 is 0.3. A double has 15 exact decimal digits; rounding to them
 * removes binary rounding errors, but no digits that a sensor measured.
 */
export function exactDecimal(result: number): number {
  return Number.isFinite(result) ? Number(result.toPrecision(15)) : result
}
