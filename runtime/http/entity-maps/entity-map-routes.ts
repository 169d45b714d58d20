/**
 * Entity maps as resources (GS CIM 009, 6.22, since 1.9 6.34 and 6.35): made by a query that answers with the map instead
 * of entities, shown, given another end, deleted. How queries make maps and go by them is in `mapped-queries.ts`.
 */
import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { changeLinkedMaps, type MapChange } from '#federation/linked-maps.ts'
import type { Sources } from '#federation/sources.ts'
import { queryParameters } from '#http/entities/entity-reads.ts'
import { bodyQueryParameters } from '#http/entities/entity-routes.ts'
import type { HttpContext } from '#http/request/body.ts'
import { anyParameter, refuseLoop, warned } from '#http/request/distributed-request.ts'
import { optionsOf, truthOf } from '#http/request/negotiate.ts'
import { idOf } from '#http/request/path-ids.ts'
import type { ApiRequest, RequestHead, RequestReader } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { entityMapLocation, entityMapsPath, type MappedQueries, mapIdOf } from './mapped-queries.ts'

export interface EntityMapPorts {
  readonly sources: Sources
  readonly contexts: { readonly core: Context }
  readonly requests: RequestReader
  readonly answers: Answers
  readonly maps: EntityMaps
  readonly clock: Clock
  /** What this gateway calls itself in Via, in a tenant. */
  readonly alias: (tenant: string) => string
}

type Route = (c: HttpContext) => Response | Promise<Response>

/** The queries that a map can be made of, each with its map already. */
export interface MappedRoutes {
  readonly query: Route
  readonly queryByBody: Route
  readonly queryHistories: Route
  readonly queryHistoriesByBody: Route
}

const members = new Set(['id', 'type', '@context', 'expiresAt', 'entityMap', 'linkedMaps'])
const changeParameters = new Set(['local'])
const retrieveParameters = new Set(['local', 'options'])

/** Paths of entity maps; the standard has had both names. */
export function createEntityMapTable(ports: EntityMapPorts, mapped: MappedQueries, queries: MappedRoutes) {
  const { requests, answers, maps } = ports
  const routes = {
    async GET(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, retrieveParameters)
      // A map has no system members that could be shown or not.
      optionsOf(request.parameters, ['sysAttrs'])
      const id = idOf(c)
      const map = maps.get(request.tenant, id)
      if (map === undefined) throw notFound(`no entity map ${id}`)
      return answers.entity(request, JSON.stringify(render(map)), answers.contextFor(request))
    },
    ...createMapChanges(ports),
  }
  /** 201 with the map of a query, in the place of what it found. Without `known` parameters its route says which there are. */
  const create =
    (query: Route, known: ReadonlySet<string> = anyParameter): Route =>
    async (c) => {
      const request = await requests.read(c, known)
      if (truthOf(request.parameters, 'entityMap') === false)
        throw badRequestData('false contradicts that a map is asked for', 'entityMap')
      const answer = await mapped.making(c, query)
      const id = mapIdOf(answer.headers.get('NGSILD-EntityMap') ?? undefined)
      const map = id === undefined ? undefined : maps.get(request.tenant, id)
      if (!answer.ok || map === undefined) return answer
      const shown = answers.entity(request, JSON.stringify(render(map)), answers.contextFor(request))
      const headers = new Headers(shown.headers)
      headers.set('NGSILD-EntityMap', entityMapLocation(map.id))
      headers.set('Location', entityMapLocation(map.id))
      for (const name of ['NGSILD-Warning', 'NGSILD-Results-Count']) {
        const value = answer.headers.get(name)
        if (value !== null) headers.set(name, value)
      }
      return new Response(shown.body, { status: 201, headers })
    }
  return {
    [entityMapsPath]: {
      GET: create(queries.query, withoutPageKey(queryParameters)),
      POST: create(queries.queryByBody, withoutPageKey(bodyQueryParameters)),
    },
    '/ngsi-ld/v1/temporal/entityMaps': {
      GET: create(queries.queryHistories),
      POST: create(queries.queryHistoriesByBody),
    },
    '/ngsi-ld/v1/entityMap/:id': routes,
    [`${entityMapsPath}/:id`]: routes,
  }
}

/** A map has all that a query found, and so no next page. */
const withoutPageKey = (names: ReadonlySet<string>): ReadonlySet<string> =>
  names.difference(new Set(['pageKey']))

/** What a client may do to a map that is there: give it another end, or delete it. */
function createMapChanges({ requests, answers, maps, clock, alias, sources, contexts }: EntityMapPorts) {
  /** The answer to a change, once the sources of linked maps were told of it. */
  async function forwardChange(
    c: HttpContext,
    {
      request,
      broker,
      map,
    }: { request: RequestHead; broker: Pick<TenantBroker, 'registrations'>; map: EntityMap },
    change: MapChange,
  ): Promise<Response> {
    if (map.linked.size === 0 || truthOf(request.parameters, 'local') === true)
      return answers.noContent(request)
    const { tenant } = request
    const { registrations } = broker
    const { headers } = c.env.incoming
    const requester = { registrations, tenant, alias: alias(tenant), headers }
    return warned(
      answers.noContent(request),
      await changeLinkedMaps({ sources, core: contexts.core }, requester, map, change),
    )
  }
  /** The map that a change is of. @throws ngsi-ld.not-found, peer.loop */
  function meant(c: HttpContext, { tenant }: Pick<ApiRequest, 'tenant'>): EntityMap {
    refuseLoop(c, alias(tenant))
    const id = idOf(c)
    const map = maps.get(tenant, id)
    if (map === undefined) throw notFound(`no entity map ${id}`)
    return map
  }

  return {
    async PATCH(c: HttpContext): Promise<Response> {
      const request = await requests.body(c, { known: changeParameters })
      const broker = await request.enter()
      if (!isObject(request.body)) throw badRequestData('must be a JSON object', 'body')
      const map = meant(c, request)
      const unknown = Object.keys(request.body).find((member) => !members.has(member))
      if (unknown !== undefined) throw badRequestData('is no member of an entity map', unknown)
      // What else a map has is told by it, and ignored here (5.14.2.4).
      const { expiresAt } = request.body
      if (expiresAt === undefined) return answers.noContent(request)
      const until = typeof expiresAt === 'string' ? dateTimeToMs(expiresAt) : undefined
      if (until === undefined) throw badRequestData('must be a DateTime', 'expiresAt')
      if (until <= clock.now()) throw badRequestData('lies in the past', 'expiresAt')
      maps.extend(request.tenant, map.id, until)
      const change = { operation: 'updateEntityMap', body: { expiresAt } } as const
      return forwardChange(c, { request, broker, map }, change)
    },
    async DELETE(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, changeParameters)
      const map = meant(c, request)
      maps.delete(request.tenant, map.id)
      return forwardChange(c, { request, broker: request.broker, map }, { operation: 'deleteEntityMap' })
    },
  }
}

function render({ id, origins, linked, expiresAt }: EntityMap) {
  return {
    id,
    type: 'EntityMap',
    expiresAt: msToDateTime(expiresAt),
    entityMap: Object.fromEntries(origins),
    linkedMaps: Object.fromEntries(linked),
  }
}
