/**
 * Routes that read temporal entities (GS CIM 009, 6.18, 6.19 and 6.24): the evolution of one entity, and
 * queries. A response holds a bounded number of instances; a longer evolution is returned as 206 with the
 * time range it covers.
 */

import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { EntityAggregates, EntityHistory, TemporalQuery } from '#broker/history/temporal-requests.ts'
import type { EntityQuery } from '#broker/state/entity-queries.ts'
import {
  entityQueryOf,
  searchParameters,
  typeHint,
  typesOf,
  withShortNames,
} from '#http/entities/entity-search.ts'
import { readQueryBody } from '#http/entities/query-body.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import { answerTypes } from '#http/request/negotiate.ts'
import { pageLinks } from '#http/request/paging.ts'
import { idOf } from '#http/request/path-ids.ts'
import { type ApiRequest, withWarning } from '#http/request/request.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { partOf, type TemporalPart } from '#ngsi-ld/history/temporal-part.ts'
import { type Evolution, isShown, renderEvolution, renderHead } from '#ngsi-ld/history/temporal-query.ts'
import { type EntitySelector, matchesType } from '#ngsi-ld/query/entity-selector.ts'
import { hasLinked, type QueryPath } from '#ngsi-ld/query/query.ts'
import type { Amendment } from '#ngsi-ld/representation/conformance.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { badRequestData, invalidRequest, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { capacityFor, firstRead, readMore } from './instance-budget.ts'
import { retrievedHistory } from './retrieved-history.ts'
import { type HistoryOptions, historyOptionsOf, historyParameters } from './temporal-parameters.ts'

export const temporalPath = '/ngsi-ld/v1/temporal/entities'
export const temporalQueryPath = '/ngsi-ld/v1/temporal/entityOperations/query'

export interface TemporalRouteSettings {
  /** Maximum number of instances in a response. */
  readonly instancesMax: number
}

const mapParameters = ['entityMap', 'entityMapLifetime']
const retrieveParameters = new Set<string>([...historyParameters, ...mapParameters, 'local', 'type'])
const queryParameters = new Set<string>([
  ...historyParameters,
  ...searchParameters,
  ...mapParameters,
  'local',
  'limit',
  'offset',
  'count',
])
/** URL parameters allowed beside a query body, for options without a member in the specification. */
const bodyQueryParameters = new Set<string>([...historyParameters, 'local', 'limit', 'offset', 'count'])

export function createTemporalRoutes(
  { requests, answers }: ApiPorts,
  { instancesMax }: TemporalRouteSettings,
) {
  function historyOptions({ env }: HttpContext, request: ApiRequest): HistoryOptions {
    const options = historyOptionsOf(request.parameters, request.context, instancesMax)
    const goOn = (): void => {
      if (env.outgoing?.closed === true) throw invalidRequest('the client closed the connection')
    }
    const aggregates = options.aggregates && { ...options.aggregates, goOn }
    return { ...options, query: { ...options.query, goOn }, aggregates }
  }

  async function retrieve(c: HttpContext, request: ApiRequest): Promise<Response> {
    const id = idOf(c)
    const options = historyOptions(c, request)
    const context = answers.contextFor(request)
    const types = typesOf(request)
    const isMeant = <Found extends { readonly type: string | readonly string[] }>(
      found: Found | undefined,
    ): found is Found => found !== undefined && (types === undefined || matchesType(types, found.type))
    if (options.aggregates !== undefined) {
      const found = await request.broker.temporal.aggregate(id, options.aggregates)
      if (!isMeant(found)) throw unknown(id)
      // An answer may hold 10,000 periods: summing up, rendering and writing them get a turn each.
      await nextTurn()
      checkAttributes(request, id, options, found)
      const text = textOf(aggregated(found, options, context), id)
      await nextTurn()
      return answers.entity(request, text, context)
    }
    const read = reading(request, options)
    const found = await retrievedHistory((query) => read(id, query), options.query, {
      most: instancesMax,
      asValues: options.rendering.values,
    })
    if (found === undefined || !isMeant(found.evolution)) throw unknown(id)
    checkAttributes(request, id, options, found.evolution)
    const evolution = amended(found.evolution, request.amendment, context)
    const text = textOf(renderEvolution(evolution, { ...options.rendering, context }), id)
    if (found.range !== undefined) await nextTurn()
    return found.range === undefined
      ? answers.entity(request, text, context)
      : answers.partial(request, text, context, found.range)
  }

  /** @throws ngsi-ld.not-found if the entity never had any of the attributes in `attrs`. */
  function checkAttributes(
    { broker }: ApiRequest,
    id: string,
    { attrs }: HistoryOptions,
    { attributes }: Pick<Evolution | EntityAggregates, 'attributes'>,
  ): void {
    if (attrs === undefined || attributes.size > 0) return
    const ever = broker.history(id, { timeproperty: 'createdAt', attrs, limit: 1 })
    if (ever === undefined || ever.attributes.size === 0)
      throw notFound(`${id} has no history of ${[...attrs].join()}`)
  }

  async function list(
    c: HttpContext,
    request: ApiRequest,
    chosen?: readonly EntitySelector[],
  ): Promise<Response> {
    const options = historyOptions(c, request)
    const selectors = chosen ?? (c.env.map?.page === undefined ? undefined : [])
    const search = entityQueryOf(request, options.attrs, selectors)
    if (options.query.timerel === undefined) {
      throw badRequestData('is required, with timeAt: a temporal query needs a time window', 'timerel')
    }
    if (search.order?.terms.some(({ path }) => !isId(path)) === true)
      throw badRequestData('must be id, because attributes have many values in a history', 'orderBy')
    if (search.q !== undefined && hasLinked(search.q))
      throw badRequestData('must not have conditions on linked entities in a temporal query', 'q')
    const context = answers.contextFor(request)
    const { rendered, range, more, count, shown } = await found(request, search, options, context)
    const texts = rendered.filter((json) => Object.keys(json).length > 0).map((json) => JSON.stringify(json))
    const hint = texts.length === 0 && search.offset === 0 ? typeHint(search, request) : undefined
    return answers.list(
      withWarning(request, hint),
      { texts, context },
      { count, links: pageLinks(c.req.url, search, { more, shown }), range },
    )
  }

  const reading =
    (request: ApiRequest, options: HistoryOptions) =>
    (id: string, query: TemporalQuery): EntityHistory | undefined => {
      const found = request.broker.history(id, query)
      return found && shownOf(found, options)
    }

  /** The part of the histories that fits into the response. */
  function partAfter(
    first: readonly EntityHistory[],
    query: TemporalQuery,
    { request, options }: { readonly request: ApiRequest; readonly options: HistoryOptions },
  ): TemporalPart {
    const most = capacityFor(first, instancesMax)
    return partOf(readMore(first, { query, most }, reading(request, options)), most, options.query)
  }

  async function found(request: ApiRequest, search: EntityQuery, options: HistoryOptions, context: Context) {
    if (options.aggregates !== undefined) {
      const page = await request.broker.temporal.searchAggregates(search, options.aggregates)
      const rendered = page.found.map((one) => aggregated(one, options, context))
      return { ...page, range: undefined, rendered, shown: rendered.length }
    }
    const query = firstRead(options.query, search.limit)
    const page = await request.broker.temporal.search(search, query)
    const first = page.found.map((one) => shownOf(one, options))
    const part = partAfter(first, query, { request, options })
    const rendered = part.evolutions.map((one) =>
      renderEvolution(amended(one, request.amendment, context), { ...options.rendering, context }),
    )
    return { ...page, range: part.range, rendered, shown: first.length }
  }

  return Object.freeze({
    retrieve: async (c: HttpContext): Promise<Response> =>
      retrieve(c, withShortNames(await requests.read(c, retrieveParameters))),
    query: async (c: HttpContext): Promise<Response> =>
      list(c, withShortNames(await requests.read(c, queryParameters))),

    /** POST temporal/entityOperations/query: the members of the body replace the URL parameters (5.2.23). */
    async queryByBody(c: HttpContext): Promise<Response> {
      const { body, ...request } = withShortNames(await requests.query(c, bodyQueryParameters))
      if (request.isGeoJson === true) {
        throw new GatewayError('http.not-acceptable', 'history has no GeoJSON form', {
          available: answerTypes,
        })
      }
      const { parameters, entities } = readQueryBody(body, request.context.expand, { temporal: true })
      const twice = [...parameters.keys()].find((name) => request.parameters.has(name))
      if (twice !== undefined) throw badRequestData('is given twice, in the URL and in the body', twice)
      const all = new Map([...request.parameters, ...parameters])
      const foreign = [...all.keys()].find((name) => !queryParameters.has(name))
      if (foreign !== undefined) throw badRequestData('is not a member of a temporal query', foreign)
      return list(c, { ...request, parameters: all }, entities)
    },
  })
}

const isId = ({ names, member }: QueryPath): boolean => names.join() === 'id' && member === undefined

const unknown = (id: string) => notFound(`no history of ${id}`)

function textOf(json: JsonObject, id: string): string {
  if (Object.keys(json).length === 0) throw notFound(`${id} has none of the requested members`)
  return JSON.stringify(json)
}

/** Converts an evolution to the version of the standard that the client prefers. */
function amended(evolution: Evolution, amendment: Amendment | undefined, { compact }: Context): Evolution {
  if (amendment === undefined) return evolution
  const attributes = [...evolution.attributes].map(
    ([name, instances]) =>
      [
        name,
        instances.map((one) => ({ ...one, instance: amendment.instance(one.instance, compact) })),
      ] as const,
  )
  return { ...evolution, attributes: new Map(attributes) }
}

/** Removes attributes that are not shown, so that they take no room in the response. */
function shownOf(history: EntityHistory, { rendering }: HistoryOptions): EntityHistory {
  if (rendering.omit === undefined && rendering.pick === undefined) return history
  const attributes = new Map([...history.attributes].filter(([name]) => isShown(name, rendering)))
  return { ...history, attributes }
}

/** @throws ngsi-ld.invalid-request if no method applies to an attribute that was requested by name. */
function aggregated(
  { attributes, ...head }: EntityAggregates,
  { rendering, query, aggregates }: HistoryOptions,
  context: Context,
): JsonObject {
  const rendered = renderHead(head, { ...rendering, context })
  const counts = aggregates?.methods.has('totalCount') || aggregates?.methods.has('distinctCount')
  for (const [name, lists] of attributes) {
    if (!isShown(name, rendering)) continue
    const term = context.compact(name)
    const shown = counts === true ? lists : lists.filter(hasResults)
    if (shown.length > 0) rendered[term] = shown.length === 1 ? shown[0]! : shown
    else if (query.attrs?.has(name) === true)
      throw invalidRequest(`aggrMethods: none applies to the values of ${term}`)
  }
  return rendered
}

const hasResults = (list: JsonObject): boolean =>
  Object.keys(list).some((member) => member !== 'type' && member !== 'datasetId')
