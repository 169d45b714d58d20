/**
 * The short way of the most frequent requests: to retrieve an entity, or to list some, of this gateway alone, in the core
 * context. It takes a request before a Request is made of it and writes to the connection itself, which saves half of
 * what is done beside the kernel's part. It says what the routes say, byte for byte; whatever is unusual about a request, and whatever is
 * to be refused, goes the long way.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Broker } from '#broker/tenant/tenant-broker.ts'
import {
  type AnswerType,
  answerType,
  entityTypes,
  geoJson,
  type Parameters,
  parametersOf,
} from '#http/request/negotiate.ts'
import type { ApiRequest } from '#http/request/request.ts'
import type { DirectReads, Reply } from '#http/request/response.ts'
import type { Context, QueryContext } from '#ngsi-ld/context/context.ts'
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

/** Headers with which a request means another answer, or another way to it. */
const unusual = ['link', 'ngsild-snapshot', 'ngsild-entitymap', 'prefer', 'via', 'origin'] as const

/** A path and a query that no reader of URLs would change; in the query, ASCII may be encoded. */
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
  const retrievals = createKept<PreparedRetrieval>()
  const queries = createKept<PreparedQuery>()

  const retrieve = (url: string, request: ApiRequest, knows: string | undefined): Reply | undefined => {
    const start = url.indexOf('?')
    const id = url.slice(onePath.length, start === -1 ? url.length : start)
    // Where a path has more segments the table of routes says what they mean; an id may end like one of them.
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

  const askOf = ({ accept, 'ngsild-tenant': name = '' }: IncomingHttpHeaders): ApiRequest | undefined => {
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
      const request = askOf(headers)
      if (request === undefined) return undefined
      const reply = isOne ? retrieve(url, request, headers['if-none-match']) : list(url, request)
      if (reply !== undefined) requests.value++
      return reply
    } catch {
      // The long way refuses it in the right words.
      return undefined
    }
  }
}

const nothing: Parameters = new Map()

function isPlain(url: string, headers: IncomingHttpHeaders): boolean {
  if (!plainTarget.test(url) || dotSegment.test(url) || encodedName.test(url)) return false
  if (url.includes('entityMap')) return false
  if (!plainHost.test(headers.host ?? '')) return false
  for (const name of unusual) if (headers[name] !== undefined) return false
  return true
}

/**
 * Wishes by the text they were read from. A wish follows from the text and from which short names the broker knows, so it
 * is used again while the latter is the same. A wish that looks at further entities depends on more, and is not used here.
 */
function createKept<Prepared extends { readonly rendering: Rendering }>() {
  const kept = new Map<
    string,
    { readonly prepared: Prepared | undefined; readonly names: QueryContext['lookedUp'] }
  >()
  return (
    text: string,
    request: ApiRequest,
    read: (text: string, request: ApiRequest) => Prepared,
  ): Prepared | undefined => {
    const { isKnown } = request.broker.inventory
    const found = kept.get(text)
    if (found !== undefined && isSame(found.names, isKnown)) return found.prepared
    const context = request.context.forQueries?.(isKnown)
    const prepared = read(text, context === undefined ? request : { ...request, context })
    const own = prepared.rendering.joins === true ? undefined : prepared
    if (text.length > limits.preparedQueryCharactersMax.value) return own
    kept.set(text, { prepared: own, names: context?.lookedUp ?? noNames })
    if (kept.size > limits.preparedQueriesMax.value) kept.delete(kept.keys().next().value!)
    return own
  }
}

const noNames: QueryContext['lookedUp'] = new Map()

function isSame(names: QueryContext['lookedUp'], isKnown: (name: string) => boolean): boolean {
  for (const [name, known] of names) if (isKnown(name) !== known) return false
  return true
}
