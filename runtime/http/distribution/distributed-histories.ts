/**
 * Histories with context sources (GS CIM 009, 5.7.3 and 5.7.4). Sources that offer temporal operations are
 * queried for the same time window, and the route runs on the merged histories.
 */
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { type ClientHistoryQuery, gatherHistories } from '#federation/histories.ts'
import {
  attrsWanted,
  clientQueryOf,
  clientQueryOfBody,
  datasetsWanted,
  selectsEveryType,
} from '#http/entities/forwarded-query.ts'
import { readQueryBody } from '#http/entities/query-body.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import {
  anyParameter,
  type Distributed,
  mappedQuery,
  mappedSources,
  runRoute,
  withSourceFilter,
  withWarnings,
} from '#http/request/distributed-request.ts'
import type { RequestHead } from '#http/request/request.ts'
import { parseTemporalSelection, temporalMembers } from '#ngsi-ld/history/temporal-query.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { type Parameters, wholeNumber } from '#ngsi-ld/query/url-parameters.ts'
import { isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { checkUri } from '#ngsi-ld/values/names.ts'
import type { DistributedWritePorts } from './distributed-writes.ts'

type Route = (c: HttpContext) => Response | Promise<Response>

export interface DistributedHistoryPorts extends DistributedWritePorts {
  readonly contexts: Contexts
  /** Value of splitEntities for requests that do not set it. */
  readonly splits?: boolean | undefined
}

export function createDistributedHistories({
  requests,
  bodies,
  contexts,
  problems,
  sources,
  splits,
}: DistributedHistoryPorts) {
  const ports = { sources, resolve: contexts.resolve }

  async function answerWith(
    { c, broker, requester, registrations }: Distributed,
    { context }: Pick<RequestHead, 'context'>,
    { clientQuery, one, local }: { clientQuery: ClientHistoryQuery; one?: string; local: Route },
  ): Promise<Response> {
    const link = headerOf(c, 'link')
    const headers = { accept: 'application/json', ...(link === undefined ? {} : { link }) }
    const { map } = c.env
    const from = mappedSources(registrations, map)
    const read = {
      requester,
      broker,
      registrations: from,
      context,
      headers,
      mapParameters: map?.mapParameters,
    }
    const mapped = mappedQuery({ ...clientQuery, splits: clientQuery.splits ?? splits }, map)
    const gathered = await gatherHistories(ports, read, mapped, one)
    const at = map?.through(gathered.broker, gathered) ?? gathered.broker
    return withWarnings(await runRoute(problems, c, at, local), gathered.warnings)
  }

  return Object.freeze({
    /** The merged histories of sources and this gateway for a query body. */
    gather({ c, broker, requester, registrations }: Distributed, parsed: RequestHead, query: JsonObject) {
      const link = headerOf(c, 'link')
      const headers = { accept: 'application/json', ...(link === undefined ? {} : { link }) }
      const { parameters } = readQueryBody(query, parsed.context.expand, { temporal: true })
      const clientQuery = { ...clientQueryOfBody(query, parsed), ...timeOf(parameters) }
      const read = { requester, broker, registrations, context: parsed.context, headers }
      return gatherHistories(ports, read, { ...clientQuery, splits: clientQuery.splits ?? splits })
    },

    async retrieve(request: Distributed, local: Route): Promise<Response> {
      const { c } = request
      const id = checkUri(c.req.param('id'), 'id')
      const parsed = await requests.read(c, anyParameter)
      const type = parsed.parameters.get('type')
      const types = type === undefined ? undefined : parseTypeSelection(type, parsed.context.expand)
      const interests = [{ ids: [id], types, attrs: attrsWanted(parsed) }]
      const datasets = datasetsWanted(parsed.parameters.get('datasetId'))
      const clientQuery = {
        interests,
        parameters: { id },
        datasets,
        looksAt: [],
        ...timeOf(parsed.parameters),
      }
      return answerWith(request, parsed, { clientQuery, one: id, local })
    },

    async query(request: Distributed, local: Route): Promise<Response> {
      const parsed = await requests.read(request.c, anyParameter)
      const clientQuery = {
        ...clientQueryOf(Object.fromEntries(parsed.parameters), parsed),
        ...timeOf(parsed.parameters),
      }
      const concerned = withSourceFilter(request, parsed.parameters.get('csf'), parsed.context)
      return answerWith(concerned, parsed, { clientQuery, local })
    },

    async queryByBody(request: Distributed, local: Route): Promise<Response> {
      const { c } = request
      c.env = { ...c.env, body: await bodies.raw(c) }
      const parsed = await requests.body(c, { known: anyParameter })
      if (!isObject(parsed.body) || selectsEveryType(parsed.body)) return local(c)
      const { parameters } = readQueryBody(parsed.body, parsed.context.expand, { temporal: true })
      const clientQuery = { ...clientQueryOfBody(parsed.body, parsed), ...timeOf(parameters) }
      const concerned = withSourceFilter(request, parameters.get('csf'), parsed.context)
      return answerWith(concerned, parsed, { clientQuery, local })
    },
  })
}

/** The requested time window. The route reports errors in it. */
function timeOf(parameters: Parameters): Pick<ClientHistoryQuery, 'times' | 'query'> {
  const times = Object.fromEntries([...parameters].filter(([name]) => temporalMembers.has(name)))
  const lastN = wholeNumber(parameters, 'lastN')
  return { times, query: { ...parseTemporalSelection(times), lastN, limit: Number.MAX_SAFE_INTEGER } }
}
