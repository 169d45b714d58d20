/**
 * Queries of temporal entities (GS CIM 009, 5.7.4): entities, existing or deleted, with instances in the
 * window. Filters consider every value and every scope in the window, so an entity that was too warm once is
 * found although it has cooled down. Attributes without times are evaluated as they are. Existing entities
 * come first, in order of creation, then deleted ones in order of deletion, unless the query orders by id.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { scopesWithin } from '#ngsi-ld/history/scope-validity.ts'
import { compileOrder } from '#ngsi-ld/query/order.ts'
import type { QueryTimes } from '#ngsi-ld/query/query-match.ts'
import { matchesScope, type ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { sizeOfJson } from '#ngsi-ld/values/json-size.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import type { Database } from '#store/file/database.ts'
import type { RollUps } from '#store/history/roll-ups.ts'
import { aggregatesOf } from './aggregation.ts'
import { createDecodedChunks } from './decoded-chunks.ts'
import { evolutionOf } from './evolution.ts'
import { type EvolutionPorts, windowOf } from './evolution-sources.ts'
import type { HistorySteps } from './stream-sums.ts'
import type {
  AggregateQuery,
  EntityAggregates,
  TemporalBroker,
  TemporalPage,
  TemporalQuery,
} from './temporal-requests.ts'

export interface TemporalSearchPorts extends EvolutionPorts {
  readonly database: Database
  readonly rollUps: RollUps
  readonly clock: Clock
  readonly find: (query: EntityQuery) => QueryPage | Promise<QueryPage>
}

const candidatesPerRead = 200

export function createTemporalSearch(
  ports: TemporalSearchPorts,
): Pick<TemporalBroker, 'aggregate' | 'search' | 'searchAggregates'> {
  const { database, clock } = ports
  const aggregation = { ...ports, decoded: createDecodedChunks(ports.history) }
  const turnMs = limits.aggregateTurnMs.value
  const yieldIfDue = createYield(clock.monotonic, turnMs)
  // Reads in one transaction, because the writer thread may split a chunk between two reads.
  const atOnce = database.transaction((read: () => unknown) => read()) as <T>(read: () => T) => T

  async function yieldTurn({ goOn }: TemporalQuery): Promise<void> {
    await yieldIfDue()
    checkOpen(database)
    goOn?.()
  }

  async function aggregate(id: string, query: AggregateQuery): Promise<EntityAggregates | undefined> {
    for (let tries = 0; ; tries++) {
      await yieldTurn(query)
      const steps = aggregatesOf(aggregation, id, query)
      if (tries === triesMax) return atOnce(() => resultOf(steps))
      let step = atOnce(() => steps.next())
      let begunAt = clock.monotonic()
      while (step.done !== true && step.value) {
        // Most steps take less time than the check.
        if (clock.monotonic() - begunAt >= turnMs / 5) {
          await yieldTurn(query)
          begunAt = clock.monotonic()
        }
        step = steps.next()
      }
      if (step.done === true) return step.value
    }
  }

  /** A page of the results of `read` for matching entities. Yields between two entities. */
  function paged<Found extends Sized>(
    search: EntityQuery,
    query: TemporalQuery,
    read: (id: string) => Found | undefined | Promise<Found | undefined>,
  ): Promise<TemporalPage<Found>> {
    const fits = filterOf(search, query)
    // An entity deleted meanwhile is listed again among the deleted ones.
    const seen = new Set<string>()
    return page(search, async (id) => {
      if (seen.has(id)) return undefined
      seen.add(id)
      await yieldTurn(query)
      return fits === undefined || atOnce(() => fits(id)) ? shown(await read(id)) : undefined
    })
  }

  /**
   * The entities of one page, in order. Entities before it are evaluated; those after it only if there is a
   * count. `find` returns the history of an entity that matches the filters.
   */
  async function page<Found extends Sized>(
    { q: _q, geo: _geo, scope: _scope, limit, offset, count, ...search }: EntityQuery,
    find: (id: string) => Promise<Found | undefined>,
  ): Promise<TemporalPage<Found>> {
    const found: Found[] = []
    let seen = 0
    let size = 0
    let isFull = limit === 0
    for await (const id of candidates(search)) {
      const one = await find(id)
      if (one === undefined) continue
      if (seen >= offset && !isFull) {
        size += sizeOf(one)
        if (size > limits.pageBytesMax.value && found.length > 0) isFull = true
        else found.push(one)
        if (found.length === limit) isFull = true
      }
      seen++
      if (!count && isFull && seen > offset + found.length) break
    }
    return { found, more: seen > offset + found.length, count: count ? seen : undefined }
  }

  /**
   * A test whether the values of an entity in the window, taken together, and one of its scopes valid then
   * match the filters; undefined without filters.
   */
  function filterOf(
    { q, geo, scope }: Pick<EntityQuery, 'q' | 'geo' | 'scope'>,
    query: TemporalQuery,
  ): ((id: string) => boolean) | undefined {
    const isEither = q !== undefined || geo !== undefined
    if (!isEither && scope === undefined) return undefined
    const fits = compileSearch({ q, geo })
    return (id) => {
      if (scope !== undefined && !hadScope(id, scope, query)) return false
      const past = isEither ? pastOf(ports, id, query) : undefined
      return !isEither || (past !== undefined && fits(past.entity, past.times))
    }
  }

  /** Whether a scope that an entity had at some time of the window matches. */
  function hadScope(id: string, scope: ScopeQuery, query: TemporalQuery): boolean {
    const limit = limits.temporalFilterInstancesMax.value
    const history = evolutionOf(ports, id, { timeproperty: 'modifiedAt', attrs: new Set(['scope']), limit })
    if (history === undefined) return false
    const instances = history.attributes.get('scope')
    // The record that set it may have been deleted by retention.
    if (instances === undefined) return matchesScope(scope, history.entity.scope)
    return scopesWithin(instances, query.timeproperty, windowOf(query)).some((one) =>
      matchesScope(scope, one),
    )
  }

  /** Ids of matching entities, each once: in order of id if requested, else deleted ones last. */
  async function* candidates(search: Search): AsyncGenerator<string> {
    const { attrs: _attrs, after: _after, order, ...what } = search
    const existing = existingOnes({ ...what, order })
    const deleted = deletedOnes(compileSearch(what))
    if (order === undefined) {
      yield* existing
      for await (const { id } of deleted) yield id
      return
    }
    const { keysOf, compare } = compileOrder(order)
    const keyed = (id: string) => ({
      id,
      keys: keysOf({ id, type: '' }, { created: 0, modified: 0, attributes: {} }),
    })
    const others: ReturnType<typeof keyed>[] = []
    for await (const { id } of deleted) others.push(keyed(id))
    others.sort((a, b) => compare(a.keys, b.keys))
    let next = 0
    for await (const id of existing) {
      const { keys } = keyed(id)
      for (; next < others.length && compare(others[next]!.keys, keys) < 0; next++) yield others[next]!.id
      yield id
    }
    for (const { id } of others.slice(next)) yield id
  }

  async function* existingOnes(what: Omit<Search, 'attrs' | 'after'>): AsyncGenerator<string> {
    let after: string | undefined
    for (let offset = 0; ; offset += candidatesPerRead) {
      const page = await ports.find({ ...what, after, limit: candidatesPerRead, offset, count: false })
      for (const { id } of page.entities) yield id
      if (!page.more) return
      after = page.next
    }
  }

  /** The last documents of deleted entities that match, in order of deletion. */
  async function* deletedOnes(fits: (entity: Entity) => boolean): AsyncGenerator<TombstoneRow> {
    const seen = new Set<string>()
    for (let after = 0; ; ) {
      const tombstones = ports.edits.tombstonesAfter(after, candidatesPerRead)
      for (const tombstone of tombstones) {
        after = tombstone.n
        if (seen.has(tombstone.id) || ports.entities.byId(tombstone.id) !== undefined) continue
        if (!fits(JSON.parse(tombstone.doc) as Entity)) continue
        seen.add(tombstone.id)
        yield tombstone
      }
      if (tombstones.length < candidatesPerRead) return
      await nextTurn()
    }
  }

  return {
    aggregate,
    search: (search, query) => paged(search, query, (id) => atOnce(() => evolutionOf(ports, id, query))),
    searchAggregates: (search, query) => paged(search, query, (id) => aggregate(id, query)),
  }
}

/** Number of attempts that yield; the next one does not, so that nothing can change meanwhile. */
const triesMax = 3

function resultOf<T>(steps: HistorySteps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

function checkOpen({ open }: Database): void {
  if (!open) throw new GatewayError('store.closed', 'the tenant was closed during the query')
}

/** The history of an entity, if it is not empty. */
const shown = <Found extends { readonly attributes: ReadonlyMap<string, unknown> }>(
  found: Found | undefined,
): Found | undefined => (found?.attributes.size === 0 ? undefined : found)

/** Approximate number of characters of the instances or sums of an entity. */
function sizeOf({ attributes }: Sized): number {
  let size = 0
  for (const list of attributes.values()) for (const one of list) size += sizeOfJson(one.instance ?? one)
  return size
}

interface Sized {
  readonly attributes: ReadonlyMap<string, readonly { readonly instance?: unknown }[]>
}

/** Every value of an entity in the window, combined into one entity, plus attributes without time. */
interface Past {
  readonly entity: Entity
  readonly times: QueryTimes
}

function pastOf(ports: TemporalSearchPorts, id: string, query: TemporalQuery): Past | undefined {
  const limit = limits.temporalFilterInstancesMax.value
  const { attrs: _attrs, datasets: _datasets, lastN: _lastN, ...window } = query
  const history = evolutionOf(ports, id, { ...window, limit })
  if (history === undefined) return undefined
  if (history.cut.size > 0)
    throw tooComplex(`${id} has more than ${limit} values in this time; request a shorter time`)
  const members: Record<string, readonly AttributeInstance[]> = {}
  const times: Record<string, readonly [created: number, modified: number]> = {}
  for (const [name, list] of history.attributes) {
    if (name === 'scope') continue
    members[name] = list.map(({ instance }) => instance)
    for (const { instance, createdAt, modifiedAt } of list) {
      const key = instance.datasetId === undefined ? name : `${name} ${instance.datasetId}`
      const [created, modified] = times[key] ?? [createdAt, modifiedAt]
      times[key] = [Math.min(created, createdAt), Math.max(modified, modifiedAt)]
    }
  }
  for (const name of Object.keys(history.entity)) {
    if (name === 'id' || name === 'type' || name === 'scope') continue
    const untimed = instancesOf(history.entity, name).filter((one) => one.observedAt === undefined)
    if (untimed.length > 0) members[name] = [...(members[name] ?? []), ...untimed]
  }
  const { id: ownId, type, scope } = history.entity
  const entity = { id: ownId, type, ...(scope === undefined ? {} : { scope }), ...members }
  const { modified = 0, created = modified } = history
  return { entity, times: { created, modified, attributes: times } }
}

type Search = Omit<EntityQuery, 'q' | 'geo' | 'scope' | 'limit' | 'offset' | 'count'>
