/**
 * Decides who applies pick and omit: the backend, or the ranking if it needs other members too (ids, or all
 * observed attributes). Then it requests all members and removes those that the client did not request.
 */

import { parseProjection } from '#ngsi-ld/representation/projection.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { isPartialBy, type RankedQuery } from './ranked-query.ts'

export interface Picking {
  /** Parameters for the backend. */
  readonly others: readonly string[]
  /** Whether its responses may lack attributes that entities have. */
  readonly isPartial: boolean
  /** Removes members that the client did not request. */
  readonly pick: (item: JsonObject) => void
}

/**
 * @param accept media types that the client accepts.
 * @throws ngsi-ld.bad-request-data for invalid names.
 */
export function pickingOf(
  { others, isPartial, format, terms }: RankedQuery,
  { accept = '' }: Readonly<Record<string, string>>,
  expand: (name: string) => string,
): Picking {
  const given = new URLSearchParams(others.join('&'))
  const unchanged = { others, isPartial, pick: () => {} }
  const [picked, omitted] = [given.get('pick'), given.get('omit')]
  const isPlain = !/[{}]/.test(`${picked}${omitted}`) && !given.has('attrs')
  if (!isPlain || (picked === null && omitted === null) || accept.includes('geo+json')) return unchanged
  const namesOf = (text: string | null, field: string): ReadonlySet<string> | undefined =>
    text === null ? undefined : parseProjection(text, expand, field).names
  const [pick, omit] = [namesOf(picked, 'pick'), namesOf(omitted, 'omit')]
  const hasIds = pick?.has('id') !== false && omit?.has('id') !== true
  const needsAll = terms.some(
    ({ path }) => path.names.length === 0 && path.criterion !== undefined && path.criterion !== 'proximity',
  )
  if (hasIds && !needsAll) return unchanged
  const remaining = others.filter((pair) => !/^(?:pick|omit)=/.test(pair))
  const isHidden = (key: string): boolean => {
    const name = expand(key)
    return key !== '@context' && (pick?.has(name) === false || omit?.has(name) === true)
  }
  return {
    others: remaining,
    isPartial: format === 'simplified' || isPartialBy(remaining),
    pick(item) {
      for (const key of Object.keys(item)) if (isHidden(key)) delete (item as Record<string, unknown>)[key]
    },
  }
}
