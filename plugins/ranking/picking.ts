/**
 * What the client picks or omits is left to the backend, unless the ranking needs more than it would show: ids, or all that was
 * observed. Then the backend is asked for all members, and what was not asked for is taken off when the values are known.
 */

import { parseProjection } from '#ngsi-ld/representation/projection.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { isPartialBy, type Question } from './ranked-query.ts'

export interface Picking {
  /** Parameters for the backend. */
  readonly others: readonly string[]
  /** Whether its answers may lack attributes that entities have. */
  readonly isPartial: boolean
  /** Takes off what the client does not want to see. */
  readonly pick: (item: JsonObject) => void
}

/**
 * @param accept media types that the client takes.
 * @throws ngsi-ld.bad-request-data for names that cannot be.
 */
export function pickingOf(
  { others, isPartial, format, terms }: Question,
  { accept = '' }: Readonly<Record<string, string>>,
  expand: (name: string) => string,
): Picking {
  const given = new URLSearchParams(others.join('&'))
  const asked = { others, isPartial, pick: () => {} }
  const [picked, omitted] = [given.get('pick'), given.get('omit')]
  const isPlain = !/[{}]/.test(`${picked}${omitted}`) && !given.has('attrs')
  if (!isPlain || (picked === null && omitted === null) || accept.includes('geo+json')) return asked
  const namesOf = (text: string | null, field: string): ReadonlySet<string> | undefined =>
    text === null ? undefined : parseProjection(text, expand, field).names
  const [pick, omit] = [namesOf(picked, 'pick'), namesOf(omitted, 'omit')]
  const hasIds = pick?.has('id') !== false && omit?.has('id') !== true
  const needsAll = terms.some(
    ({ path }) => path.names.length === 0 && path.criterion !== undefined && path.criterion !== 'proximity',
  )
  if (hasIds && !needsAll) return asked
  const left = others.filter((pair) => !/^(?:pick|omit)=/.test(pair))
  const isHidden = (key: string): boolean => {
    const name = expand(key)
    return key !== '@context' && (pick?.has(name) === false || omit?.has(name) === true)
  }
  return {
    others: left,
    isPartial: format === 'simplified' || isPartialBy(left),
    pick(item) {
      for (const key of Object.keys(item)) if (isHidden(key)) delete (item as Record<string, unknown>)[key]
    },
  }
}
