/**
 * Decimal sensor values as scaled integers: 21.37 is 2137 at scale 2. A value is scaled only when the
 * conversion back is bit-exact; every other value stays a float64.
 */

/** Highest scale tried; sensors rarely report more decimals. */
export const scaleMax = 6
const powers = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000] as const
const integerMax = 2 ** 46

/**
 * True when scaling and unscaling return the identical value and the integer is small enough for exact
 * arithmetic.
 */
export function isExact(value: number, scale: number): boolean {
  const integer = toScaled(value, scale)
  return Math.abs(integer) < integerMax && fromScaled(integer, scale) === value && !Object.is(value, -0)
}

/** The smallest scale, from `from` upwards, at which `value` is an exact integer; -1 when there is none. */
export function scaleOf(value: number, from = 0): number {
  for (let scale = from; scale <= scaleMax; scale++) if (isExact(value, scale)) return scale
  return -1
}

export function toScaled(value: number, scale: number): number {
  return Math.round(value * powers[scale]!)
}

export function fromScaled(integer: number, scale: number): number {
  return integer / powers[scale]!
}
