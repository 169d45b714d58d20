/**
 * Entity maps that sources created for the same query (GS CIM 009, 5.14.2 and 5.14.3): a change of a map is
 * forwarded to its linked maps. A source is called only if it offers the operation. A source that cannot be
 * reached causes a warning and keeps its map until it expires.
 */
import type { Context } from '#ngsi-ld/context/context.ts'
import { offers, type SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import type { EntityMap } from './entity-maps.ts'
import type { Requester, Sources, Warning } from './sources.ts'
import { warningsOf } from './warnings.ts'

export interface MapChange {
  readonly operation: Extract<SourceOperation, 'updateEntityMap' | 'deleteEntityMap'>
  /** The change; absent for a deletion. */
  readonly body?: object
}

/** Forwards a change to the sources of linked maps in parallel; returns warnings about failures. */
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

/** The path of a source's map, from its location; under the current name if the location is only an id. */
function pathOf(location: string): string | undefined {
  const [, kind = 'entityMaps', id] = /^(?:.*\/(entityMaps?)\/)?([^/?#\s]+)$/.exec(location) ?? []
  return id === undefined ? undefined : `/ngsi-ld/v1/${kind}/${id}`
}
