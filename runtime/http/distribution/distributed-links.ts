/**
 * Linked entities held by other brokers (GS CIM 009, 4.5.23). A route reports the unknown entities that its
 * results link to; sources are queried for them once, by id and type, before the route runs again. Each run
 * follows one link further, so joinLevel bounds the runs. The number of queried entities is bounded by the
 * limit of a join.
 */
import { limits } from '#base/limits/limits.ts'
import type { ReportLinked } from '#broker/tenant/tenant-broker.ts'
import type { FollowUpQuery } from '#federation/reading.ts'
import { splitIds } from '#federation/requests.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { tooManyJoined } from '#ngsi-ld/query/join.ts'

/** Linked entities that one run of a route missed, and that were not queried before. */
interface Missing {
  /** @throws ngsi-ld.too-complex */
  readonly linked: ReportLinked
  /** The queries for the missing entities; these count as known from now on. */
  queriesFor(
    registrations: readonly Registration[],
    context: Pick<Context, 'compact'>,
  ): readonly FollowUpQuery[]
}

/** Creates the tracking for one request; call it once per run. */
export function createLinks(): () => Missing {
  const known = new Set<string>()
  return () => {
    const missing = new Map<string, readonly string[]>()
    return {
      linked(id, types) {
        if (known.has(id)) return
        missing.set(id, types)
        if (known.size + missing.size > limits.joinedEntitiesMax.value) throw tooManyJoined()
      },
      queriesFor(registrations, { compact }) {
        for (const id of missing.keys()) known.add(id)
        return splitIds([...missing.keys()]).map((ids) => {
          const names = [...new Set(ids.flatMap((id) => missing.get(id)!))]
          const interests = names.map((name) => ({ ids, types: { kind: 'type', name } as const }))
          const parameters = { id: ids.join(','), type: names.map(compact).join(',') }
          return { clientQuery: { interests, parameters, looksAt: [] }, registrations }
        })
      },
    }
  }
}
