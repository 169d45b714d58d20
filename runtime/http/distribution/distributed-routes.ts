/**
 * Turns requests about entities into distributed operations (GS CIM 009, 4.3.6). A wrapped route runs
 * unchanged if its tenant has no registrations (one lookup) or the client sends local=true. Otherwise sources
 * are queried first. The route itself then runs on the merged results, or on the local part of a write.
 */

import type { Clock } from '#base/time/clock.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import { createReader, type GatheredCopies } from '#federation/reading.ts'
import { type ClientQuery, type ReadRequest, splitIds } from '#federation/requests.ts'
import type { Sources } from '#federation/sources.ts'
import {
  attrsWanted,
  clientQueryOf,
  clientQueryOfBody,
  datasetsWanted,
  selectsEveryType,
} from '#http/entities/forwarded-query.ts'
import type { PurgeRoutes } from '#http/entities/purge.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import {
  anyParameter,
  type Distributed,
  mappedQuery,
  mappedSources,
  refuseLoop,
  runRoute,
  withCommonHeaders,
  withSourceFilter,
  withWarnings,
} from '#http/request/distributed-request.ts'
import type { Problems } from '#http/request/error-response.ts'
import type { RequestHead, RequestReaderPorts } from '#http/request/request.ts'
import type { SnapshotSources } from '#http/snapshots/snapshot-queries.ts'
import type { EntityCopy } from '#ngsi-ld/federation/distribution.ts'
import type { SourceOperation } from '#ngsi-ld/federation/registration-operations.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { isObject } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { createDistributedBatches } from './distributed-batches.ts'
import { createDistributedDiscovery, type DiscoveryKind } from './distributed-discovery.ts'
import { createDistributedHistories } from './distributed-histories.ts'
import { createLinks } from './distributed-links.ts'
import { purgeDistributed } from './distributed-purge.ts'
import { createDistributedWrites, type WriteKind } from './distributed-writes.ts'

export interface DistributionPorts extends ApiPorts, RequestReaderPorts {
  readonly problems: Problems
  readonly sources: Sources
  readonly clock: Clock
  /** Value of splitEntities for requests that do not set it. */
  readonly splits?: boolean | undefined
}

/** A query for sources, and the route to run afterwards. */
interface Reading {
  readonly clientQuery: ClientQuery
  readonly one?: string
  readonly local: Route
}

type Route = (c: HttpContext) => Response | Promise<Response>

export function createDistribution(ports: DistributionPorts) {
  const { broker, requests, sources, problems, splits } = ports
  const reader = createReader({ sources, resolve: ports.contexts.resolve, clock: ports.clock })
  const writes = createDistributedWrites(ports)
  const batches = createDistributedBatches(ports)
  const discovery = createDistributedDiscovery(ports)
  const histories = createDistributedHistories(ports)

  /** The request, if context sources may take part. @throws peer.loop */
  function distributed(c: HttpContext): Distributed | undefined {
    const tenant = headerOf(c, 'ngsild-tenant') ?? ''
    const at = broker.tenant(tenant)
    if (at === undefined || at.registrations.isEmpty()) return undefined
    const { url } = c.req
    const query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?')) : '')
    const local = query.get('local')
    if (local === 'true' || (local === null && query.get('type')?.trim() === '*')) return undefined
    const alias = ports.alias(tenant)
    const via = refuseLoop(c, alias)
    const registrations = at.registrations
      .live()
      .map(({ registration }) => registration)
      .filter(
        ({ contextSourceAlias }) => contextSourceAlias === undefined || !via.includes(contextSourceAlias),
      )
    if (registrations.length === 0) return undefined
    const requester = { registrations: at.registrations, tenant, alias, headers: c.env.incoming.headers }
    return {
      c,
      broker: at,
      requester,
      registrations,
      path: url.slice(url.indexOf('/', url.indexOf('://') + 3)),
    }
  }

  async function readFirst(
    { c, broker: at, requester, registrations }: Distributed,
    parsed: Pick<RequestHead, 'context'>,
    { clientQuery: given, one, local }: Reading,
  ): Promise<Response> {
    const { map } = c.env
    const clientQuery = mappedQuery({ ...given, splits: given.splits ?? splits }, map)
    const through = (gathered: GatheredCopies): TenantBroker =>
      map?.through(gathered.broker, gathered) ?? gathered.broker
    const read = {
      requester,
      broker: at,
      registrations: mappedSources(registrations, map),
      context: parsed.context,
      headers: plainHeaders(c),
      mapParameters: map?.mapParameters,
    }
    const links = createLinks()
    const first = await reader.gather(read, clientQuery, one)
    for (let known = first; ; ) {
      const missing = links()
      const answer = await runRoute(problems, c, { ...through(known), linked: missing.linked }, local)
      const more =
        (known === first ? await completed(read, clientQuery, first) : undefined) ??
        (answer.ok
          ? await reader.further(read, known, missing.queriesFor(registrations, parsed.context))
          : undefined)
      if (more === undefined) return withWarnings(answer, known.warnings)
      known = more
    }
  }

  /**
   * Completes the entities found with the parts that sources did not report; undefined if nothing is missing.
   * Sources evaluate conditions on their own part only. An entity that matches by one part may not match as a
   * whole, or may have further parts.
   */
  function completed(
    read: ReadRequest,
    { interests, parameters: { type } }: ClientQuery,
    first: GatheredCopies,
  ): Promise<GatheredCopies | undefined> {
    const attrs = interests[0]?.attrs
    const missing = first.uncertain().flatMap(({ registration, ids }) =>
      splitIds(ids).map((some) => {
        const parameters = { ...(type === undefined ? {} : { type }), id: some.join(',') }
        const clientQuery = { interests: [{ ids: some, attrs }], parameters, looksAt: [] }
        return { clientQuery, registrations: [registration] }
      }),
    )
    return reader.further(read, first, missing)
  }

  const retrieve = async (request: Distributed, local: Route): Promise<Response> => {
    const { c } = request
    const id = checkUri(c.req.param('id'), 'id')
    const parsed = await requests.readEntities(c, anyParameter)
    const type = parsed.parameters.get('type')
    const types = type === undefined ? undefined : parseTypeSelection(type, parsed.context.expand)
    const interest = { ids: [id], types, attrs: attrsWanted(parsed) }
    const datasets = datasetsWanted(parsed.parameters.get('datasetId'))
    const clientQuery = { interests: [interest], parameters: { id }, datasets, looksAt: [] }
    return readFirst(request, parsed, { clientQuery, one: id, local })
  }

  const queried = async (request: Distributed, local: Route): Promise<Response> => {
    const parsed = await requests.readEntities(request.c, anyParameter)
    const given = Object.fromEntries(parsed.parameters)
    refuseOrder(given['orderBy'] !== undefined, 'orderBy')
    const concerned = withSourceFilter(request, given['csf'], parsed.context)
    return readFirst(concerned, parsed, { clientQuery: clientQueryOf(given, parsed), local })
  }

  const queryByBody = async (request: Distributed, local: Route): Promise<Response> => {
    const { c } = request
    c.env = { ...c.env, body: await ports.bodies.raw(c) }
    const parsed = await requests.body(c, { known: anyParameter })
    if (!isObject(parsed.body) || selectsEveryType(parsed.body)) return local(c)
    refuseOrder(parsed.body['ordering'] !== undefined || parsed.body['orderBy'] !== undefined, 'ordering')
    const concerned = withSourceFilter(request, parsed.body['csf'], parsed.context)
    const isGeoJson = headerOf(c, 'accept')?.includes('application/geo+json')
    return readFirst(concerned, parsed, {
      clientQuery: clientQueryOfBody(parsed.body, { ...parsed, isGeoJson }),
      local,
    })
  }

  const purge = async (request: Distributed, local: PurgeRoutes): Promise<Response> => {
    const parsed = await requests.read(request.c, anyParameter)
    const { interests } = clientQueryOf(Object.fromEntries(parsed.parameters), parsed)
    const concerned = withSourceFilter(request, parsed.parameters.get('csf'), parsed.context)
    return purgeDistributed(ports, concerned, { interests, context: parsed.context, local })
  }

  /** The merged entities of sources and this gateway; undefined if no source takes part. */
  const gathering: SnapshotSources = {
    entities(c, parsed, query) {
      const request = selectsEveryType(query) ? undefined : distributed(c)
      if (request === undefined) return undefined
      const { requester, broker: at, registrations } = request
      const read = { requester, broker: at, registrations, context: parsed.context, headers: plainHeaders(c) }
      const given = clientQueryOfBody(query, parsed)
      const clientQuery = { ...given, splits: given.splits ?? splits }
      return reader
        .gather(read, clientQuery, undefined)
        .then((first) => ({ ...first, completed: () => completed(read, clientQuery, first) }))
    },
    histories(c, parsed, query) {
      const request = selectsEveryType(query) ? undefined : distributed(c)
      return request === undefined ? undefined : histories.gather(request, parsed, query)
    },
  }

  /** The parts of an entity at all sources except one. */
  const partsAtOtherSources = async (
    tenant: string,
    id: string,
    but: string,
  ): Promise<readonly EntityCopy[]> => {
    const at = broker.tenant(tenant)
    if (at === undefined) return []
    const { registrations: known } = at
    const registrations = known
      .live()
      .map(({ registration }) => registration)
      .filter((one) => one.id !== but)
    const requester = { registrations: known, tenant, alias: ports.alias(tenant), headers: {} }
    const headers = { accept: 'application/json' }
    const read = { requester, broker: at, registrations, context: ports.contexts.core, headers }
    const clientQuery = { interests: [{ ids: [id] }], parameters: { id }, looksAt: [] }
    return (await reader.gather(read, clientQuery, id)).copies
  }

  const wrap =
    (run: (request: Distributed, local: Route) => Promise<Response>) =>
    (local: Route): Route =>
    (c) => {
      const request = distributed(c)
      if (request === undefined) return local(c)
      return run(request, local).then((answer) => withCommonHeaders(answer, request))
    }

  return Object.freeze({
    retrieve: wrap(retrieve),
    query: wrap(queried),
    queryByBody: wrap(queryByBody),
    purge: (local: PurgeRoutes): Route => wrap((request) => purge(request, local))(local.purge),
    gathering,
    partsAtOtherSources,
    splits,
    history: wrap(histories.retrieve),
    histories: wrap(histories.query),
    historiesByBody: wrap(histories.queryByBody),
    discover: (kind: DiscoveryKind, local: Route): Route =>
      wrap((request, route) => discovery.discover(request, { kind, local: route }))(local),
    write: (operation: SourceOperation, kind: WriteKind, local: Route): Route =>
      wrap((request, route) => writes.write(request, { operation, kind, local: route }))(local),
    batch: (operation: SourceOperation, local: Route): Route =>
      wrap((request, route) => batches.batch(request, { operation, local: route }))(local),
  })
}

/** Results of several brokers have no common order (4.23.1, 5.7.2.4). @throws ngsi-ld.bad-request-data */
function refuseOrder(isOrdered: boolean, field: string): void {
  if (isOrdered)
    throw badRequestData('is allowed only with local=true while context sources are registered', field)
}

/** Headers of a request to a source: the client's context. */
function plainHeaders(c: HttpContext): Readonly<Record<string, string>> {
  const link = headerOf(c, 'link')
  return { accept: 'application/json', ...(link === undefined ? {} : { link }) }
}

export type Distribution = ReturnType<typeof createDistribution>
