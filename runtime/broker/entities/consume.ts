/**
 * Use-cases that read entities (GS CIM 009, 5.7). SQL evaluates documents and indexes. Some attributes have
 * newer values in memory. The query receives these entities and evaluates their current values. Results are
 * in order of creation unless the query has an order.
 */

import { limits } from '#base/limits/limits.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Names } from '#broker/commit/interned-names.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import { createView } from '#broker/state/entity-view.ts'
import type { LiveState } from '#broker/state/live-state.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { LiveStream } from '#broker/state/unwritten.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { isExpired, mentionsExpiry, withoutExpired } from '#ngsi-ld/entity/expiry.ts'
import { isOrderKey } from '#ngsi-ld/query/order-key.ts'
import type { EntitySearch } from '#ngsi-ld/query/search.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Entities } from '#store/entities/entity-rows.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import type { Database } from '#store/file/database.ts'
import type { OrderedPlace } from '#store/query/entity-order.ts'
import { createEntityQuery, type EntityPageRequest } from '#store/query/entity-query.ts'
import type { Unwritten, ValueTest } from '#store/query/newer-values.ts'
import type { SearchSteps } from '#store/query/query-plan.ts'

export interface ConsumePorts {
  readonly database: Database
  readonly entities: Entities
  readonly live: LiveState
  readonly names: Names
  readonly clock: Clock
}

export function createConsume({ database, entities, live, names, clock }: ConsumePorts) {
  /** Hides expired entities and attributes that are not yet removed. */
  const shown = (row: EntityRow, now: number): EntityView | undefined => {
    const first = entities.firstExpiry()
    const whole = createView(row, live.dirtyEntity(row.rid), first < Number.POSITIVE_INFINITY)
    return first > now || !mentionsExpiry(row.doc) ? whole : unexpired(whole, now)
  }
  const view = (row: EntityRow): EntityView => createView(row, live.dirtyEntity(row.rid))
  const search = createEntityQuery({
    database,
    entities,
    view,
    nameOf: names.find,
    unwritten: (attribute, test) => unwrittenOf(live, attribute, test),
  })
  const shownOf = (rows: readonly EntityRow[]): readonly EntityView[] => {
    const now = clock.now()
    const views: EntityView[] = []
    for (const row of rows) {
      const one = shown(row, now)
      if (one !== undefined) views.push(one)
    }
    return views
  }
  /** A page that can be read entirely from memory. */
  const known = (query: EntityQuery): QueryPage | undefined => {
    if (query.count || query.order !== undefined || query.limit === 0) return undefined
    const page = search.knownPage(query, inOrderOfCreation(query))
    return page && { entities: shownOf(page.rows), more: page.more, next: page.rows.at(-1)?.rid.toString() }
  }
  function* answer(query: EntityQuery): SearchSteps<QueryPage> {
    const { limit, offset, after, count, order, ...what } = query
    const { rows, more, next } =
      limit === 0 ? nothing : yield* pageOf(search, what, { limit, offset, after, order })
    // Now, because a row that is written later no longer has its newest values in the live state.
    const found = shownOf(rows)
    // Planning a page may use a whole time slice, and so may planning the count.
    if (count) yield
    return {
      entities: found,
      more,
      ...(next === undefined ? {} : { next }),
      ...(count ? { count: yield* search.count(what) } : {}),
    }
  }
  // Reads in one transaction, so that one time slice reads one state. Opening a snapshot costs as much as
  // reading a row.
  const stepUntil = database.transaction((steps: SearchSteps<QueryPage>, until: number) => {
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      if (clock.monotonic() >= until) return undefined
    }
  })
  const turnMs = limits.queryTurnMs.value
  const yieldIfDue = createYield(clock.monotonic, turnMs)
  const inTurns = async (steps: SearchSteps<QueryPage>): Promise<QueryPage> => {
    await nextTurn()
    for (;;) {
      await yieldIfDue()
      if (!database.open) throw new GatewayError('store.closed', 'the tenant was closed during the query')
      // Other queries may have used up most of this turn.
      const page = stepUntil(steps, clock.monotonic() + turnMs / 2)
      if (page !== undefined) return page
    }
  }
  /** Time that queries took in this turn of the event loop; undefined before the first. */
  let spentMs: number | undefined
  /** Undefined if the page takes longer than the rest of the slice, of which queries have one per turn. */
  const atFirst = (steps: SearchSteps<QueryPage>): QueryPage | undefined => {
    if (spentMs === undefined) {
      spentMs = 0
      setImmediate(() => {
        spentMs = undefined
      })
    }
    if (spentMs >= turnMs) return undefined
    const begunAt = clock.monotonic()
    const page = stepUntil(steps, begunAt + turnMs - spentMs)
    spentMs += clock.monotonic() - begunAt
    return page
  }

  return Object.freeze({
    retrieve(id: string): EntityView | undefined {
      const row = entities.byId(id)
      return row === undefined ? undefined : shown(row, clock.now())
    },
    /** The last document of a deleted entity. */
    last(id: string): EntityView | undefined {
      const tombstone = entities.tombstones(id).at(-1)
      if (tombstone === undefined) return undefined
      const times = { created: tombstone.at, modified: tombstone.at, attributes: {} }
      const entity = (): Entity => JSON.parse(tombstone.doc) as Entity
      return { id, text: () => tombstone.doc, entity, times: () => times, version: () => tombstone.n }
    },
    /** Returns a page directly if it is found within one time slice; a longer query yields in between. */
    query(query: EntityQuery): QueryPage | Promise<QueryPage> {
      const found = known(query)
      if (found !== undefined) return found
      const steps = answer(query)
      return atFirst(steps) ?? inTurns(steps)
    },
    shortQuery: (query: EntityQuery): QueryPage | undefined => known(query) ?? atFirst(answer(query)),
    /** Like `query` without yielding, for works being decided. */
    queryAtOnce: (query: EntityQuery): QueryPage =>
      known(query) ?? stepUntil(answer(query), Number.POSITIVE_INFINITY)!,
  })
}

/** The entity without expired attributes; undefined if it has expired itself. */
function unexpired(view: EntityView, now: number): EntityView | undefined {
  const whole = view.entity()
  if (isExpired(whole, now)) return undefined
  const { entity, changes } = withoutExpired(whole, now)
  if (changes.length === 0) return view
  const text = JSON.stringify(entity)
  return { ...view, text: () => text, entity: () => JSON.parse(text) as Entity }
}

interface PositionedPage {
  readonly rows: readonly EntityRow[]
  readonly more: boolean
  readonly next?: string | undefined
}

const nothing: PositionedPage = { rows: [], more: false }

/**
 * A page and the position behind it. A position is a rid; with an order, the sort keys and rid of the last
 * entity.
 */
function* pageOf(
  search: ReturnType<typeof createEntityQuery>,
  what: EntitySearch,
  { limit, offset, after, order }: Pick<EntityQuery, 'limit' | 'offset' | 'after' | 'order'>,
): SearchSteps<PositionedPage> {
  if (order === undefined) {
    const { rows, more } = yield* search.page(what, inOrderOfCreation({ limit, offset, after }))
    return { rows, more, next: rows.at(-1)?.rid.toString() }
  }
  const start = after === undefined ? offset : 0
  const behind = after === undefined ? undefined : placeOf(after, order.terms.length)
  const { rows, more, last } = yield* search.ordered(what, order, { limit, offset: start, after: behind })
  return {
    rows,
    more,
    next: last && Buffer.from(JSON.stringify([...last.keys, last.rid])).toString('base64url'),
  }
}

const inOrderOfCreation = ({
  limit,
  offset,
  after,
}: Pick<EntityQuery, 'limit' | 'offset' | 'after'>): EntityPageRequest =>
  after === undefined ? { limit, offset } : { limit, offset: 0, after: ridOf(after) }

function ridOf(position: string): number {
  if (!/^\d{1,15}$/.test(position)) throw unknownPosition()
  return Number(position)
}

function placeOf(position: string, terms: number): OrderedPlace {
  let place: unknown
  try {
    place = JSON.parse(Buffer.from(position, 'base64url').toString())
  } catch {
    throw unknownPosition()
  }
  const rid: unknown = Array.isArray(place) ? place.at(-1) : undefined
  if (!Array.isArray(place) || place.length !== terms + 1 || !Number.isSafeInteger(rid))
    throw unknownPosition()
  const keys = place.slice(0, -1) as readonly unknown[]
  if (!keys.every(isOrderKey)) throw unknownPosition()
  return { keys, rid: rid as number }
}

const unknownPosition = (): Error => badRequestData('is not a position in this list', 'pageKey')

/** Entities whose newest value of an attribute is not in the index; undefined if the index has all. */
function unwrittenOf(
  { unwritten, unwrittenMirrors, entity }: LiveState,
  attribute: string,
  test: ValueTest,
): Unwritten | undefined {
  const mirrored = unwrittenMirrors(attribute)
  if (unwritten.isEmpty(attribute) && mirrored.length === 0) return undefined
  const rids = unwritten.fitting(attribute, test)
  for (const stream of mirrored) if (test.fits(msToDateTime(stream.time))) rids.push(stream.entity.rid)
  const isUnwritten = ({ dirtyAt, name, mirror }: LiveStream): boolean =>
    dirtyAt >= 0 && (name === attribute || mirror === attribute)
  const has = (rid: number): boolean => {
    const live = entity(rid)
    return live?.dirtySince !== undefined && live.streams.some(isUnwritten)
  }
  return { rids, has }
}
