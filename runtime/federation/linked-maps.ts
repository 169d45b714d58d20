/**
 * Entity maps that sources made of the same query (GS CIM 009, 5.14.2 and 5.14.3): what becomes of a map becomes of
 * those linked to it. Each source is told where it lies and only where it offers to be; one that cannot be told makes a
 * warning and holds its map until that ends by itself.
 */
import type { Context } from '#ngsi-ld/context/context.ts'
import { type Operation, offers } from '#ngsi-ld/federation/registration-operations.ts'
import type { EntityMap } from './entity-maps.ts'
import type { Asker, Sources, Warning } from './sources.ts'
import { warningsOf } from './warnings.ts'

export interface MapChange {
  readonly operation: Extract<Operation, 'updateEntityMap' | 'deleteEntityMap'>
  /** The change itself; none for a deletion. */
  readonly body?: object
}

/** Tells the sources of linked maps of a change, all at once; answers what went wrong. */
export async function tellLinked(
  { sources, core }: { readonly sources: Sources; readonly core: Context },
  asker: Asker,
  { linked }: EntityMap,
  { operation, body }: MapChange,
): Promise<readonly Warning[]> {
  const told = [...linked].map(async ([id, location]) => {
    const registration = asker.registrations.get(id)?.registration
    const path = pathOf(location)
    if (path === undefined || registration === undefined || !offers(registration, operation)) return []
    const answer = await sources.ask(asker, registration, {
      method: body === undefined ? 'DELETE' : 'PATCH',
      path,
      headers: { accept: json, ...(body === undefined ? {} : { 'content-type': json }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      contexts: [core],
    })
    return warningsOf(registration, answer)
  })
  return (await Promise.all(told)).flat()
}

const json = 'application/json'

/** Where a source keeps a map, from what it called its location; under the name that the standard has now, where that was an id only. */
function pathOf(location: string): string | undefined {
  const [, kind = 'entityMaps', id] = /^(?:.*\/(entityMaps?)\/)?([^/?#\s]+)$/.exec(location) ?? []
  return id === undefined ? undefined : `/ngsi-ld/v1/${kind}/${id}`
}
