/**
 * Entity maps that sources made of the same query (GS CIM 009, 5.14.2 and 5.14.3): what becomes of a map becomes of
 * those linked to it. Each source is warnings where it lies and only where it offers to be; one that cannot be warnings makes a
 * warning and holds its map until that ends by itself.
 */
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Operation, offers } from '#ngsi-ld/federation/registration-operations.ts'
import type { EntityMap } from './entity-maps.ts'
import type { Requester, Sources, Warning } from './sources.ts'
import { warningsOf } from './warnings.ts'

export interface MapChange {
  readonly operation: Extract<Operation, 'updateEntityMap' | 'deleteEntityMap'>
  /** The change itself; none for a deletion. */
  readonly body?: object
}

/** Tells the sources of linked maps of a change, all at once; answers what went wrong. */
export async function changeLinkedMaps(
  { sources, core }: { readonly sources: Sources; readonly core: Context },
  requester: Requester,
  { linked }: EntityMap,
  { operation, body }: MapChange,
): Promise<readonly Warning[]> {
  const warnings = [...linked].map(async ([id, location]) => {
    const registration = requester.registrations.get(id)?.registration
    const path = pathOf(location)
    if (path === undefined || registration === undefined || !offers(registration, operation)) return []
    const answer = await sources.send(requester, registration, {
      method: body === undefined ? 'DELETE' : 'PATCH',
      path,
      headers: { accept: json, ...(body === undefined ? {} : { 'content-type': json }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      contexts: [core],
    })
    return warningsOf(registration, answer)
  })
  return (await Promise.all(warnings)).flat()
}

const json = 'application/json'

/** Where a source keeps a map, from what it called its location; under the name that the standard has now, where that was an id only. */
function pathOf(location: string): string | undefined {
  const [, kind = 'entityMaps', id] = /^(?:.*\/(entityMaps?)\/)?([^/?#\s]+)$/.exec(location) ?? []
  return id === undefined ? undefined : `/ngsi-ld/v1/${kind}/${id}`
}
