/**
 * Statements of an uplink about its requests to another gateway, in the header `Selvedge-States`; an ordinary
 * broker accepts the same bodies and ignores the header. Pure.
 * - types: the types of each item are all types of its entity
 * - times: an instance without observedAt was written at its modifiedAt
 * - past: nothing in the body becomes current, and no type or scope of an existing entity changes
 */

import type { Context } from '#ngsi-ld/context/context.ts'
import { systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf, own } from '#ngsi-ld/values/json.ts'

export type Stated = 'types' | 'times' | 'past'
export const statedHeader = 'selvedge-states'

const known: ReadonlySet<string> = new Set<Stated>(['types', 'times', 'past'])

/** The statements in a header; unknown words of later versions are ignored. */
export const statedIn = (header: string | undefined): ReadonlySet<Stated> =>
  new Set((header ?? '').split(/[\s,]+/).filter((word): word is Stated => known.has(word)))

/** Write times (ms) of instances without observedAt, by `name` or `name datasetId`. */
export type WrittenTimes = ReadonlyMap<string, number>

/** The write times in the body of an entity. */
export function writtenTimes(json: unknown, context: Context): WrittenTimes {
  const times = new Map<string, number>()
  if (!isObject(json)) return times
  for (const key of Object.keys(json)) {
    const name = context.expand(key)
    if (name === '@context' || systemMembers.has(name)) continue
    for (const one of listOf<unknown>(json[key])) {
      if (!isObject(one) || own(one, 'observedAt') !== undefined) continue
      const [text, datasetId] = [own(one, 'modifiedAt'), own(one, 'datasetId')]
      const at = typeof text === 'string' ? dateTimeToMs(text) : undefined
      if (at !== undefined) times.set(typeof datasetId === 'string' ? `${name} ${datasetId}` : name, at)
    }
  }
  return times
}
