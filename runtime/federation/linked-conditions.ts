/**
 * Conditions on linked entities (GS CIM 009, 4.9) where these may be elsewhere. Who is held here may fulfil them by one that
 * is not, and no index knows that: all that fulfil the rest are judged one by one, up to a bound. What is missed for
 * that is told, to be asked for; then the query runs again.
 */
import { limits } from '#base/limits/limits.ts'
import { pageOfIds } from '#broker/entities/page-cut.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { Linked, TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { withoutLinked } from '#ngsi-ld/query/query.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface KnownEntities {
  /** What is held here. */
  readonly here: Pick<TenantBroker, 'query' | 'retrieve'>
  /** Ids of what sources told. */
  readonly reportedIds: Iterable<string>
  /** An entity with what sources told of it. */
  whole(id: string, own: EntityView | undefined): EntityView | undefined
  /** Is told of entities that are missed. */
  readonly linked: Linked | undefined
  /** Is told who is held here and fulfils all but what is linked. */
  matched(id: string): void
}

/** A page of those that fulfil a query: first who may by what is held here, in order of creation, then by id. @throws ngsi-ld.too-complex */
export async function linkedPage(query: EntityQuery, known: KnownEntities): Promise<QueryPage> {
  const { limit, offset, count, after: _, ...search } = query
  const { here, whole } = known
  const fits = compileSearch(search, (id, types) => {
    const own = here.retrieve(id)
    // Only whoever says of which type it is links to what others hold (4.5.23).
    const found = own === undefined && types.length === 0 ? undefined : whole(id, own)
    if (found === undefined && types.length > 0) known.linked?.(id, types)
    return found
  })
  const ids = new Set<string>()
  // Ids alone are kept: entities may be large.
  const found: string[] = []
  const judge = (id: string, view: EntityView | undefined): void => {
    if (view !== undefined && fits(view.entity(), view.times())) found.push(id)
  }
  for await (const view of candidatesOf(query, here)) {
    ids.add(view.id)
    known.matched(view.id)
    judge(view.id, whole(view.id, view))
  }
  const others = [...known.reportedIds].filter((id) => !ids.has(id)).sort()
  for (const id of others) judge(id, whole(id, here.retrieve(id)))
  const page = pageOfIds(found.slice(offset, offset + limit), (id) => whole(id, here.retrieve(id)))
  return {
    ...page,
    more: found.length > offset + page.taken,
    ...(count ? { count: found.length } : {}),
  }
}

/** All that are held here and may fulfil a query, whatever they are linked to. */
async function* candidatesOf(query: EntityQuery, here: KnownEntities['here']): AsyncGenerator<EntityView> {
  const most = limits.linkedCandidatesMax.value
  const asked = {
    ...query,
    q: query.q && withoutLinked(query.q),
    limit: limits.pageMax.value,
    offset: 0,
    count: false,
  }
  let count = 0
  for (let after: string | undefined; ; ) {
    const { entities, more, next } = await here.query({ ...asked, after })
    count += entities.length
    if (count > most)
      throw tooComplex(`more than ${most} entities may fulfil conditions on what others may hold`)
    yield* entities
    if (!more || next === undefined) return
    after = next
  }
}
