/**
 * Conditions on linked entities (GS CIM 009, 4.9) that other brokers may hold. A local entity may satisfy
 * them through a remote one, which no index knows. So all entities that satisfy the remaining conditions are
 * evaluated one by one, up to a limit. Unknown linked entities are reported, to be queried before the query
 * runs again.
 */
import { limits } from '#base/limits/limits.ts'
import { pageOfIds } from '#broker/entities/page-cut.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { ReportLinked, TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { withoutLinked } from '#ngsi-ld/query/query.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface KnownEntities {
  /** The local broker. */
  readonly here: Pick<TenantBroker, 'query' | 'retrieve'>
  /** Ids of entities that sources reported. */
  readonly reportedIds: Iterable<string>
  /** An entity merged with the parts that sources reported. */
  whole(id: string, own: EntityView | undefined): EntityView | undefined
  /** Called with unknown linked entities. */
  readonly linked: ReportLinked | undefined
  /** Called with local entities that satisfy all conditions except those on linked entities. */
  matched(id: string): void
}

/**
 * A page of matching entities: first the candidates from the local broker in order of creation, then the
 * others by id. @throws ngsi-ld.too-complex
 */
export async function linkedPage(query: EntityQuery, known: KnownEntities): Promise<QueryPage> {
  const { limit, offset, count, after: _, ...search } = query
  const { here, whole } = known
  const fits = compileSearch(search, (id, types) => {
    const own = here.retrieve(id)
    // A link without a type is not followed to other brokers (4.5.23).
    const found = own === undefined && types.length === 0 ? undefined : whole(id, own)
    if (found === undefined && types.length > 0) known.linked?.(id, types)
    return found
  })
  const ids = new Set<string>()
  // Only ids are kept, because entities may be large.
  const found: string[] = []
  const evaluate = (id: string, view: EntityView | undefined): void => {
    if (view !== undefined && fits(view.entity(), view.times())) found.push(id)
  }
  for await (const view of candidatesOf(query, here)) {
    ids.add(view.id)
    known.matched(view.id)
    evaluate(view.id, whole(view.id, view))
  }
  const others = [...known.reportedIds].filter((id) => !ids.has(id)).sort()
  for (const id of others) evaluate(id, whole(id, here.retrieve(id)))
  const page = pageOfIds(found.slice(offset, offset + limit), (id) => whole(id, here.retrieve(id)))
  return {
    ...page,
    more: found.length > offset + page.taken,
    ...(count ? { count: found.length } : {}),
  }
}

/** All local entities that satisfy the query without its conditions on linked entities. */
async function* candidatesOf(query: EntityQuery, here: KnownEntities['here']): AsyncGenerator<EntityView> {
  const most = limits.linkedCandidatesMax.value
  const candidates = {
    ...query,
    q: query.q && withoutLinked(query.q),
    limit: limits.pageMax.value,
    offset: 0,
    count: false,
  }
  let count = 0
  for (let after: string | undefined; ; ) {
    const { entities, more, next } = await here.query({ ...candidates, after })
    count += entities.length
    if (count > most)
      throw tooComplex(
        `more than ${most} entities would have to be checked for conditions on linked entities; narrow the query`,
      )
    yield* entities
    if (!more || next === undefined) return
    after = next
  }
}
