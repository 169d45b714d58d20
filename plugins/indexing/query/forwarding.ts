/**
 * What the index cannot answer goes to the brokers: names are written out in full, since no context goes with them, and paths
 * through relationships in the standard's own words. One broker answers as it does, and a page that it ends early is filled from
 * its next ones; of several the entities are merged by their ids, the first broker's first, and pages are cut of the whole.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerAnswer, BrokerPort, Json, WrittenAnswer } from '#contract'
import { printTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { printQuery } from '#ngsi-ld/query/query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseProjection, printProjection } from '#ngsi-ld/representation/projection.ts'
import { isList, isObject, type JsonObject } from '#ngsi-ld/values/json.ts'
import { warningLine } from '#ngsi-ld/values/warning-lines.ts'
import { inBraces } from '#plugins/indexing/entries/paths.ts'
import type { Paging, Parameters, Question } from './index-query.ts'
import { joined, unjoined } from './joining.ts'

export interface Forwarded {
  readonly status: number
  readonly text: string
  readonly type: string
  readonly count: string | undefined
  /** Parameters of the next page, where the broker names one: it may end a page early, by its bytes. */
  readonly next?: URLSearchParams | undefined
  /** Addresses of those who answered. */
  readonly by: readonly string[]
  readonly warnings: readonly string[]
}

const entities = '/ngsi-ld/v1/entities'
const itself = (name: string): string => name

/** The parameters as any broker reads them, without those of pages. */
export function writtenOut(
  parameters: Parameters,
  { selection, q }: Question,
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

/** Parameters that are names of attributes with commas between. */
const nameLists: ReadonlySet<string> = new Set([
  'attrs',
  'geoproperty',
  'geometryProperty',
  'expandValues',
  'jsonKeys',
])

/** Members, each with a direction or not. */
function orderWrittenOut(text: string, expand: (term: string) => string): string {
  const members = text.split(',').map((member) => {
    const [path = '', ...direction] = member.split(';')
    return [printQuery(parseQuery(path.trim(), expand, { field: 'orderBy' })), ...direction].join(';')
  })
  return members.join()
}

export interface Asking {
  readonly parameters: URLSearchParams
  readonly paging: Paging
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** @throws GatewayError peer.timeout or peer.unavailable where nobody answered. */
export async function askAll(brokers: readonly BrokerPort[], asking: Asking): Promise<Forwarded> {
  const [only, ...others] = brokers
  if (only === undefined) throw new GatewayError('peer.unavailable', 'no broker is registered')
  return others.length === 0 ? askOnly(only, asking) : merge(brokers, asking)
}

/** The page of the only broker. Clients page by offset, so a page that the broker ends early is filled up to its limit. */
async function askOnly(broker: BrokerPort, asking: Asking): Promise<Forwarded> {
  const first = await askOne(broker, asking)
  const { limit } = asking.paging
  if (first.status !== 200 || first.next === undefined || limit === 0) return first
  const body = jsonIn(first.text)
  const found = itemsIn(body)
  if (found === undefined || found.length >= limit) return first
  const all = [...found]
  // Lists are put together as texts: to write 16 MB of JSON at once would stop everything else.
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
    const page: Forwarded = await askPage(broker, next, asking)
    const more = page.status === 200 ? itemsIn(jsonIn(page.text)) : undefined
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

/** What stands within the brackets of a list. */
const innerText = (list: string): string => list.trim().slice(1, -1).trim()

/** The JSON of a text; undefined where it is none. */
function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function askOne(broker: BrokerPort, { parameters, paging, ...asking }: Asking): Promise<Forwarded> {
  const page = new URLSearchParams(parameters)
  page.set('limit', String(paging.limit))
  page.set('offset', String(paging.offset))
  if (paging.count) page.set('count', 'true')
  return askPage(broker, page, asking)
}

async function askPage(
  broker: BrokerPort,
  page: URLSearchParams,
  { headers, signal }: Pick<Asking, 'headers' | 'signal'>,
): Promise<Forwarded> {
  const answer = await ask(broker, page, { headers, signal })
  if ('failure' in answer) throw failed(broker, answer)
  return {
    status: answer.status,
    text: answer.text,
    type: answer.headers['content-type'] ?? 'application/json',
    count: answer.headers['ngsild-results-count'],
    next: nextIn(String(answer.headers['link'] ?? '')),
    by: [broker.address],
    warnings: warningsIn(answer),
  }
}

/** Parameters alone, so that a link leads to no other place. */
function nextIn(link: string): URLSearchParams | undefined {
  const [, parameters] = /<[^<>?]*\??([^<>]*)>[^<]*?\brel="?next\b/.exec(link) ?? []
  return parameters === undefined ? undefined : new URLSearchParams(parameters)
}

const warningsIn = ({ headers }: Pick<WrittenAnswer, 'headers'>): readonly string[] =>
  [headers['ngsild-warning'] ?? []].flat()

const ask = (
  broker: BrokerPort,
  parameters: URLSearchParams,
  { headers, signal }: Pick<Asking, 'headers' | 'signal'>,
): Promise<BrokerAnswer> =>
  broker.exchange({
    method: 'GET',
    path: `${entities}?${parameters.toString()}`,
    headers,
    signal,
    timeoutMs: limits.indexForwardMs.value,
  })

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

/** What one broker has of a question. */
interface Part {
  /** Or features. */
  readonly entities: readonly JsonObject[]
  readonly type?: string | undefined
  /** What its answers warned of. */
  readonly warnings: ReadonlySet<string>
  readonly refusal?: Forwarded | GatewayError
}

async function merge(brokers: readonly BrokerPort[], asking: Asking): Promise<Forwarded> {
  const { limit, offset, count } = asking.paging
  if (asking.parameters.has('orderBy'))
    throw new GatewayError(
      'ngsi-ld.not-supported',
      `orderBy over the entities of ${brokers.length} brokers: ask with local=true for those of this gateway`,
    )
  const most = limits.indexForwardEntities.value
  if (offset + limit > most)
    throw new GatewayError('ngsi-ld.too-many-results', `pages of several brokers end at ${most} entities`)
  // One more tells whether there are more than can be counted.
  const wanted = count ? most + 1 : offset + limit
  const read = { characters: 0 }
  const parts = await Promise.all(brokers.map((broker) => readAll(broker, asking, { wanted, read })))
  if (read.characters > limits.indexForwardCharacters.value)
    throw new GatewayError(
      'ngsi-ld.too-many-results',
      `entities of several brokers are merged up to ${limits.indexForwardCharacters.value} characters`,
    )
  if (parts.some(({ entities: found }) => found.length > most))
    throw new GatewayError(
      'ngsi-ld.too-many-results',
      `entities of several brokers are counted up to ${most} of each`,
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
  /** Of all brokers together. */
  readonly read: { characters: number }
}

/** The first `wanted` entities of a broker, page by page; fewer where too much was read. */
async function readAll(broker: BrokerPort, asking: Asking, { wanted, read }: Extent): Promise<Part> {
  const found: JsonObject[] = []
  const warnings = new Set<string>()
  const refused = (refusal: Forwarded | GatewayError): Part => ({ entities: [], warnings, refusal })
  let type: string | undefined
  const step = Math.min(wanted, limits.pageMax.value)
  const parameters = joined(asking.parameters)
  while (found.length < wanted && read.characters <= limits.indexForwardCharacters.value) {
    const paging = { limit: step, offset: found.length, count: false }
    try {
      const answer = await askOne(broker, { ...asking, ...(parameters && { parameters }), paging })
      if (answer.status !== 200) return refused(answer)
      read.characters += answer.text.length
      const page = itemsIn(JSON.parse(answer.text) as Json)
      type ??= answer.type
      if (page === undefined)
        return refused(new GatewayError('peer.refused', `${broker.address} answered no entities`))
      for (const warning of answer.warnings) warnings.add(warning)
      found.push(...(parameters === undefined ? page : page.map(unjoined)))
      if (page.length === 0 || (page.length < step && answer.next === undefined)) break
    } catch (error) {
      return refused(
        error instanceof GatewayError
          ? error
          : new GatewayError('peer.refused', `${broker.address} answered what is no JSON`),
      )
    }
  }
  return { entities: found, type, warnings }
}

/** Entities of a list, features of a collection. */
function itemsIn(body: Json | undefined): readonly JsonObject[] | undefined {
  const items =
    body !== undefined && isObject(body) && body['type'] === 'FeatureCollection' ? body['features'] : body
  return isList(items) && items.every(isObject) ? items : undefined
}

/** One entity by its id, of the first broker that has it. */
export async function askForOne(
  brokers: readonly BrokerPort[],
  path: string,
  { headers, signal }: Pick<Asking, 'headers' | 'signal'>,
): Promise<Forwarded> {
  let last: Forwarded | undefined
  const warnings: string[] = []
  for (const broker of brokers) {
    const answer = await broker.exchange({
      method: 'GET',
      path,
      headers,
      signal,
      timeoutMs: limits.indexForwardMs.value,
    })
    if ('failure' in answer) {
      if (brokers.length === 1) throw failed(broker, answer)
      warnings.push(warningOf(failed(broker, answer).message))
      continue
    }
    const found: Forwarded = {
      status: answer.status,
      text: answer.text,
      type: answer.headers['content-type'] ?? 'application/json',
      count: undefined,
      by: [broker.address],
      warnings: [...warnings, ...warningsIn(answer)],
    }
    if (answer.status === 200) return found
    last ??= found
  }
  if (last === undefined) throw new GatewayError('peer.unavailable', 'no broker can be reached')
  return last
}

/** A value of NGSILD-Warning. */
export const warningOf = (text: string): string => warningLine(199, 'selvedge', text)
