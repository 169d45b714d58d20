/**
 * Entity maps as resources (GS CIM 009, 6.22, since 1.9 6.34 and 6.35): made by a query that answers with the map instead
 * of entities, shown, given another end, deleted. How queries make maps and go by them is in `mapped-queries.ts`.
 */
import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { type MapChange, tellLinked } from '#federation/linked-maps.ts'
import type { Sources } from '#federation/sources.ts'
import { queryParameters } from '#http/entities/entity-reads.ts'
import { bodyQueryParameters } from '#http/entities/entity-routes.ts'
import type { HttpContext } from '#http/request/body.ts'
import { anyParameter, refuseLoop, warned } from '#http/request/distributed-request.ts'
import { optionsOf, truthOf } from '#http/request/negotiate.ts'
import { idOf } from '#http/request/path-ids.ts'
import type { Ask, AskHead, Asks } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { entityMapLocation, entityMapsPath, type MappedQueries, mapIdOf } from './mapped-queries.ts'

export interface EntityMapPorts {
  readonly sources: Sources
  readonly contexts: { readonly core: Context }
  readonly asks: Asks
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
  const { asks, answers, maps } = ports
  const routes = {
    async GET(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      // A map has no system members that could be shown or not.
      optionsOf(ask.parameters, ['sysAttrs'])
      const id = idOf(c)
      const map = maps.get(ask.tenant, id)
      if (map === undefined) throw notFound(`no entity map ${id}`)
      return answers.entity(ask, JSON.stringify(render(map)), answers.contextFor(ask))
    },
    ...createMapChanges(ports),
  }
  /** 201 with the map of a query, in the place of what it found. Without `known` parameters its route says which there are. */
  const create =
    (query: Route, known: ReadonlySet<string> = anyParameter): Route =>
    async (c) => {
      const ask = await asks.read(c, known)
      if (truthOf(ask.parameters, 'entityMap') === false)
        throw badRequestData('false contradicts that a map is asked for', 'entityMap')
      const answer = await mapped.making(c, query)
      const id = mapIdOf(answer.headers.get('NGSILD-EntityMap') ?? undefined)
      const map = id === undefined ? undefined : maps.get(ask.tenant, id)
      if (!answer.ok || map === undefined) return answer
      const shown = answers.entity(ask, JSON.stringify(render(map)), answers.contextFor(ask))
      const headers = new Headers(shown.headers)
      headers.set('NGSILD-EntityMap', entityMapLocation(map.id))
      headers.set('Location', entityMapLocation(map.id))
      for (const name of ['NGSILD-Warning', 'NGSILD-Results-Count']) {
        const told = answer.headers.get(name)
        if (told !== null) headers.set(name, told)
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
function createMapChanges({ asks, answers, maps, clock, alias, sources, contexts }: EntityMapPorts) {
  /** The answer to a change, once the sources of linked maps were told of it. */
  async function toldOn(
    c: HttpContext,
    { ask, broker, map }: { ask: AskHead; broker: Pick<TenantBroker, 'registrations'>; map: EntityMap },
    change: MapChange,
  ): Promise<Response> {
    if (map.linked.size === 0 || truthOf(ask.parameters, 'local') === true) return answers.noContent(ask)
    const { tenant } = ask
    const { registrations } = broker
    const { headers } = c.env.incoming
    const asker = { registrations, tenant, alias: alias(tenant), headers }
    return warned(
      answers.noContent(ask),
      await tellLinked({ sources, core: contexts.core }, asker, map, change),
    )
  }
  /** The map that a change is of. @throws ngsi-ld.not-found, peer.loop */
  function meant(c: HttpContext, { tenant }: Pick<Ask, 'tenant'>): EntityMap {
    refuseLoop(c, alias(tenant))
    const id = idOf(c)
    const map = maps.get(tenant, id)
    if (map === undefined) throw notFound(`no entity map ${id}`)
    return map
  }

  return {
    async PATCH(c: HttpContext): Promise<Response> {
      const ask = await asks.body(c, { known: changeParameters })
      const broker = await ask.enter()
      if (!isObject(ask.body)) throw badRequestData('must be a JSON object', 'body')
      const map = meant(c, ask)
      const unknown = Object.keys(ask.body).find((member) => !members.has(member))
      if (unknown !== undefined) throw badRequestData('is no member of an entity map', unknown)
      // What else a map has is told by it, and ignored here (5.14.2.4).
      const { expiresAt } = ask.body
      if (expiresAt === undefined) return answers.noContent(ask)
      const until = typeof expiresAt === 'string' ? dateTimeToMs(expiresAt) : undefined
      if (until === undefined) throw badRequestData('must be a DateTime', 'expiresAt')
      if (until <= clock.now()) throw badRequestData('lies in the past', 'expiresAt')
      maps.extend(ask.tenant, map.id, until)
      const change = { operation: 'updateEntityMap', body: { expiresAt } } as const
      return toldOn(c, { ask, broker, map }, change)
    },
    async DELETE(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, changeParameters)
      const map = meant(c, ask)
      maps.delete(ask.tenant, map.id)
      return toldOn(c, { ask, broker: ask.broker, map }, { operation: 'deleteEntityMap' })
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
