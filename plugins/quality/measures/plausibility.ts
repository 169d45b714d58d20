/**
 * Whether a value can be true: within the bounds of its sensor, or a text of the expected form. Pure. A bound
 * of 0 counts, and a number may be text such as `21.5^^xsd:double`.
 */
import { numberOf } from '#client/streams/stream-entities.ts'
import type { Json } from '#contract'
import { compilePattern, type Pattern } from '#ngsi-ld/values/pattern.ts'
import type { PlausibleRange } from './plausible-range.ts'

/** Judges a value; undefined if no range is known. */
export function isPlausible(value: Json, range: PlausibleRange | undefined): boolean | undefined {
  if (range === undefined) return undefined
  if (range.kind === 'text')
    return typeof value === 'string' && range.regexp !== undefined && wholePattern(range.regexp).test(value)
  const number = numberOf(value)
  if (number === undefined) return range.kind === 'any' ? undefined : false
  return (
    number >= (range.min ?? Number.NEGATIVE_INFINITY) && number <= (range.max ?? Number.POSITIVE_INFINITY)
  )
}

/**
 * A pattern that matches whole texts only.
 * @throws GatewayError ngsi-ld.bad-request-data, ngsi-ld.too-complex if RE2 cannot compile it.
 */
export const wholePattern = (regexp: string): Pattern => compilePattern(`^(?:${regexp})$`, 'qoi:regexp')
