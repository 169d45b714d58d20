/**
 * Queries that create or use an entity map (GS CIM 009, 5.5.14 since 1.9, 6.3.18). With `entityMap=true` a
 * response names a map in NGSILD-EntityMap. A later request with that header gets a page of the first query's
 * results, regardless of later creations and deletions. An expired map is created again. These functions wrap
 * a route, distributed or not: the route runs on a broker that records its results, or that returns the
 * entities of the map.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { pageOfIds } from '#broker/entities/page-cut.ts'
import type { EntityAggregates, TemporalPage, TemporalQuery } from '#broker/history/temporal-requests.ts'
import type { EntityQuery } from '#broker/state/entity-queries.ts'
import type { Broker, ReportLinked, TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { type Bodies, type HttpContext, headerOf } from '#http/request/body.ts'
import type { MapUse, SourceResults } from '#http/request/http-environment.ts'
import { pathSegment } from '#http/request/path-ids.ts'
import { type Parameters, pagingOf, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { addDuration, parseDuration } from '#ngsi-ld/values/duration.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ProfileRules } from '#ngsi-ld/values/profile.ts'

export const entityMapsPath = '/ngsi-ld/v1/entityMaps'
export const entityMapLocation = (id: string): string => `${entityMapsPath}/${pathSegment(id)}`

type Route = (c: HttpContext) => Response | Promise<Response>

export interface MappedQueryPorts {
  readonly broker: Broker
  readonly bodies: Bodies
  readonly maps: EntityMaps
  readonly clock: Clock
  readonly rules: ProfileRules
}

/** The map that one request created or uses. */
interface Use extends MapUse {
  readonly id: () => string | undefined
}

/** A request that names a map. */
interface MappedRequest {
  readonly parameters: Parameters
  readonly c: HttpContext
}

/** Whether an entity of a map may still exist; for entities held only by this gateway it is certain. */
const presence =
  ({ origins }: EntityMap, at: TenantBroker) =>
  (id: string): boolean =>
    origins.get(id)?.some((origin) => origin !== '@none') === true || at.retrieve(id) !== undefined

/**
 * The ids of a map from `offset` that fill a page of `limit` entities (GS CIM 009, 5.5.9.3). Entities deleted
 * since the map was created are skipped, and the next ones fill the page.
 */
function filledPage(
  ids: readonly string[],
  { offset, limit, isThere }: { offset: number; limit: number; isThere: (id: string) => boolean },
): readonly string[] {
  let end = offset
  for (let left = limit; left > 0 && end < ids.length && end - offset < limits.pageMax.value; end++)
    if (isThere(ids[end]!)) left--
  return ids.slice(offset, end)
}

/** The id of a map, given by its location or its id. */
export function mapIdOf(text: string | undefined): string | undefined {
  const [, segment] = /([^/]+)\/?$/.exec(text ?? '') ?? []
  if (segment === undefined) return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

export function createMappedQueries({ broker, bodies, maps, clock, rules }: MappedQueryPorts) {
  const newUse = (tenant: string, at: TenantBroker, parameters: Parameters): Use => {
    const lifetimeMs = lifetimeOf(parameters, clock.now())
    const lifetime = parameters.get('entityMapLifetime')
    let created: string | undefined
    return {
      mapParameters: lifetime === undefined ? {} : { entityMapLifetime: lifetime },
      id: () => created,
      through: (whole, results) =>
        recording(whole, (ids) => {
          if (created !== undefined) maps.delete(tenant, created)
          created = maps.create(
            tenant,
            { origins: originsOf(at, ids, results), linked: results.linked },
            lifetimeMs,
          ).id
        }),
    }
  }
  const existingUse = (map: EntityMap, at: TenantBroker, { parameters, c }: MappedRequest): Use => {
    const { limit, offset } = pagingOf(parameters)
    const one = c.req.param('id')
    // Histories outlive their entities, so pages of histories have no gaps.
    const isThere = c.req.url.includes('/temporal/') ? () => true : presence(map, at)
    const ids = one === undefined ? filledPage([...map.origins.keys()], { offset, limit, isThere }) : [one]
    const page = { total: map.origins.size, more: map.origins.size > offset + ids.length }
    return {
      page: { ids, sources: new Set(ids.flatMap((id) => map.origins.get(id) ?? [])) },
      id: () => map.id,
      through: (whole) => replaying(whole, ids, page),
    }
  }

  async function run(
    c: HttpContext,
    route: Route,
    { parameters, named }: { readonly parameters: Parameters; readonly named?: string | undefined },
  ): Promise<Response> {
    const tenant = headerOf(c, 'ngsild-tenant') ?? ''
    const at = broker.tenant(tenant)
    if (at === undefined) {
      c.env = { ...c.env, map: { through: (whole) => whole } }
      return route(c)
    }
    const id = mapIdOf(named)
    const map = id === undefined ? undefined : maps.get(tenant, id)
    const use = map === undefined ? newUse(tenant, at, parameters) : existingUse(map, at, { parameters, c })
    c.env = { ...c.env, map: use, broker: use.through(at, { copies: [], linked: new Map() }) }
    const answer = await route(c)
    const used = use.id()
    if (used === undefined || !answer.ok) return answer
    const headers = new Headers(answer.headers)
    headers.set('NGSILD-EntityMap', entityMapLocation(used))
    // The status of a query that created a map shows it; retrieving an entity keeps its status.
    const isMade = map === undefined && answer.status === 200 && c.req.param('id') === undefined
    const status = isMade ? rules.mapMadeStatus : answer.status
    return new Response(answer.body, { status, headers })
  }

  const around =
    (route: Route): Route =>
    (c) => {
      const named = headerOf(c, 'ngsild-entitymap')
      if (named === undefined && !c.req.url.includes('entityMap')) return route(c)
      const parameters = looseParameters(c)
      return isMapped(parameters, named) ? run(c, route, { parameters, named }) : route(c)
    }

  const aroundBody =
    (route: Route): Route =>
    async (c) => {
      const body = await bodies.raw(c)
      c.env = { ...c.env, body }
      const named = headerOf(c, 'ngsild-entitymap')
      const fromBody = body.includes('"entityMap') ? membersOf(body) : []
      const parameters = new Map([...looseParameters(c), ...fromBody])
      return isMapped(parameters, named) ? run(c, route, { parameters, named }) : route(c)
    }

  /** Runs a query that always creates a new map. */
  const createMap = async (c: HttpContext, route: Route): Promise<Response> => {
    if (c.req.method === 'GET') return run(c, route, { parameters: looseParameters(c) })
    const body = await bodies.raw(c)
    c.env = { ...c.env, body }
    return run(c, route, { parameters: new Map([...looseParameters(c), ...membersOf(body)]) })
  }

  return Object.freeze({ around, aroundBody, createMap })
}

export type MappedQueries = ReturnType<typeof createMappedQueries>

/** Whether a request creates or uses a map. @throws ngsi-ld.bad-request-data for a lifetime without a map */
function isMapped(parameters: Parameters, named: string | undefined): boolean {
  if (named !== undefined || truthOf(parameters, 'entityMap') === true) return true
  if (parameters.has('entityMapLifetime'))
    throw badRequestData('is allowed only with entityMap=true', 'entityMapLifetime')
  return false
}

/** The unchecked parameters; the route that runs afterwards checks them. */
function looseParameters({ req: { url } }: HttpContext): ReadonlyMap<string, string> {
  const start = url.indexOf('?')
  return new Map(start === -1 ? [] : new URLSearchParams(url.slice(start + 1)))
}

/** The map parameters of a query body; the route refuses an invalid body. */
function membersOf(body: Buffer): (readonly [string, string])[] {
  try {
    const query: unknown = JSON.parse(body.toString())
    if (!isObject(query)) return []
    return (['entityMap', 'entityMapLifetime'] as const).flatMap((name) => {
      const value = query[name]
      const isText = typeof value === 'string' || typeof value === 'boolean'
      return isText ? [[name, String(value)] as const] : []
    })
  } catch {
    return []
  }
}

/** The lifetime of a map, as requested up to a limit. */
function lifetimeOf(parameters: Parameters, nowMs: number): number {
  const text = parameters.get('entityMapLifetime')
  if (text === undefined) return limits.entityMapLifetimeMs.value
  const duration = parseDuration(text)
  if (duration === undefined) throw badRequestData('must be a duration such as PT10M', 'entityMapLifetime')
  return Math.min(addDuration(nowMs, duration, 1) - nowMs, limits.entityMapLifetimeMsMax.value)
}

function originsOf(
  at: TenantBroker,
  ids: readonly string[],
  { copies }: SourceResults,
): EntityMap['origins'] {
  const sources = new Map<string, string[]>()
  for (const { entity, source } of copies) sources.set(entity.id, [...(sources.get(entity.id) ?? []), source])
  return new Map(
    ids.map((id) => {
      const others = sources.get(id) ?? []
      return [id, others.length === 0 || at.retrieve(id) !== undefined ? ['@none', ...others] : others]
    }),
  )
}

/** Wraps a broker so that the next query reports all its results before it returns its page. */
function recording(broker: TenantBroker, found: (ids: readonly string[]) => void): TenantBroker {
  const max = limits.entityMapIdsMax.value
  const report = (ids: readonly string[], more: boolean): void => {
    if (more) {
      throw tooManyResults(`an entity map holds at most ${max} entities; narrow the query`)
    }
    found(ids)
  }
  let isReported = false
  const one = <Found>(id: string, view: Found | undefined): Found | undefined => {
    if (!isReported && view !== undefined) report([id], false)
    isReported = true
    return view
  }
  const { temporal } = broker
  const reportFound = async (search: EntityQuery, query: TemporalQuery): Promise<void> => {
    isReported = true
    const ids: string[] = []
    for (let more = true; more && ids.length <= max; ) {
      const part = { ...search, limit: limits.pageMax.value, offset: ids.length, count: false }
      // A limit of one instance per attribute suffices to know that the history exists.
      const page = await temporal.search(part, { ...query, limit: 1 })
      ids.push(...page.found.map(({ id }) => id))
      more = page.more
    }
    report(ids, ids.length > max)
  }
  return {
    ...broker,
    async query(query, linked) {
      isReported = true
      const { limit, offset, count } = query
      const ids = await idsOf(broker, query, linked, max)
      report(ids, ids.length > max)
      const views = pageOfIds(ids.slice(offset, offset + limit), broker.retrieve)
      return {
        ...views,
        more: ids.length > offset + views.taken,
        ...(count ? { count: ids.length } : {}),
      }
    },
    retrieve: (id) => one(id, broker.retrieve(id)),
    history: (id, query) => one(id, broker.history(id, query)),
    temporal: {
      ...temporal,
      aggregate: async (id, query) => one(id, await temporal.aggregate(id, query)),
      async search(search, query) {
        await reportFound(search, query)
        return temporal.search(search, query)
      },
      async searchAggregates(search, query) {
        await reportFound(search, query)
        return temporal.searchAggregates(search, query)
      },
    },
  }
}

/**
 * The ids of all results of a query, until there are more than `max`. Entities are read page by page and not
 * kept.
 */
async function idsOf(
  broker: TenantBroker,
  query: EntityQuery,
  linked: ReportLinked | undefined,
  max: number,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (let at: Pick<EntityQuery, 'offset' | 'after'> = { offset: 0, after: undefined }; ; ) {
    const limit = limits.pageMax.value
    const { entities, more, next, taken } = await broker.query(
      { ...query, ...at, limit, count: false },
      linked,
    )
    for (const { id } of entities) ids.push(id)
    if (!more || ids.length > max) return ids
    at =
      next === undefined
        ? { offset: at.offset + (taken ?? limit), after: undefined }
        : { offset: 0, after: next }
  }
}

/** Wraps a broker so that the next query returns these entities of a map. */
function replaying(
  broker: TenantBroker,
  ids: readonly string[],
  { total, more }: { total: number; more: boolean },
): TenantBroker {
  const { temporal } = broker
  const paged = <Found>(count: boolean, found: Found[]): TemporalPage<Found> => ({
    found,
    more,
    ...(count ? { count: total } : {}),
  })
  return {
    ...broker,
    query({ count }) {
      const page = pageOfIds(ids, broker.retrieve)
      return { ...page, more: more || page.more, ...(count ? { count: total } : {}) }
    },
    temporal: {
      ...temporal,
      search: async ({ count }, query) =>
        paged(
          count,
          ids.flatMap((id) => broker.history(id, query) ?? []),
        ),
      async searchAggregates({ count }, query) {
        const found: EntityAggregates[] = []
        for (const id of ids) {
          const sums = await temporal.aggregate(id, query)
          if (sums !== undefined) found.push(sums)
        }
        return paged(count, found)
      },
    },
  }
}
