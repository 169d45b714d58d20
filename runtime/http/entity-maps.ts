/**
 * Entity maps as resources (GS CIM 009, 6.22, since 1.9 6.34 and 6.35): made by a query that answers with the map instead
 * of entities, shown, given another end, deleted. How queries make maps and go by them is in `mapped-queries.ts`.
 */
import type { Clock } from '#base/clock.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/datetime.ts'
import { isObject } from '#ngsi-ld/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { Answers } from './answer.ts'
import type { Asks } from './ask.ts'
import type { HttpContext } from './body.ts'
import { anyParameter } from './distributed.ts'
import { entityMapLocation, entityMapsPath, type MappedQueries, mapIdOf } from './mapped-queries.ts'
import { idOf } from './path.ts'

export interface EntityMapPorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly maps: EntityMaps
  readonly clock: Clock
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
const nothing: ReadonlySet<string> = new Set()
const retrieveParameters = new Set(['local', 'options'])

/** Paths of entity maps; the standard has had both names. */
export function createEntityMapTable(
  { asks, answers, maps, clock }: EntityMapPorts,
  mapped: MappedQueries,
  queries: MappedRoutes,
) {
  const routes = {
    async GET(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, retrieveParameters)
      const id = idOf(c)
      const map = maps.get(ask.tenant, id)
      if (map === undefined) throw notFound(`no entity map ${id}`)
      return answers.entity(ask, JSON.stringify(render(map)), answers.contextFor(ask))
    },
    async PATCH(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const ask = await asks.body(c)
      await ask.enter()
      if (!isObject(ask.body)) throw badRequestData('must be a JSON object', 'body')
      if (maps.get(ask.tenant, id) === undefined) throw notFound(`no entity map ${id}`)
      const unknown = Object.keys(ask.body).find((member) => !members.has(member))
      if (unknown !== undefined) throw badRequestData('is no member of an entity map', unknown)
      // What else a map has is told by it, and ignored here (5.14.2.4).
      const { expiresAt } = ask.body
      if (expiresAt === undefined) return answers.noContent(ask)
      const until = typeof expiresAt === 'string' ? dateTimeToMs(expiresAt) : undefined
      if (until === undefined) throw badRequestData('must be a DateTime', 'expiresAt')
      if (until <= clock.now()) throw badRequestData('lies in the past', 'expiresAt')
      maps.extend(ask.tenant, id, until)
      return answers.noContent(ask)
    },
    async DELETE(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, nothing)
      const id = idOf(c)
      if (!maps.delete(ask.tenant, id)) throw notFound(`no entity map ${id}`)
      return answers.noContent(ask)
    },
  }
  /** 201 with the map of a query, in the place of what it found. */
  const create =
    (query: Route): Route =>
    async (c) => {
      const ask = await asks.read(c, anyParameter)
      const answer = await mapped.making(c, query)
      const id = mapIdOf(answer.headers.get('NGSILD-EntityMap') ?? undefined)
      const map = id === undefined ? undefined : maps.get(ask.tenant, id)
      if (!answer.ok || map === undefined) return answer
      const shown = answers.entity(ask, JSON.stringify(render(map)), answers.contextFor(ask))
      const headers = new Headers(shown.headers)
      headers.set('NGSILD-EntityMap', entityMapLocation(map.id))
      headers.set('Location', entityMapLocation(map.id))
      const warning = answer.headers.get('NGSILD-Warning')
      if (warning !== null) headers.set('NGSILD-Warning', warning)
      return new Response(shown.body, { status: 201, headers })
    }
  return {
    [entityMapsPath]: { GET: create(queries.query), POST: create(queries.queryByBody) },
    '/ngsi-ld/v1/temporal/entityMaps': {
      GET: create(queries.queryHistories),
      POST: create(queries.queryHistoriesByBody),
    },
    '/ngsi-ld/v1/entityMap/:id': routes,
    [`${entityMapsPath}/:id`]: routes,
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
