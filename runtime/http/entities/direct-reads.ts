/**
 * Fast path for the most frequent requests: retrieving an entity or listing entities of this gateway in the
 * core context. It handles a request before a Request object is built and writes to the connection itself,
 * which halves the time spent outside the kernel. Its responses equal those of the full routes byte for byte.
 * Unusual requests, and all that would be refused, are left to the full routes.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import type { Reply } from '#contract'
import { type AnswerType, answerType, entityTypes, geoJson, parametersOf } from '#http/request/negotiate.ts'
import type { ApiRequest } from '#http/request/request.ts'
import type { DirectReads } from '#http/request/response.ts'
import type { Context, QueryContext } from '#ngsi-ld/context/context.ts'
import type { Parameters } from '#ngsi-ld/query/url-parameters.ts'
import {
  type EntityReads,
  type PreparedQuery,
  type PreparedRetrieval,
  queryParameters,
  retrieveParameters,
} from './entity-reads.ts'
import { entitiesPath } from './entity-routes.ts'
import type { Rendering } from './rendering.ts'

export interface DirectReadPorts {
  readonly broker: Broker
  readonly core: Context
  readonly reads: EntityReads
  readonly metrics: Metrics
}

/** Headers that change the response or its path through the routes. */
const unusual = ['link', 'ngsild-snapshot', 'ngsild-entitymap', 'prefer', 'via', 'origin'] as const

/**
 * A path and query that URL parsers leave unchanged; in the query, ASCII characters may be percent-encoded.
 */
const plainTarget = /^\/[!$&-;=@-[\]_a-z~]*(?:\?(?:[!$&-;=?-[\]_a-z~]|%[2-7][\da-f])*)?$/i
const encodedName = /[?&][^=&]*%/
const dotSegment = /\/\.\.?(?:[/?]|$)/
const plainHost = /^[a-z0-9._-]+(?::\d{1,5})?$/
const onePath = `${entitiesPath}/`
const listPath = `${entitiesPath}?`

export function createDirectReads(
  { broker, core, reads, metrics }: DirectReadPorts,
  settings: { readonly defaultMediaType: AnswerType },
): DirectReads {
  const requests = metrics.counter('selvedge_http_requests_total')
  const retrievals = createCache<PreparedRetrieval>()
  const queries = createCache<PreparedQuery>()

  const retrieve = (url: string, request: ApiRequest, knows: string | undefined): Reply | undefined => {
    const start = url.indexOf('?')
    const id = url.slice(onePath.length, start === -1 ? url.length : start)
    // Paths with more segments are left to the router; the end of an id may look like one of them.
    if (id.includes('/')) return undefined
    const view = request.broker.retrieve(id)
    if (view === undefined) return undefined
    const prepared = retrievals(start === -1 ? '' : url.slice(start), request, (text, reading) =>
      reads.prepareRetrieval({ ...reading, parameters: parametersOf(text, retrieveParameters) }),
    )
    return prepared && reads.one(request, view, prepared, knows)
  }

  const list = (url: string, request: ApiRequest): Reply | undefined => {
    const prepared = queries(url, request, (text, reading) =>
      reads.prepareQuery(
        { ...reading, parameters: parametersOf(text, queryParameters) },
        { url: `http://localhost${text}` },
      ),
    )
    return prepared && reads.shortPage(request, prepared)
  }

  const requestOf = ({ accept, 'ngsild-tenant': name = '' }: IncomingHttpHeaders): ApiRequest | undefined => {
    const tenant = String(name)
    const at = broker.tenant(tenant)
    if (at === undefined || !at.registrations.isEmpty()) return undefined
    const type = answerType(accept, settings.defaultMediaType, entityTypes)
    return type === geoJson ? undefined : { tenant, broker: at, context: core, parameters: nothing, type }
  }

  return ({ method, url = '', headers }) => {
    if (method !== 'GET' || !url.startsWith(entitiesPath) || !isPlain(url, headers)) return undefined
    const isOne = url.startsWith(onePath)
    if (!isOne && !url.startsWith(listPath)) return undefined
    try {
      const request = requestOf(headers)
      if (request === undefined) return undefined
      const reply = isOne ? retrieve(url, request, headers['if-none-match']) : list(url, request)
      if (reply !== undefined) requests.value++
      return reply
    } catch {
      // The full route produces the error.
      return undefined
    }
  }
}

const nothing: Parameters = new Map()

function isPlain(url: string, headers: IncomingHttpHeaders): boolean {
  if (!plainTarget.test(url)) return false
  if (url.includes('/.') && dotSegment.test(url)) return false
  if (url.includes('%') && encodedName.test(url)) return false
  if (url.includes('entityMap')) return false
  if (!plainHost.test(headers.host ?? '')) return false
  for (const name of unusual) if (headers[name] !== undefined) return false
  return true
}

/**
 * Caches prepared queries by their text. A prepared query depends only on its text and on the short names
 * that the broker knows. It is reused while these names stay unchanged. Queries that join linked entities
 * depend on more and are not cached.
 */
function createCache<Prepared extends { readonly rendering: Rendering }>() {
  const cached = new Map<
    string,
    { readonly prepared: Prepared | undefined; readonly names: QueryContext['lookedUp'] }
  >()
  return (
    text: string,
    request: ApiRequest,
    read: (text: string, request: ApiRequest) => Prepared,
  ): Prepared | undefined => {
    const { isKnown } = request.broker.inventory
    const found = cached.get(text)
    if (found !== undefined && isSame(found.names, isKnown)) return found.prepared
    const context = request.context.forQueries?.(isKnown)
    const prepared = read(text, context === undefined ? request : { ...request, context })
    const own = prepared.rendering.joins === true ? undefined : prepared
    if (text.length > limits.preparedQueryCharactersMax.value) return own
    cached.set(text, { prepared: own, names: context?.lookedUp ?? noNames })
    if (cached.size > limits.preparedQueriesMax.value) cached.delete(cached.keys().next().value!)
    return own
  }
}

const noNames: QueryContext['lookedUp'] = new Map()

function isSame(names: QueryContext['lookedUp'], isKnown: (name: string) => boolean): boolean {
  for (const [name, known] of names) if (isKnown(name) !== known) return false
  return true
}
