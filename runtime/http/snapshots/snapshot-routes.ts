/**
 * Routes of snapshots (since 1.9), and reading from one with the header NGSILD-Snapshot. A snapshot holds
 * this gateway's data at the time of the request and the data of context sources. Its creation is answered
 * when it is complete; if sources are slow, it continues in the background. The endpoint, if any, is notified
 * when the snapshot is complete and when it is deleted.
 */

import { randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import type {
  SnapshotContent,
  SnapshotFacts,
  Snapshots,
  SnapshotView,
} from '#broker/tenant/snapshot-files.ts'
import type { Json } from '#contract'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type Bodies, type HttpContext, headerOf } from '#http/request/body.ts'
import { pageLinks, textsWithin } from '#http/request/paging.ts'
import { idOf, pathSegment } from '#http/request/path-ids.ts'
import type { ApiRequest } from '#http/request/request.ts'
import type { Attribute } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { attributesOf } from '#ngsi-ld/query/query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { pagingOf } from '#ngsi-ld/query/url-parameters.ts'
import { withEndpointSecrets } from '#ngsi-ld/subscription/subscription.ts'
import { addDuration, parseDuration } from '#ngsi-ld/values/duration.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { shownAddress } from '#ngsi-ld/values/secrets.ts'
import {
  readOnlyIn,
  readSnapshot,
  renderSnapshot,
  type SnapshotBody,
  snapshotMembers,
  snapshotNotification,
} from './snapshot-body.ts'
import { findAll, type SnapshotQueryPorts, type SnapshotRequest } from './snapshot-queries.ts'

export const snapshotsPath = '/ngsi-ld/v1/snapshots'

type Route = (c: HttpContext) => Response | Promise<Response>

/** Sends one notification request and returns whether it was accepted. */
export type SendNotification = (request: {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs?: number | undefined
}) => Promise<{ readonly ok: boolean }>

export interface SnapshotRoutePorts extends SnapshotQueryPorts, ClockAndLog, ApiPorts {
  readonly bodies: Bodies
  readonly snapshots: Snapshots
  readonly notify: SendNotification
}

const noParameters = new Set<string>()
const listParameters = new Set(['limit', 'offset', 'count'])
const purgeParameters = new Set(['q'])
const lifetimeDefault = 'P1D'
const priorityDefault = 5

export function createSnapshotRoutes(ports: SnapshotRoutePorts) {
  const { requests, answers, snapshots, clock } = ports
  const notify = createNotifier(ports)
  const shown = (request: ApiRequest, id: string): Response => {
    const body = renderSnapshot(snapshots.facts(request.tenant, id))
    return answers.entity(request, JSON.stringify(body), answers.contextFor(request))
  }
  const newId = (): string => `urn:ngsi-ld:Snapshot:${randomUUID()}`
  const created = (request: Pick<ApiRequest, 'tenant' | 'context' | 'parameters'>, id: string): Response =>
    answers.created(request, `${snapshotsPath}/${pathSegment(id)}`)
  const complete = createCompletion(ports, notify)

  /** Members in the optional body of a clone request. */
  async function cloneWanted(c: HttpContext): Promise<Partial<SnapshotBody>> {
    const body = await ports.bodies.raw(c)
    c.env = { ...c.env, body }
    if (body.length === 0) return {}
    const wanted = readSnapshot((await requests.body(c)).body, clock.now())
    if (wanted.queries !== undefined || wanted.temporalQueries !== undefined)
      throw badRequestData('a clone has the queries of its original', 'snapshotQueries')
    return wanted
  }

  const remove = async (facts: SnapshotFacts): Promise<void> => {
    await snapshots.remove(facts.tenant, facts.id)
    void notify({ ...facts, expiresAt: Math.min(facts.expiresAt, clock.now() - 1) })
  }

  return Object.freeze({
    async create(c: HttpContext): Promise<Response> {
      const { body, enter, ...head } = await requests.body(c)
      const createdAt = clock.now()
      const {
        id = newId(),
        queries,
        temporalQueries,
        expiresAt,
        priority,
        endpoint,
      } = readSnapshot(body, createdAt)
      if (queries === undefined && temporalQueries === undefined)
        throw badRequestData('or snapshotTemporalQueries is required', 'snapshotQueries')
      const broker = await enter()
      const request: SnapshotRequest = {
        head,
        broker,
        queries: queries ?? [],
        temporalQueries: temporalQueries ?? [],
      }
      const find = await findAll(ports, c, request)
      await snapshots.begin(head.tenant, {
        id,
        queries,
        temporalQueries,
        endpoint: endpoint && withEndpointSecrets(endpoint, undefined, 'endpoint'),
        priority: priority ?? priorityDefault,
        createdAt,
        expiresAt: expiresAt ?? addDuration(createdAt, parseDuration(lifetimeDefault)!, 1),
      })
      await complete(head.tenant, id, find)
      return created(head, id)
    },

    async retrieve(c: HttpContext): Promise<Response> {
      return shown(await requests.read(c, noParameters), idOf(c))
    },

    async list(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, listParameters)
      const paging = pagingOf(request.parameters)
      const { limit, offset } = paging
      const all = await snapshots.list(request.tenant)
      const page = all.slice(offset, offset + limit)
      const texts = textsWithin(page, (facts) => JSON.stringify(renderSnapshot(facts)))
      const shown = texts.length
      const links = pageLinks(c.req.url, paging, { shown, more: all.length > offset + shown })
      return answers.list(
        request,
        { texts, context: answers.contextFor(request) },
        { count: paging.count ? all.length : undefined, links },
      )
    },

    async patch(c: HttpContext): Promise<Response> {
      const id = idOf(c)
      const { body, ...request } = await requests.body(c)
      const { queries, temporalQueries, expiresAt, priority, endpoint, ...others } = readSnapshot(
        body,
        clock.now(),
      )
      const readOnly = readOnlyIn(body)
      if (readOnly !== undefined) throw badRequestData('cannot be changed', readOnly)
      if (queries !== undefined) throw badRequestData('cannot be changed', 'snapshotQueries')
      if (temporalQueries !== undefined) throw badRequestData('cannot be changed', 'snapshotTemporalQueries')
      if (others.id !== undefined && others.id !== id)
        throw badRequestData('must be the id in the path', 'id')
      const stored = snapshots.facts(request.tenant, id).endpoint
      await snapshots.change(request.tenant, id, {
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...(priority === undefined ? {} : { priority }),
        ...(endpoint && { endpoint: withEndpointSecrets(endpoint, stored, 'endpoint') }),
      })
      return shown({ ...request, broker: await request.enter(), type: 'application/json' }, id)
    },

    async remove(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, noParameters)
      await remove(snapshots.facts(request.tenant, idOf(c)))
      return answers.noContent(request)
    },

    /** Deletes the snapshots that match q; without q nothing is deleted by mistake (5.16.7.4). */
    async purge(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, purgeParameters)
      const q = request.parameters.get('q')
      if (q === undefined) throw badRequestData('is required; q=snapshotStatus selects all snapshots', 'q')
      const tree = parseQuery(q, request.context.expand)
      const odd = attributesOf(tree).find((name) => !snapshotMembers.has(name))
      if (odd !== undefined) throw badRequestData(`${odd} is not a member of a Snapshot`, 'q')
      const fits = compileQuery(tree)
      for (const facts of await snapshots.list(request.tenant)) if (fits(asEntity(facts))) await remove(facts)
      return answers.noContent(request)
    },

    /** Copies a snapshot. The copy has its own lifetime; a body may set priority, lifetime and endpoint. */
    async clone(c: HttpContext): Promise<Response> {
      const wanted = await cloneWanted(c)
      const request = await requests.read(c, noParameters)
      const from = idOf(c)
      const facts = snapshots.facts(request.tenant, from)
      const content = await contentOf(ports, c, { request, from })
      const now = clock.now()
      const { queries, temporalQueries, createdAt } = facts
      const {
        id = newId(),
        priority = facts.priority,
        expiresAt = now + facts.expiresAt - createdAt,
      } = wanted
      const endpoint = wanted.endpoint && withEndpointSecrets(wanted.endpoint, undefined, 'endpoint')
      const draft = { id, queries, temporalQueries, priority, endpoint, createdAt: now }
      await snapshots.begin(request.tenant, { ...draft, expiresAt })
      const { status, details, temporalDetails } = facts
      const copied = {
        details,
        temporalDetails,
        status: status === 'preparing' ? 'partial' : status,
      } as const
      await complete(request.tenant, id, async () => ({ ...(await content()), ...copied }))
      return created(request, id)
    },

    /** Wraps a route to read from the snapshot that a request names; other requests use `otherwise`. */
    within(read: Route, otherwise: Route = read): Route {
      return (c) => {
        const id = headerOf(c, 'ngsild-snapshot')
        if (id === undefined) return otherwise(c)
        return readWithin(snapshots, c, { id, read })
      }
    },
  })
}

async function readWithin(
  snapshots: Snapshots,
  c: HttpContext,
  { id, read }: { readonly id: string; readonly read: Route },
): Promise<Response> {
  const broker = snapshots.read(headerOf(c, 'ngsild-tenant') ?? '', id)
  c.env = { ...c.env, broker, isSnapshot: true }
  const answer = await read(c)
  const headers = new Headers(answer.headers)
  headers.set('NGSILD-Snapshot', id)
  return new Response(answer.body, { status: answer.status, headers })
}

/** The full content of a snapshot. */
function contentOf(
  { snapshots, problems, core }: Pick<SnapshotRoutePorts, 'snapshots' | 'problems' | 'core'>,
  c: HttpContext,
  { request, from }: { readonly request: ApiRequest; readonly from: string },
): Promise<() => Promise<SnapshotContent>> {
  const { queries, temporalQueries } = snapshots.facts(request.tenant, from)
  const broker = snapshots.read(request.tenant, from)
  const noSources = { entities: () => undefined, histories: () => undefined }
  const isLocal = new Map([...request.parameters, ['local', 'true']])
  const all = { ...request, parameters: isLocal }
  return findAll({ problems, core, sources: noSources }, c, {
    head: all,
    broker,
    queries: queries === undefined ? [] : everyEntity,
    temporalQueries: temporalQueries === undefined ? [] : everyHistory,
  })
}

const everything = { type: 'Query', entities: [{ type: '*' }] }
const everyEntity: readonly Json[] = [everything]
const everyHistory: readonly Json[] = [{ ...everything, temporalQ: { timeproperty: 'modifiedAt' } }]

/** Fills a snapshot, and waits a bounded time for it. A failure becomes the snapshot's status. */
function createCompletion(
  { snapshots, problems }: SnapshotRoutePorts,
  notify: (facts: SnapshotFacts) => Promise<void>,
) {
  const fill = async (tenant: string, id: string, find: () => Promise<SnapshotContent>): Promise<void> => {
    const failed = (error: unknown): SnapshotContent => ({
      status: 'failure',
      details: [{ resultStatus: 'failure', problemDetails: [problems.body(error)] }],
      entities: [],
      histories: [],
    })
    const content = await find().catch(failed)
    const facts = await snapshots
      .complete(tenant, id, content)
      .catch((error: unknown) => snapshots.complete(tenant, id, failed(error)))
    if (facts !== undefined) void notify(facts)
  }
  return async (tenant: string, id: string, find: () => Promise<SnapshotContent>): Promise<void> => {
    let timer: NodeJS.Timeout | undefined
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limits.snapshotWaitMs.value)
    })
    // A gateway that closes discards unfinished snapshots.
    const filled = fill(tenant, id, find).catch(() => undefined)
    await Promise.race([filled, waited])
    clearTimeout(timer)
  }
}

/** Notifies a snapshot's endpoint, with a few retries. */
function createNotifier({ notify, clock, log }: SnapshotRoutePorts) {
  return async (facts: SnapshotFacts): Promise<void> => {
    const { endpoint, tenant } = facts
    if (endpoint === undefined) return
    const nowMs = clock.now()
    const body = snapshotNotification(facts, { id: `urn:ngsi-ld:Notification:${randomUUID()}`, nowMs })
    const { receiverInfo = [], accept = 'application/json', uri, timeout } = endpoint
    const headers = {
      'Content-Type': accept,
      ...(tenant === '' ? {} : { 'NGSILD-Tenant': tenant }),
      ...Object.fromEntries(receiverInfo.map(({ key, value }) => [key, value])),
    }
    const request = { uri, headers, body: JSON.stringify(body), timeoutMs: timeout }
    for (let tries = 1; tries <= limits.snapshotTriesMax.value; tries++) {
      if ((await notify(request)).ok) return
      await new Promise((resolve) => setTimeout(resolve, 1000 * tries).unref())
    }
    log.warn('snapshot.unnotified', { snapshot: facts.id, tenant, uri: shownAddress(uri) })
  }
}

/** The members of a snapshot as attributes, including id and type, for evaluating q. */
function asEntity(facts: SnapshotView): Entity {
  const attributes: Record<string, Attribute> = {}
  for (const [name, value] of Object.entries(renderSnapshot(facts)))
    attributes[name] = { type: 'Property', value }
  return attributes as unknown as Entity
}
