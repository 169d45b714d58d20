/**
 * Entity maps as resources (GS CIM 009, 6.22, since 1.9 6.34 and 6.35). A query can create a map and return
 * it in place of entities; maps can be retrieved, extended and deleted. `mapped-queries.ts` creates and uses
 * maps in queries.
 */

import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { changeLinkedMaps, type MapChange } from '#federation/linked-maps.ts'
import type { Sources } from '#federation/sources.ts'
import { queryParameters } from '#http/entities/entity-reads.ts'
import { bodyQueryParameters } from '#http/entities/entity-routes.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import { anyParameter, refuseLoop, withWarnings } from '#http/request/distributed-request.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import { idOf } from '#http/request/path-ids.ts'
import type { ApiRequest, RequestHead } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { entityMapLocation, entityMapsPath, type MappedQueries, mapIdOf } from './mapped-queries.ts'

export interface EntityMapPorts extends ApiPorts {
  readonly sources: Sources
  readonly contexts: { readonly core: Context }
  readonly maps: EntityMaps
  readonly clock: Clock
  /** The pseudonym of this gateway in Via, per tenant. */
  readonly alias: (tenant: string) => string
}

type Route = (c: HttpContext) => Response | Promise<Response>

/** Queries that can create a map; each supports maps already. */
export interface MappedRoutes {
  readonly query: Route
  readonly queryByBody: Route
  readonly queryHistories: Route
  readonly queryHistoriesByBody: Route
}

const members = new Set(['id', 'type', '@context', 'expiresAt', 'entityMap', 'linkedMaps'])
const changeParameters = new Set(['local'])
const retrieveParameters = new Set(['local', 'options'])

/** Paths of entity maps; the standard has used both names. */
export function createEntityMapTable(ports: EntityMapPorts, mapped: MappedQueries, queries: MappedRoutes) {
  const { requests, answers, maps, clock, alias, sources, contexts } = ports

  /** Forwards a change to the sources of linked maps and returns the response. */
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
    return withWarnings(
      answers.noContent(request),
      await changeLinkedMaps({ sources, core: contexts.core }, requester, map, change),
    )
  }
  /** The map to change. @throws ngsi-ld.not-found, peer.loop */
  function mapFor(c: HttpContext, { tenant }: Pick<ApiRequest, 'tenant'>): EntityMap {
    refuseLoop(c, alias(tenant))
    const id = idOf(c)
    const map = maps.get(tenant, id)
    if (map === undefined) throw notFound(`no entity map ${id}`)
    return map
  }

  const routes = {
    async GET(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, retrieveParameters)
      // A map has no system attributes, so sysAttrs has no effect.
      optionsOf(request.parameters, ['sysAttrs'])
      const id = idOf(c)
      const map = maps.get(request.tenant, id)
      if (map === undefined) throw notFound(`no entity map ${id}`)
      return answers.entity(request, JSON.stringify(render(map)), answers.contextFor(request))
    },
    async PATCH(c: HttpContext): Promise<Response> {
      const request = await requests.body(c, { known: changeParameters })
      const broker = await request.enter()
      if (!isObject(request.body)) throw badRequestData('must be a JSON object', 'body')
      const map = mapFor(c, request)
      const unknown = Object.keys(request.body).find((member) => !members.has(member))
      if (unknown !== undefined) throw badRequestData('is not a member of an entity map', unknown)
      // Only expiresAt can change; other members are ignored (5.14.2.4).
      const { expiresAt } = request.body
      if (expiresAt === undefined) return answers.noContent(request)
      const until = typeof expiresAt === 'string' ? dateTimeToMs(expiresAt) : undefined
      if (until === undefined) throw badRequestData('must be a DateTime', 'expiresAt')
      if (until <= clock.now()) throw badRequestData('must be in the future', 'expiresAt')
      maps.extend(request.tenant, map.id, until)
      const change = { operation: 'updateEntityMap', body: { expiresAt } } as const
      return forwardChange(c, { request, broker, map }, change)
    },
    async DELETE(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, changeParameters)
      const map = mapFor(c, request)
      maps.delete(request.tenant, map.id)
      return forwardChange(c, { request, broker: request.broker, map }, { operation: 'deleteEntityMap' })
    },
  }
  /**
   * 201 with the map of a query in place of its results. Without `known`, the query's route checks the
   * parameters.
   */
  const create =
    (query: Route, known: ReadonlySet<string> = anyParameter): Route =>
    async (c) => {
      const request = await requests.read(c, known)
      if (truthOf(request.parameters, 'entityMap') === false)
        throw badRequestData('false contradicts a request for a map', 'entityMap')
      const answer = await mapped.createMap(c, query)
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

/** A map holds all results of a query and thus has no next page. */
const withoutPageKey = (names: ReadonlySet<string>): ReadonlySet<string> =>
  names.difference(new Set(['pageKey']))

function render({ id, origins, linked, expiresAt }: EntityMap) {
  return {
    id,
    type: 'EntityMap',
    expiresAt: msToDateTime(expiresAt),
    entityMap: Object.fromEntries(origins),
    linkedMaps: Object.fromEntries(linked),
  }
}
