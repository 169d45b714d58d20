/**
 * Forwards queries that the index cannot answer. Names are expanded to full IRIs, because no context is sent,
 * and dotted paths are rewritten in the standard's syntax. With one broker, its response is returned, and a
 * short page is filled from the next ones. With several, entities are merged by id, the first broker takes
 * precedence, and pages are cut from the merged list.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerAnswer, BrokerPort, Json } from '#contract'
import { printTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { printQuery } from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import type { Paging, Parameters } from '#ngsi-ld/query/url-parameters.ts'
import { parseProjection, printProjection } from '#ngsi-ld/representation/projection.ts'
import { isList, isObject, type JsonObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { inBraces } from '#plugins/indexing/entries/paths.ts'
import type { IndexCriteria } from './index-query.ts'
import { joined, unjoined } from './joining.ts'

export interface Forwarded {
  readonly status: number
  readonly text: string
  readonly type: string
  readonly count: string | undefined
  /**
   * Parameters of the next page, if the broker links to one: a page may be short because of its size in
   * bytes.
   */
  readonly next?: URLSearchParams | undefined
  /** Addresses of the brokers that answered. */
  readonly by: readonly string[]
  readonly warnings: readonly string[]
}

const entities = '/ngsi-ld/v1/entities'
const itself = (name: string): string => name

/** The parameters in a form that any broker understands, without the paging parameters. */
export function writtenOut(
  parameters: Parameters,
  { selection, q }: IndexCriteria,
  expand: (term: string) => string,
): URLSearchParams {
  const written = new URLSearchParams()
  for (const [name, value] of parameters) {
    if (name === 'limit' || name === 'offset' || name === 'count') continue
    if (name === 'orderBy') written.set(name, orderWrittenOut(value, expand))
    else if (name === 'csf') written.set(name, printQuery(parseQuery(value, expand, { field: 'csf' })))
    else if (name === 'type' && selection !== undefined)
      written.set(name, printTypeSelection(selection, itself))
    else if (name === 'q' && q !== undefined) written.set(name, printQuery(inBraces(q)))
    else if (nameLists.has(name))
      written.set(
        name,
        value
          .split(',')
          .map((one) => expand(one.trim()))
          .join(),
      )
    else if (name === 'pick' || name === 'omit')
      written.set(name, printProjection(parseProjection(value, expand, name)).join())
    else if (name === 'options') {
      const others = value.split(',').filter((option) => option !== 'count')
      if (others.length > 0) written.set(name, others.join())
    } else written.set(name, value)
  }
  return written
}

/** Parameters with comma-separated attribute names. */
const nameLists: ReadonlySet<string> = new Set([
  'attrs',
  'geoproperty',
  'geometryProperty',
  'expandValues',
  'jsonKeys',
])

/** Comma-separated members, each with an optional direction. */
function orderWrittenOut(text: string, expand: (term: string) => string): string {
  const members = text.split(',').map((member) => {
    const [path = '', ...direction] = member.split(';')
    return [printQuery(parseQuery(path.trim(), expand, { field: 'orderBy' })), ...direction].join(';')
  })
  return members.join()
}

export interface ForwardedRequest {
  readonly parameters: URLSearchParams
  readonly paging: Paging
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** @throws GatewayError peer.timeout or peer.unavailable if no broker answered. */
export async function requestAll(
  brokers: readonly BrokerPort[],
  request: ForwardedRequest,
): Promise<Forwarded> {
  const [only, ...others] = brokers
  if (only === undefined) throw new GatewayError('peer.unavailable', 'no broker is registered')
  return others.length === 0 ? requestOnly(only, request) : merge(brokers, request)
}

/** The page of a single broker. Clients page by offset, so a short page is filled up to its limit. */
async function requestOnly(broker: BrokerPort, request: ForwardedRequest): Promise<Forwarded> {
  const first = await requestOne(broker, request)
  const { limit } = request.paging
  if (first.status !== 200 || first.next === undefined || limit === 0) return first
  const body = parsedJson(first.text)
  const found = itemsIn(body)
  if (found === undefined || found.length >= limit) return first
  const all = [...found]
  // Lists are concatenated as text: serializing 16 MB of JSON at once would block the event loop.
  const texts = [innerText(first.text)]
  const warnings = new Set(first.warnings)
  let characters = first.text.length
  let next: URLSearchParams | undefined = first.next
  while (next !== undefined && all.length < limit) {
    if (characters > limits.indexForwardCharacters.value)
      throw new GatewayError(
        'ngsi-ld.too-many-results',
        `a page has at most ${limits.indexForwardCharacters.value} characters; request fewer entities by limit`,
      )
    next.set('limit', String(limit - all.length))
    const page: Forwarded = await requestPage(broker, next, request)
    const more = page.status === 200 ? itemsIn(parsedJson(page.text)) : undefined
    if (more === undefined)
      throw new GatewayError(
        'peer.refused',
        `${broker.address} answered ${page.status} without entities to the rest of a page`,
      )
    if (more.length === 0) break
    all.push(...more)
    texts.push(innerText(page.text))
    characters += page.text.length
    for (const warning of page.warnings) warnings.add(warning)
    next = page.next
  }
  const text = isObject(body)
    ? JSON.stringify({ ...body, features: all })
    : `[${texts.filter((one) => one !== '').join()}]`
  return { ...first, text, warnings: [...warnings] }
}

/** The text between the brackets of a list. */
const innerText = (list: string): string => list.trim().slice(1, -1).trim()

function requestOne(
  broker: BrokerPort,
  { parameters, paging, ...request }: ForwardedRequest,
): Promise<Forwarded> {
  const page = new URLSearchParams(parameters)
  page.set('limit', String(paging.limit))
  page.set('offset', String(paging.offset))
  if (paging.count) page.set('count', 'true')
  return requestPage(broker, page, request)
}

async function requestPage(
  broker: BrokerPort,
  page: URLSearchParams,
  request: Pick<ForwardedRequest, 'headers' | 'signal'>,
): Promise<Forwarded> {
  const answer = await requestPath(broker, `${entities}?${page}`, request)
  if ('failure' in answer) throw failed(broker, answer)
  return answer
}

/** Sends a GET; a failure of the connection is returned. */
async function requestPath(
  broker: BrokerPort,
  path: string,
  { headers, signal }: Pick<ForwardedRequest, 'headers' | 'signal'>,
): Promise<Forwarded | Extract<BrokerAnswer, { failure: string }>> {
  const timeoutMs = limits.indexForwardMs.value
  const answer = await broker.exchange({ method: 'GET', path, headers, signal, timeoutMs })
  if ('failure' in answer) return answer
  return {
    status: answer.status,
    text: answer.text,
    type: answer.headers['content-type'] ?? 'application/json',
    count: answer.headers['ngsild-results-count'],
    next: nextIn(String(answer.headers['link'] ?? '')),
    by: [broker.address],
    warnings: [answer.headers['ngsild-warning'] ?? []].flat(),
  }
}

/** Returns only the parameters, so that a link cannot redirect the request to another address. */
function nextIn(link: string): URLSearchParams | undefined {
  const [, parameters] = /<[^<>?]*\??([^<>]*)>[^<]*?\brel="?next\b/.exec(link) ?? []
  return parameters === undefined ? undefined : new URLSearchParams(parameters)
}

function failed(broker: BrokerPort, answer: Extract<BrokerAnswer, { failure: string }>): GatewayError {
  if (answer.failure === 'timeout')
    return new GatewayError(
      'peer.timeout',
      `${broker.address} gave no answer within ${limits.indexForwardMs.value} ms`,
    )
  return answer.failure === 'oversized'
    ? new GatewayError('peer.refused', `${broker.address}: ${answer.reason}`)
    : new GatewayError('peer.unavailable', `${broker.address} cannot be reached: ${answer.reason}`)
}

/** The part of one broker in a merged response. */
interface Part {
  /** Entities or features. */
  readonly entities: readonly JsonObject[]
  readonly type?: string | undefined
  /** Warnings in its responses. */
  readonly warnings: ReadonlySet<string>
  readonly refusal?: Forwarded | GatewayError
}

async function merge(brokers: readonly BrokerPort[], request: ForwardedRequest): Promise<Forwarded> {
  const { limit, offset, count } = request.paging
  if (request.parameters.has('orderBy'))
    throw new GatewayError(
      'ngsi-ld.not-supported',
      `orderBy is not supported over ${brokers.length} brokers; use local=true to order the entities of this gateway`,
    )
  const most = limits.indexForwardEntities.value
  if (offset + limit > most)
    throw new GatewayError(
      'ngsi-ld.too-many-results',
      `offset plus limit must be at most ${most} when several brokers are queried`,
    )
  // Read one more entity than can be counted, to detect that there are too many.
  const wanted = count ? most + 1 : offset + limit
  const read = { characters: 0 }
  const parts = await Promise.all(brokers.map((broker) => readAll(broker, request, { wanted, read })))
  if (read.characters > limits.indexForwardCharacters.value)
    throw new GatewayError(
      'ngsi-ld.too-many-results',
      `entities of several brokers exceed ${limits.indexForwardCharacters.value} characters; request fewer`,
    )
  if (parts.some(({ entities: found }) => found.length > most))
    throw new GatewayError(
      'ngsi-ld.too-many-results',
      `count is limited to ${most} entities per broker when several brokers are queried`,
    )
  const refusals = parts.flatMap(({ refusal }) => refusal ?? [])
  if (refusals.length === parts.length) {
    const [first] = refusals as [Forwarded | GatewayError]
    if (first instanceof GatewayError) throw first
    return first
  }
  const merged = new Map<unknown, JsonObject>()
  for (const [at, { entities: found }] of parts.entries())
    for (const [i, one] of found.entries()) {
      const id = one['id'] ?? `${at} ${i}`
      if (!merged.has(id)) merged.set(id, one)
    }
  const all = [...merged.values()]
  const page = all.slice(offset, offset + limit)
  const type = parts.find((part) => part.type !== undefined)?.type ?? 'application/json'
  const isCollection = type.startsWith('application/geo+json')
  return {
    status: 200,
    text: JSON.stringify(isCollection ? { type: 'FeatureCollection', features: page } : page),
    type,
    count: count ? String(all.length) : undefined,
    by: brokers.flatMap(({ address }, i) => (parts[i]!.refusal === undefined ? [address] : [])),
    warnings: brokers.flatMap(({ address }, i) => {
      const { refusal, warnings } = parts[i]!
      if (refusal === undefined) return [...warnings]
      const why = refusal instanceof GatewayError ? refusal.message : `it answered ${refusal.status}`
      return [warningOf(`${address} is left out: ${why}`)]
    }),
  }
}

interface Extent {
  readonly wanted: number
  /** Characters read from all brokers together. */
  readonly read: { characters: number }
}

/** The first `wanted` entities of a broker, page by page; fewer if too many characters were read. */
async function readAll(
  broker: BrokerPort,
  request: ForwardedRequest,
  { wanted, read }: Extent,
): Promise<Part> {
  const found: JsonObject[] = []
  const warnings = new Set<string>()
  const refused = (refusal: Forwarded | GatewayError): Part => ({ entities: [], warnings, refusal })
  let type: string | undefined
  const step = Math.min(wanted, limits.pageMax.value)
  const parameters = joined(request.parameters)
  while (found.length < wanted && read.characters <= limits.indexForwardCharacters.value) {
    const paging = { limit: step, offset: found.length, count: false }
    try {
      const answer = await requestOne(broker, { ...request, ...(parameters && { parameters }), paging })
      if (answer.status !== 200) return refused(answer)
      read.characters += answer.text.length
      const page = itemsIn(JSON.parse(answer.text) as Json)
      type ??= answer.type
      if (page === undefined)
        return refused(
          new GatewayError('peer.refused', `${broker.address} did not answer with a list of entities`),
        )
      for (const warning of answer.warnings) warnings.add(warning)
      found.push(...(parameters === undefined ? page : page.map(unjoined)))
      if (page.length === 0 || (page.length < step && answer.next === undefined)) break
    } catch (error) {
      return refused(
        error instanceof GatewayError
          ? error
          : new GatewayError('peer.refused', `${broker.address} answered with invalid JSON`),
      )
    }
  }
  return { entities: found, type, warnings }
}

/** Entities of a list, or features of a collection. */
function itemsIn(body: Json | undefined): readonly JsonObject[] | undefined {
  const items =
    body !== undefined && isObject(body) && body['type'] === 'FeatureCollection' ? body['features'] : body
  return isList(items) && items.every(isObject) ? items : undefined
}

/** Retrieves one entity by id from the first broker that has it. */
export async function retrieveFromFirst(
  brokers: readonly BrokerPort[],
  path: string,
  request: Pick<ForwardedRequest, 'headers' | 'signal'>,
): Promise<Forwarded> {
  let last: Forwarded | undefined
  const warnings: string[] = []
  for (const broker of brokers) {
    const answer = await requestPath(broker, path, request)
    if ('failure' in answer) {
      if (brokers.length === 1) throw failed(broker, answer)
      warnings.push(warningOf(failed(broker, answer).message))
      continue
    }
    const found = { ...answer, count: undefined, warnings: [...warnings, ...answer.warnings] }
    if (answer.status === 200) return found
    last ??= found
  }
  if (last === undefined) throw new GatewayError('peer.unavailable', 'no broker can be reached')
  return last
}

/** An NGSILD-Warning value. */
export const warningOf = (text: string): string => warningLine(199, 'selvedge', text)
