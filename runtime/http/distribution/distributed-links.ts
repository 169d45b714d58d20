/**
 * Linked entities that other brokers hold (GS CIM 009, 4.5.23): a route says which entities its own link to and that are
 * not known; sources are asked for these by id and type before it runs again, once for each. Each run follows one link
 * further, so that there are as many as joinLevel allows; all that are asked for are no more than an answer may join.
 */
import { limits } from '#base/limits/limits.ts'
import type { Linked } from '#broker/tenant/tenant-broker.ts'
import type { Further } from '#federation/reading.ts'
import { inParts } from '#federation/requests.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { tooManyJoined } from '#ngsi-ld/query/join.ts'

/** What one run of a route misses of what was not asked for before. */
interface Missing {
  /** @throws ngsi-ld.too-complex */
  readonly linked: Linked
  /** How these are asked for it, all of which counts as asked for then. */
  asking(registrations: readonly Registration[], context: Pick<Context, 'compact'>): readonly Further[]
}

/** Of one request, run by run. */
export function createLinks(): () => Missing {
  const asked = new Set<string>()
  return () => {
    const missing = new Map<string, readonly string[]>()
    return {
      linked(id, types) {
        if (asked.has(id)) return
        missing.set(id, types)
        if (asked.size + missing.size > limits.joinedEntitiesMax.value) throw tooManyJoined()
      },
      asking(registrations, { compact }) {
        for (const id of missing.keys()) asked.add(id)
        return inParts([...missing.keys()]).map((ids) => {
          const names = [...new Set(ids.flatMap((id) => missing.get(id)!))]
          const interests = names.map((name) => ({ ids, types: { kind: 'type', name } as const }))
          const parameters = { id: ids.join(','), type: names.map(compact).join(',') }
          return { question: { interests, parameters, looksAt: [] }, registrations }
        })
      },
    }
  }
}
