/**
 * When and through whom the attribute instances of an entity were created and modified, as the text that lies beside its
 * document. Those with the same times stand together, and all of them count from the creation of the entity: most
 * attributes came with it, and a short text leaves room for more rows in a page and in memory.
 */

import type { Stamps } from '#ngsi-ld/representation/representation.ts'

/** [created, modified, through whom] per `name` or `name datasetId`, ms; '' stands for the entity itself. */
export type StoredTimes = Record<string, [created: number, modified: number, heard?: string]>

/** Instances with the same times; ms since the creation of the entity. */
type Group = [created: number, modified: number, keys: string[], heard?: string]

/** The text for an entity that was created then. */
export function timesText(created: number, times: Readonly<Record<string, Stamps>>): string {
  const groups = new Map<string, Group>()
  for (const [key, [at, modified, heard]] of Object.entries(times)) {
    const mark = heard === undefined ? `${at} ${modified}` : `${at} ${modified} ${heard}`
    const group = groups.get(mark)
    if (group !== undefined) group[2].push(key)
    else {
      const fresh: Group = [at - created, modified - created, [key]]
      if (heard !== undefined) fresh[3] = heard
      groups.set(mark, fresh)
    }
  }
  return JSON.stringify([...groups.values()])
}

/** The times of attributes that a row holds, in an object of its own. */
export function storedTimes({
  created,
  sys,
}: {
  readonly created: number
  readonly sys: string
}): StoredTimes {
  const times: StoredTimes = {}
  for (const [at, modified, keys, heard] of JSON.parse(sys) as readonly Group[]) {
    for (const key of keys)
      times[key] =
        heard === undefined ? [created + at, created + modified] : [created + at, created + modified, heard]
  }
  return times
}
