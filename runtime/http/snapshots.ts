/**
 * Routes of snapshots (since 1.9), and reading from one by the header NGSILD-Snapshot. A snapshot is of what this
 * gateway holds: sources are not asked. It is complete when its creation is answered. Snapshots of histories, and
 * notifications about a snapshot, are not built and refused.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#base/clock.ts'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Snapshots } from '#broker/snapshots.ts'
import type { EntityQuery, EntityView, TenantBroker } from '#broker/types.ts'
import type { Json } from '#contract'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import { addDuration, parseDuration } from '#ngsi-ld/duration.ts'
import { isList, isObject } from '#ngsi-ld/json.ts'
import { checkUri } from '#ngsi-ld/name.ts'
import { badRequestData, notSupported } from '#ngsi-ld/problem.ts'
import type { Answers } from './answer.ts'
import type { Ask, Asks } from './ask.ts'
import { type HttpContext, headerOf } from './body.ts'
import { entityQueryOf } from './entity-search.ts'
import { idOf, pathSegment } from './path.ts'
import { readQueryBody } from './query-body.ts'

export const snapshotsPath = '/ngsi-ld/v1/snapshots'

type Route = (c: HttpContext) => Response | Promise<Response>

export interface SnapshotRoutePorts {
  readonly asks: Asks
  readonly answers: Answers
  readonly snapshots: Snapshots
  readonly clock: Clock
}

const noParameters = new Set<string>()
const lifetimeDefault = 'P1D'
const priorities = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const
const priorityDefault = 5

export function createSnapshotRoutes({ asks, answers, snapshots, clock }: SnapshotRoutePorts) {
  const shown = (ask: Ask, id: string): Response => {
    const { isEmpty, queries, priority, createdAt, modifiedAt, expiresAt, lastUsedAt } = snapshots.facts(
      ask.tenant,
      id,
    )
    const body = {
      id,
      type: 'Snapshot',
      snapshotStatus: isEmpty ? 'empty' : 'success',
      snapshotQueries: queries,
      snapshotPriority: priority,
      createdAt: msToDateTime(createdAt),
      modifiedAt: msToDateTime(modifiedAt),
      expiresAt: msToDateTime(expiresAt),
      ...(lastUsedAt === undefined ? {} : { lastUsedAt: msToDateTime(lastUsedAt) }),
    }
    return answers.entity(ask, JSON.stringify(body), answers.contextFor(ask))
  }
  const newId = (): string => `urn:ngsi-ld:Snapshot:${randomUUID()}`
  const made = (ask: Pick<Ask, 'tenant' | 'context' | 'parameters'>, id: string): Response =>
    answers.created(ask, `${snapshotsPath}/${pathSegment(id)}`)

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const { body, enter, ...ask } = await asks.body(c)
      const createdAt = clock.now()
      const { id = newId(), queries, expiresAt, priority } = readSnapshot(body, createdAt)
      if (queries === undefined) throw badRequestData('is missing', 'snapshotQueries')
      const broker = await enter()
      const searches = queries.map((query) => {
        const { parameters, entities } = readQueryBody(query, ask.context.expand)
        return entityQueryOf({ ...ask, broker, type: 'application/json', parameters }, undefined, entities)
      })
      const draft = {
        id,
        queries,
        priority: priority ?? priorityDefault,
        createdAt,
        expiresAt: expiresAt ?? addDuration(createdAt, parseDuration(lifetimeDefault)!, 1),
      }
      await snapshots.create(ask.tenant, draft, collect(broker, searches))
      return made(ask, id)
    },

    async retrieve(c: HttpContext): Promise<Response> {
      return shown(await asks.read(c, noParameters), idOf(c))
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const { body, ...ask } = await asks.body(c)
      const { queries, expiresAt, priority, ...others } = readSnapshot(body, clock.now())
      if (queries !== undefined) throw badRequestData('stays as it was created', 'snapshotQueries')
      if (others.id !== undefined && others.id !== id) throw badRequestData('is not that of the path', 'id')
      await snapshots.change(ask.tenant, id, {
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...(priority === undefined ? {} : { priority }),
      })
      return shown({ ...ask, broker: await ask.enter(), type: 'application/json' }, id)
    },

    async remove(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, noParameters)
      await snapshots.remove(ask.tenant, idOf(c))
      return answers.noContent(ask)
    },

    async purge(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, noParameters)
      await snapshots.removeAll(ask.tenant)
      return answers.noContent(ask)
    },

    /** Another snapshot of the same entities, whose life begins anew. */
    async clone(c: HttpContext): Promise<Response> {
      const ask = await asks.read(c, noParameters)
      const from = idOf(c)
      const { queries, priority, createdAt, expiresAt } = snapshots.facts(ask.tenant, from)
      const everything = { limit: 0, offset: 0, count: false }
      const found = collect(snapshots.read(ask.tenant, from), [everything])
      const id = newId()
      const now = clock.now()
      const draft = { id, queries, priority, createdAt: now, expiresAt: now + expiresAt - createdAt }
      await snapshots.create(ask.tenant, draft, found)
      return made(ask, id)
    },

    /** A route that reads from the snapshot that the request names, else does what it does otherwise. */
    within(read: Route, otherwise: Route = read): Route {
      return (c) => {
        const id = headerOf(c, 'ngsild-snapshot')
        if (id === undefined) return otherwise(c)
        const broker = snapshots.read(headerOf(c, 'ngsild-tenant') ?? '', id)
        c.env = { ...c.env, broker, isSnapshot: true }
        return read(c)
      }
    },
  })
}

/** What the queries find at this instant, each entity once. @throws ngsi-ld.too-many-results */
function collect(broker: TenantBroker, searches: readonly EntityQuery[]): readonly EntityView[] {
  const found = new Map<string, EntityView>()
  for (const search of searches) {
    let page: ReturnType<TenantBroker['query']> | undefined
    let seen = 0
    do {
      const after: string | undefined = page?.next
      const offset = after === undefined ? seen : 0
      page = broker.query({ ...search, limit: limits.pageMax.value, offset, after, count: false })
      seen += page.entities.length
      for (const view of page.entities) found.set(view.id, view)
      if (found.size > limits.snapshotEntitiesMax.value) {
        throw new GatewayError(
          'ngsi-ld.too-many-results',
          `a snapshot holds at most ${limits.snapshotEntitiesMax.value} entities`,
        )
      }
    } while (page.more)
  }
  return [...found.values()]
}

function readSnapshot(body: Json, nowMs: number) {
  if (!isObject(body)) throw badRequestData('must be an object of type Snapshot', 'body')
  const known = ['id', 'type', '@context', 'snapshotQueries', 'snapshotLifetime', 'snapshotPriority']
  for (const member of Object.keys(body)) {
    if (['snapshotTemporalQueries', 'endpoint', 'receiverInfo'].includes(member)) {
      throw notSupported(`${member} of a snapshot`)
    }
    if (!known.includes(member)) throw badRequestData('is not a member of a Snapshot', member)
  }
  const { id, type, snapshotQueries, snapshotLifetime, snapshotPriority } = body
  if (type !== undefined && type !== 'Snapshot') throw badRequestData('must be Snapshot', 'type')
  const isPriority = priorities.some((priority) => priority === snapshotPriority)
  if (snapshotPriority !== undefined && !isPriority) throw badRequestData('is 1 to 10', 'snapshotPriority')
  if (snapshotQueries !== undefined && (!isList(snapshotQueries) || snapshotQueries.length === 0)) {
    throw badRequestData('must be a list of queries', 'snapshotQueries')
  }
  return {
    id: id === undefined ? undefined : checkUri(id, 'id'),
    queries: snapshotQueries,
    priority: snapshotPriority as number | undefined,
    expiresAt: snapshotLifetime === undefined ? undefined : endOf(snapshotLifetime, nowMs),
  }
}

function endOf(lifetime: Json, nowMs: number): number {
  const duration = typeof lifetime === 'string' ? parseDuration(lifetime) : undefined
  if (duration === undefined) throw badRequestData('must be a duration, such as PT1H', 'snapshotLifetime')
  return addDuration(nowMs, duration, 1)
}
