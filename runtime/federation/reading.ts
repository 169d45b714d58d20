/**
 * Distributed consumption (GS CIM 009, 4.3.6 and 5.7): queries the sources that may hold relevant entities
 * and returns a broker that answers from local and remote data. If a source fails, the result lacks its data
 * or uses its last known copy, with a warning.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { OwnInventory } from '#broker/entities/inventory.ts'
import { pageOfIds } from '#broker/entities/page-cut.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { ReportLinked, TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { attributeNames, instancesOf, parseEntity } from '#ngsi-ld/entity/entity.ts'
import { isExpired, withoutExpired } from '#ngsi-ld/entity/expiry.ts'
import { type EntityCopy, mergeCopies, timesIn } from '#ngsi-ld/federation/distribution.ts'
import { modeOf, type Registration } from '#ngsi-ld/federation/registration.ts'
import { claimOf, holdsDataset, isOfThePresent } from '#ngsi-ld/federation/registration-match.ts'
import { hasLinked } from '#ngsi-ld/query/query.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { entitiesOf, type ReaderPorts } from './entity-pages.ts'
import { linkedPage } from './linked-conditions.ts'
import { type ClientQuery, evaluatesConditions, type ReadRequest, requestFor } from './requests.ts'
import type { SourceRequest } from './source-form.ts'
import type { Warning } from './sources.ts'
import { invalidAnswer } from './warnings.ts'

/** A remote entity and its source. */
export interface SourcedCopy extends EntityCopy {
  /** Id of the registration. */
  readonly source: string
}

export interface GatheredCopies {
  readonly broker: TenantBroker
  readonly copies: readonly SourcedCopy[]
  /** Locations of the entity maps that sources created, by registration id. */
  readonly linked: ReadonlyMap<string, string>
  /**
   * Entities found at some sources, that other sources did not report because they evaluated the conditions
   * on their own part.
   */
  uncertain(): readonly IncompleteSource[]
  readonly warnings: readonly Warning[]
}

/** Entities of which a source may hold unreported parts. */
export interface IncompleteSource {
  readonly registration: Registration
  readonly ids: readonly string[]
}

/** A follow-up query and its sources. */
export interface FollowUpQuery {
  readonly clientQuery: ClientQuery
  readonly registrations: readonly Registration[]
}

export function createReader({ clock, ...ports }: ReaderPorts & { readonly clock: Clock }) {
  async function copiesOf(
    read: ReadRequest,
    registration: Registration,
    request: SourceRequest,
  ): Promise<{ source: string; copies: SourcedCopy[]; warnings: Warning[]; map: string | undefined }> {
    const { entities, context, warnings, map } = await entitiesOf(ports, read, registration, request)
    const copies = entities.flatMap((json): SourcedCopy[] => {
      try {
        const { '@context': _, ...body } = json
        const parsed = parseEntity(body, context)
        // Expired instances do not count, however new they are (4.5.5.3).
        const current = withoutExpired(parsed, clock.now()).entity
        const claim = claimOf(registration, current.id, listOf<string>(current.type))
        if (claim === undefined || isExpired(current, clock.now())) return []
        const mine = attributeNames(current).filter((name) => claim === 'all' || claim.has(name))
        const { id, type, scope, expiresAt } = current
        const entity = {
          id,
          type,
          ...(scope === undefined ? {} : { scope }),
          ...(expiresAt === undefined ? {} : { expiresAt }),
          ...Object.fromEntries(
            mine.flatMap((name) => {
              const own = instancesOf(current, name).filter((one) => holdsDataset(registration, one))
              return own.length === 0 ? [] : [[name, own.length === 1 ? own[0] : own]]
            }),
          ),
        }
        const source = registration.id
        return [{ source, mode: modeOf(registration), claim, entity, times: timesIn(body, context) }]
      } catch (error) {
        warnings.push(invalidAnswer(registration, error))
        return []
      }
    })
    return { source: registration.id, copies, warnings, map }
  }

  /** Queries all sources and merges their entities. */
  async function gather(
    read: ReadRequest,
    clientQuery: ClientQuery,
    one: string | undefined,
  ): Promise<GatheredCopies> {
    const queries = read.registrations.filter(isOfThePresent).flatMap((registration) => {
      const request = requestFor(registration, clientQuery, one, read)
      return request === undefined ? [] : [{ registration, answer: copiesOf(read, registration, request) }]
    })
    const answers = await Promise.all(queries.map(({ answer }) => answer))
    const combined = together(
      read.broker,
      answers.flatMap(({ copies }) => copies),
    )
    return {
      ...combined,
      linked: linkedMaps(answers),
      uncertain() {
        if (clientQuery.splits === false) return []
        const found = combined.found()
        return queries.flatMap(({ registration }, index) => {
          if (!evaluatesConditions(registration, clientQuery)) return []
          const ids = [...found.difference(new Set(answers[index]!.copies.map(({ entity }) => entity.id)))]
          return ids.length === 0 ? [] : [{ registration, ids }]
        })
      },
      warnings: answers.flatMap(({ warnings }) => warnings),
    }
  }

  /** Adds the results of follow-up queries, without creating entity maps; undefined if there are none. */
  async function further(
    { mapParameters: _, ...read }: ReadRequest,
    known: GatheredCopies,
    queries: readonly FollowUpQuery[],
  ): Promise<GatheredCopies | undefined> {
    if (queries.length === 0) return undefined
    const answers = await Promise.all(
      queries.map(({ clientQuery, registrations }) => {
        const [id = ''] = clientQuery.interests[0]?.ids ?? []
        // An id with a comma is a part of its own and can only be retrieved.
        return gather({ ...read, registrations }, clientQuery, id.includes(',') ? id : undefined)
      }),
    )
    const copies = [...known.copies, ...answers.flatMap((one) => one.copies)]
    const warnings = [...known.warnings, ...answers.flatMap((one) => one.warnings)]
    return { ...known, ...together(read.broker, copies), warnings }
  }

  return Object.freeze({ gather, further })
}

/** Merges copies with the local broker; `found` returns the ids of all copies and of local matches. */
function together(
  broker: TenantBroker,
  copies: readonly SourcedCopy[],
): Pick<GatheredCopies, 'broker' | 'copies'> & { found(): ReadonlySet<string> } {
  const byId = new Map<string, EntityCopy[]>()
  for (const copy of copies) {
    const known = byId.get(copy.entity.id)
    if (known === undefined) byId.set(copy.entity.id, [copy])
    else known.push(copy)
  }
  const seen = new Set<string>()
  return { broker: overlay(broker, byId, seen), copies, found: () => new Set([...seen, ...byId.keys()]) }
}

/** Locations of the entity maps that sources created. */
export function linkedMaps(
  answers: readonly { readonly source: string; readonly map: string | undefined }[],
): ReadonlyMap<string, string> {
  return new Map(answers.flatMap(({ source, map }) => (map === undefined ? [] : [[source, map]])))
}

/** Wraps a broker so that it also returns remote entities; `matched` records the local entities it finds. */
function overlay(
  broker: TenantBroker,
  byId: ReadonlyMap<string, readonly EntityCopy[]>,
  matched: Set<string>,
): TenantBroker {
  const merged = (id: string, own: EntityView | undefined): EntityView | undefined => {
    const others = byId.get(id)
    if (others === undefined) return own
    const local: EntityCopy[] =
      own === undefined ? [] : [{ mode: 'local', claim: 'all', entity: own.entity(), times: own.times() }]
    const { entity, times } = mergeCopies([...local, ...others])
    const text = JSON.stringify(entity)
    return {
      id,
      text: () => text,
      entity: () => JSON.parse(text) as typeof entity,
      times: () => times,
      version: () => Number.parseInt(hash('sha1', text).slice(0, 12), 16),
    }
  }
  const isReported = (name: string): boolean =>
    [...byId.values()].some((copies) => copies.some(({ entity }) => hasName(entity, name)))
  return Object.freeze({
    ...broker,
    inventory: withKnownNames(broker.inventory, isReported),
    retrieve: (id) => merged(id, broker.retrieve(id)),
    async query(query: EntityQuery, linked?: ReportLinked): Promise<QueryPage> {
      if (query.q !== undefined && hasLinked(query.q))
        return linkedPage(query, {
          here: broker,
          reportedIds: byId.keys(),
          whole: merged,
          linked,
          matched: (id) => void matched.add(id),
        })
      const { limit, offset, count, ...search } = query
      const matches = compileSearch(search)
      const fits = (view: EntityView): boolean => matches(view.entity(), view.times())
      // Only ids are kept of entities before the page and of remote ones, because entities may be large.
      const seen = new Set<string>()
      const held: string[] = []
      const visit = (view: EntityView): void => {
        seen.add(view.id)
        matched.add(view.id)
        const whole = merged(view.id, view)!
        if (whole === view || fits(whole)) held.push(view.id)
      }
      const first = await firstOf(broker, query, { visit, missing: () => offset + limit - held.length })
      const others = [...byId.keys()].sort().filter((id) => {
        if (seen.has(id)) return false
        const own = broker.retrieve(id)
        // A local entity that matches without remote parts follows on a later page.
        return (own === undefined || !fits(own)) && fits(merged(id, own)!)
      })
      const all = first.more ? held : [...held, ...others]
      const page = pageOfIds(all.slice(offset, offset + limit), (id) => merged(id, broker.retrieve(id)))
      const total = (first.count ?? held.length) + others.length
      return {
        ...page,
        more: first.more || all.length > offset + page.taken,
        ...(count ? { count: total } : {}),
      }
    },
  } satisfies TenantBroker)
}

const hasName = (entity: EntityCopy['entity'], name: string): boolean =>
  Object.hasOwn(entity, name) || listOf(entity.type).includes(name)

/** Adds the names in remote entities to the names that a broker knows. */
export const withKnownNames = (
  inventory: OwnInventory,
  isReported: (name: string) => boolean,
): OwnInventory => ({
  ...inventory,
  isKnown: (name) => inventory.isKnown(name) || isReported(name),
})

/** Visits local matches until enough are found; returns whether there are more, and the total. */
async function firstOf(
  broker: TenantBroker,
  query: EntityQuery,
  { visit, missing }: { readonly visit: (view: EntityView) => void; readonly missing: () => number },
): Promise<Pick<QueryPage, 'more' | 'count'>> {
  const most = limits.pageMax.value
  let page = await broker.query({ ...query, limit: Math.min(missing(), most), offset: 0, count: true })
  const { count } = page
  for (;;) {
    for (const view of page.entities) visit(view)
    const { more, next: after } = page
    if (!more || missing() <= 0 || after === undefined)
      return count === undefined ? { more } : { more, count }
    page = await broker.query({ ...query, limit: Math.min(missing(), most), offset: 0, after, count: false })
  }
}
