/**
 * Conditions on linked entities (GS CIM 009, 4.9) where these may be elsewhere. Who is held here may fulfil them by one that
 * is not, and no index knows that: all that fulfil the rest are judged one by one, up to a bound. What is missed for
 * that is told, to be asked for; then the query runs again.
 */
import { limits } from '#base/limits.ts'
import type { EntityQuery, EntityView, Linked, QueryPage, TenantBroker } from '#broker/types.ts'
import { tooComplex } from '#ngsi-ld/problem.ts'
import { withoutLinked } from '#ngsi-ld/query.ts'
import { compileSearch } from '#ngsi-ld/search.ts'

export interface KnownEntities {
  /** What is held here. */
  readonly here: Pick<TenantBroker, 'query' | 'retrieve'>
  /** Ids of what sources told. */
  readonly told: Iterable<string>
  /** An entity with what sources told of it. */
  whole(id: string, own: EntityView | undefined): EntityView | undefined
  /** Is told of entities that are missed. */
  readonly linked: Linked | undefined
  /** Is told who is held here and fulfils all but what is linked. */
  matched(id: string): void
}

/** A page of those that fulfil a query: first who may by what is held here, in order of creation, then by id. @throws ngsi-ld.too-complex */
export function linkedPage(query: EntityQuery, known: KnownEntities): QueryPage {
  const { limit, offset, count, after: _, ...search } = query
  const { here, whole } = known
  const fits = compileSearch(search, (id, types) => {
    const own = here.retrieve(id)
    // Only whoever says of which type it is links to what others hold (4.5.23).
    const found = own === undefined && types.length === 0 ? undefined : whole(id, own)
    if (found === undefined && types.length > 0) known.linked?.(id, types)
    return found
  })
  const own = candidatesOf(query, here)
  for (const { id } of own) known.matched(id)
  const ids = new Set(own.map(({ id }) => id))
  const others = [...known.told].filter((id) => !ids.has(id)).sort()
  const all = [
    ...own.map((view) => whole(view.id, view)),
    ...others.map((id) => whole(id, here.retrieve(id))),
  ]
  const found = all.filter((view) => view !== undefined && fits(view.entity(), view.times())) as EntityView[]
  return {
    entities: found.slice(offset, offset + limit),
    more: found.length > offset + limit,
    ...(count ? { count: found.length } : {}),
  }
}

/** All that are held here and may fulfil a query, whatever they are linked to. */
function candidatesOf(query: EntityQuery, here: KnownEntities['here']): readonly EntityView[] {
  const most = limits.linkedCandidatesMax.value
  const asked = {
    ...query,
    q: query.q && withoutLinked(query.q),
    limit: limits.pageMax.value,
    offset: 0,
    count: false,
  }
  const all: EntityView[] = []
  for (let after: string | undefined; ; ) {
    const { entities, more, next } = here.query({ ...asked, after })
    all.push(...entities)
    if (all.length > most)
      throw tooComplex(`more than ${most} entities may fulfil conditions on what others may hold`)
    if (!more || next === undefined) return all
    after = next
  }
}
