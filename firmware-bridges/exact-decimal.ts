/**
 * Arithmetic on numbers that people wrote as decimals: 0.1 + 0.2 is 0.3. A double carries 15 decimal digits;
 * rounding to them removes what the binary sum or product added, and nothing a sensor measured.
 */
export function exactDecimal(result: number): number {
  return Number.isFinite(result) ? Number(result.toPrecision(15)) : result
}
