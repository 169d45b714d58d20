/**
 * Queries that make an entity map or go by one, and the maps themselves as resources (GS CIM 009, 6.3.22 and 6.35).
 * With `entityMap=true` an answer names a map in NGSILD-EntityMap; a later request that names it there gets its page of
 * what the first query found, whatever came or went since.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { EntityQuery, QueryPage, TenantBroker } from '#broker/types.ts'
import type { EntityMap, EntityMaps } from '#federation/entity-maps.ts'
import { dateTimeToMs, msToDateTime } from '#ngsi-ld/datetime.ts'
import type { EntityCopy } from '#ngsi-ld/distribution.ts'
import { addDuration, parseDuration } from '#ngsi-ld/duration.ts'
import { isObject } from '#ngsi-ld/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/problem.ts'
import type { Answers } from './answer.ts'
import type { Asks } from './ask.ts'
import { type HttpContext, headerOf } from './body.ts'
import { type Parameters, truthOf } from './negotiate.ts'
import { idOf } from './path.ts'

export interface EntityMapPorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly maps: EntityMaps
  readonly clock: Clock
}

const nothing: ReadonlySet<string> = new Set()
const retrieveParameters = new Set(['local', 'options'])

/** Paths of entity maps; the standard has had both names. */
export function createEntityMapTable({ asks, answers, maps, clock }: EntityMapPorts) {
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
      const { expiresAt, '@context': _, id: given = id, type = 'EntityMap', ...others } = ask.body
      const [unknown] = Object.keys(others)
      if (unknown !== undefined) throw badRequestData('cannot be changed', unknown)
      if (given !== id) throw badRequestData('cannot be changed', 'id')
      if (type !== 'EntityMap') throw badRequestData('must be EntityMap', 'type')
      const until = typeof expiresAt === 'string' ? dateTimeToMs(expiresAt) : undefined
      if (until === undefined) throw badRequestData('must be a DateTime', 'expiresAt')
      if (until <= clock.now()) throw badRequestData('lies in the past', 'expiresAt')
      if (!maps.extend(ask.tenant, id, until)) throw notFound(`no entity map ${id}`)
      return answers.noContent(ask)
    },
    async DELETE(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, nothing)
      const id = idOf(c)
      if (!maps.delete(ask.tenant, id)) throw notFound(`no entity map ${id}`)
      return answers.noContent(ask)
    },
  }
  return { '/ngsi-ld/v1/entityMap/:id': routes, '/ngsi-ld/v1/entityMaps/:id': routes }
}

function render({ id, origins, expiresAt }: EntityMap) {
  return {
    id,
    type: 'EntityMap',
    expiresAt: msToDateTime(expiresAt),
    entityMap: Object.fromEntries(origins),
    linkedMaps: {},
  }
}

/** Whether a query has to do with entity maps; asked before every query. */
export function concernsEntityMap(c: HttpContext): boolean {
  return headerOf(c, 'ngsild-entitymap') !== undefined || c.req.url.includes('entityMap')
}

/** How long a map that is asked for is to live; undefined when none is. */
export function lifetimeAsked(parameters: Parameters, nowMs: number): number | undefined {
  const text = parameters.get('entityMapLifetime')
  const duration = text === undefined ? undefined : parseDuration(text)
  if (text !== undefined && duration === undefined)
    throw badRequestData('must be a duration such as PT10M', 'entityMapLifetime')
  if (truthOf(parameters, 'entityMap') !== true) return undefined
  const asked =
    duration === undefined ? limits.entityMapLifetimeMs.value : addDuration(nowMs, duration, 1) - nowMs
  return Math.min(asked, limits.entityMapLifetimeMsMax.value)
}

/** A broker that tells what the next query finds, all of it, before it answers with the page. */
export function recording(
  broker: TenantBroker,
  copies: readonly (EntityCopy & { readonly source: string })[],
  on: { readonly found: (origins: EntityMap['origins']) => void; readonly isHeld: (id: string) => boolean },
): TenantBroker {
  const sources = new Map<string, string[]>()
  for (const { entity, source } of copies) sources.set(entity.id, [...(sources.get(entity.id) ?? []), source])
  return {
    ...broker,
    query(query: EntityQuery): QueryPage {
      const { limit, offset, count } = query
      const max = limits.entityMapIdsMax.value
      const all = broker.query({ ...query, limit: max, offset: 0, after: undefined, count: false }).entities
      on.found(
        new Map(all.map(({ id }) => [id, [...(on.isHeld(id) ? ['@none'] : []), ...(sources.get(id) ?? [])]])),
      )
      return {
        entities: all.slice(offset, offset + limit),
        more: all.length > offset + limit,
        ...(count ? { count: all.length } : {}),
      }
    },
  }
}

/** A broker whose next query answers with these entities of a map. */
export function goingBy(
  broker: TenantBroker,
  ids: readonly string[],
  { total, more }: { total: number; more: boolean },
): TenantBroker {
  return {
    ...broker,
    query: ({ count }) => ({
      entities: ids.flatMap((id) => broker.retrieve(id) ?? []),
      more,
      ...(count ? { count: total } : {}),
    }),
  }
}
