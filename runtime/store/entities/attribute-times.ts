/**
 * Creation and modification times of an entity's attribute instances, with the Via chain of each, as the text
 * stored beside its document. Instances with equal times are grouped, and times are relative to the creation
 * of the entity. Most attributes were created with the entity, so the text is short and more rows fit into a
 * page and into memory.
 */

import type { Stamps } from '#ngsi-ld/representation/representation.ts'

/** [created, modified, Via chain] per `name` or `name datasetId`, ms; the key '' is the entity itself. */
export type StoredTimes = Record<string, [created: number, modified: number, via?: string]>

/** Instances with equal times; ms since the creation of the entity. */
type Group = [created: number, modified: number, keys: string[], via?: string]

/** The stored text for an entity created at `created`. */
export function timesText(created: number, times: Readonly<Record<string, Stamps>>): string {
  const groups = new Map<string, Group>()
  for (const [key, [at, modified, via]] of Object.entries(times)) {
    const mark = via === undefined ? `${at} ${modified}` : `${at} ${modified} ${via}`
    const group = groups.get(mark)
    if (group !== undefined) group[2].push(key)
    else {
      const fresh: Group = [at - created, modified - created, [key]]
      if (via !== undefined) fresh[3] = via
      groups.set(mark, fresh)
    }
  }
  return JSON.stringify([...groups.values()])
}

/** The attribute times of a row, as a new object. */
export function storedTimes({
  created,
  sys,
}: {
  readonly created: number
  readonly sys: string
}): StoredTimes {
  const times: StoredTimes = {}
  for (const [at, modified, keys, via] of JSON.parse(sys) as readonly Group[]) {
    for (const key of keys)
      times[key] =
        via === undefined ? [created + at, created + modified] : [created + at, created + modified, via]
  }
  return times
}
