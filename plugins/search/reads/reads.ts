/**
 * Reads of one GraphQL operation from the broker. Batches reads by id and by link target, and reads each
 * entity once. Counts requests and entities and stops at the limits. A broker failure becomes a GraphQL error
 * that names the broker and its answer.
 */

import DataLoader from 'dataloader'
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerPort, BrokerRequest } from '#contract'
import { parsedJson } from '#ngsi-ld/values/json.ts'
import { problemTextIn } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type EntityJson, targetsOf } from '#plugins/search/schema/entity-values.ts'
import type { FieldModel, Model } from '#plugins/search/schema/model.ts'
import type { Near } from '#plugins/search/schema/query-criteria.ts'

/** A query to a broker. */
export interface BrokerQuery {
  readonly types: readonly string[]
  readonly ids?: readonly string[] | undefined
  readonly q?: string | undefined
  readonly near?: Near | undefined
  readonly ranking?: RankingParameters | undefined
}

/** A query to the index. */
export interface IndexQuery extends BrokerQuery {
  /** Words to search for. */
  readonly search?: string | undefined
}

/** Ranking parameters of a query. */
export interface RankingParameters {
  /** Name and weight. */
  readonly weights: readonly (readonly [string, number])[]
  /** Reference point of proximity. */
  readonly point?: { readonly lon: number; readonly lat: number } | undefined
  /** Metres at which proximity is one half. */
  readonly distance?: number | undefined
  /** Seconds at which freshness is one half. */
  readonly age?: number | undefined
}

export interface PageRequest {
  readonly offset: number
  readonly limit: number
}

export interface Reads {
  /** A page of matches in the order of the broker. */
  page(query: BrokerQuery, page: PageRequest): Promise<readonly EntityJson[]>
  count(query: BrokerQuery): Promise<number>
  /** Ids that the index finds by place and words; undefined without an index. */
  indexed(query: IndexQuery, page: PageRequest): Promise<readonly string[] | undefined>
  /** The entity with an id and the type or a subtype; undefined if there is none. */
  byId(type: string, id: string): Promise<EntityJson | undefined>
  /** Entities that link to an id by an attribute. */
  pointingTo(field: FieldModel, id: string): Promise<readonly EntityJson[]>
  /** Warnings in responses, without duplicates. */
  warnings(): readonly string[]
  statistics(): { readonly requests: number; readonly entities: number; readonly ms: number }
}

export interface ReadPorts {
  readonly model: Model
  readonly broker: BrokerPort
  /** Answers queries with weights. */
  readonly ranking: BrokerPort
  /** Knows inherited places and words of streams and sensors; undefined if the backend is another site. */
  readonly index?: BrokerPort | undefined
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

export function createReads(ports: ReadPorts): Reads {
  const { model } = ports
  const tally: Tally = { requests: 0, entities: 0, ms: 0, warnings: new Set() }
  const ids = new Map<string, DataLoader<string, EntityJson | undefined>>()
  const pointers = new Map<FieldModel, DataLoader<string, readonly EntityJson[]>>()
  const maxBatchSize = limits.searchIdsPerRead.value

  const byId = (type: string): DataLoader<string, EntityJson | undefined> => {
    const known = ids.get(type)
    if (known !== undefined) return known
    const types = [...new Set(model.kindsOf(type).flatMap((kind) => kind.types))]
    const made = new DataLoader(
      async (wanted: readonly string[]) => {
        const found = await readAll({ types, ids: wanted })
        const named = new Map(found.map((entity) => [entity.id, entity]))
        return wanted.map((id) => named.get(id))
      },
      { maxBatchSize },
    )
    ids.set(type, made)
    return made
  }

  const pointing = (field: FieldModel): DataLoader<string, readonly EntityJson[]> => {
    const known = pointers.get(field)
    if (known !== undefined) return known
    const types = [...new Set(model.kindsOf(field.of).flatMap((kind) => kind.types))]
    const uri = field.inverse!
    const made = new DataLoader(
      async (wanted: readonly string[]) => {
        const q = `${uri}==${wanted.map((id) => JSON.stringify(id)).join(',')}`
        const found = await readAll({ types, q })
        const by = new Map<string, EntityJson[]>(wanted.map((id) => [id, []]))
        for (const entity of found) for (const id of targetsOf(entity, [uri])) by.get(id)?.push(entity)
        return wanted.map((id) => by.get(id)!)
      },
      { maxBatchSize },
    )
    pointers.set(field, made)
    return made
  }

  /** All matches, page by page. */
  async function readAll(query: BrokerQuery): Promise<readonly EntityJson[]> {
    const limit = limits.searchPageEntities.value
    const found: EntityJson[] = []
    for (let offset = 0; ; offset += limit) {
      const page = await readPage(query, { offset, limit })
      found.push(...page)
      if (page.length < limit) return found
    }
  }

  /** A full page. Needs several requests if the broker shortens pages of large entities. */
  async function readPage(
    query: BrokerQuery,
    { offset, limit }: PageRequest,
  ): Promise<readonly EntityJson[]> {
    const found: EntityJson[] = []
    for (;;) {
      const rest = { offset: offset + found.length, limit: limit - found.length }
      const { entities, more } = await readPart(query, rest)
      found.push(...entities)
      if (!more || entities.length === 0 || found.length >= limit) return found
    }
  }

  async function readPart(
    query: BrokerQuery,
    { offset, limit }: PageRequest,
  ): Promise<{ readonly entities: readonly EntityJson[]; readonly more: boolean }> {
    const paging = `&limit=${limit}${offset > 0 ? `&offset=${offset}` : ''}`
    const { text, headers } = await exchange(query, paging)
    const entities = entitiesOf(text, ports.broker.address)
    if (query.ranking !== undefined && entities.length > 0 && entities.every((one) => !(rankScore in one))) {
      throw backendFailed(ports.ranking.address, 502, 'its response has no rankScore, so it does not rank')
    }
    tally.entities += entities.length
    if (tally.entities > limits.searchEntitiesMax.value) {
      throw tooComplex(`The operation reads more than ${limits.searchEntitiesMax.value} entities; narrow it`)
    }
    return { entities, more: /\brel="?next\b/.test(headers['link'] ?? '') }
  }

  async function readCount(query: BrokerQuery): Promise<number> {
    const { headers } = await exchange(query, '&limit=1&count=true')
    const count = Number(headers['ngsild-results-count'] ?? Number.NaN)
    if (Number.isInteger(count)) return count
    throw backendFailed(ports.broker.address, 502, 'it does not return the number of matches')
  }

  /**
   * Without the index only the entities' own places and words are searched, and the client receives a
   * warning.
   */
  async function readIndex(
    query: IndexQuery,
    { offset, limit }: PageRequest,
  ): Promise<readonly string[] | undefined> {
    const { index } = ports
    if (index === undefined) return undefined
    const { search } = query
    const words = search === undefined ? '' : `&search=${encodeURIComponent(search)}`
    // Include all acknowledged writes, as the broker does.
    const headers = { Accept: 'application/json', 'Selvedge-Index-Position': 'latest' }
    const send = (one: BrokerQuery): Promise<BrokerAnswer> => {
      const path = `${entitiesPath}?${queryOf(one)}${words}&pick=id&limit=${limit}&offset=${offset}`
      return counted(index, { path, headers })
    }
    let answer = await send(query)
    // The broker evaluates q if the index cannot, for instance if q has names that the index has never seen.
    const isRefused = 'status' in answer && answer.status < 500 && !isByIndex(answer)
    if (query.q !== undefined && isRefused) answer = await send({ ...query, q: undefined })
    if ('failure' in answer && answer.failure === 'unreachable') {
      const without = 'the index is not running, so near and search ignore related entities'
      if (!ports.signal.aborted) tally.warnings.add(without)
      return undefined
    }
    if ('failure' in answer) throw backendFailed(index.address, 504, answer.reason)
    if (answer.status >= 400 && answer.status < 500) throw badRequest(problemTextIn(answer.text))
    if (!isByIndex(answer)) throw backendFailed(index.address, answer.status, problemTextIn(answer.text))
    note(tally.warnings, answer.headers['ngsild-warning'])
    return entitiesOf(answer.text, index.address).map(({ id }) => id)
  }

  /** Sends one request, unless the operation has exceeded its limits. */
  async function counted(
    port: BrokerPort,
    request: Pick<BrokerRequest, 'path' | 'headers'>,
  ): Promise<BrokerAnswer> {
    if (++tally.requests > limits.searchReadsMax.value) {
      throw tooComplex(
        `The operation needs more than ${limits.searchReadsMax.value} requests to the broker; narrow it`,
      )
    }
    if (ports.signal.aborted) {
      throw tooComplex(`The operation took longer than ${limits.searchOperationMs.value} ms; narrow it`)
    }
    const began = performance.now()
    const { timeoutMs, signal } = ports
    const answer = await port.exchange({ method: 'GET', ...request, timeoutMs, signal })
    tally.ms += performance.now() - began
    return answer
  }

  async function exchange(query: BrokerQuery, paging: string): Promise<Answered> {
    const port = query.ranking === undefined ? ports.broker : ports.ranking
    const path = `${entitiesPath}?${queryOf(query)}${paging}`
    const answer = await counted(port, { path, headers: { Accept: 'application/json' } })
    if ('failure' in answer) {
      throw backendFailed(port.address, answer.failure === 'timeout' ? 504 : 502, answer.reason)
    }
    if (answer.status >= 200 && answer.status < 300) {
      note(tally.warnings, answer.headers['ngsild-warning'])
      return answer
    }
    // Weights come from the client, so a 400 is the client's error; everything else was built here.
    if (answer.status === 400 && port !== ports.broker)
      throw badRequest(`ranking: ${problemTextIn(answer.text)}`)
    throw backendFailed(port.address, answer.status, problemTextIn(answer.text))
  }

  return Object.freeze({
    page: (query: BrokerQuery, page: PageRequest) => readPage(query, page),
    count: (query: BrokerQuery) => readCount(query),
    byId: (type: string, id: string) => byId(type).load(id),
    pointingTo: (field: FieldModel, id: string) => pointing(field).load(id),
    indexed: (query: IndexQuery, page: PageRequest) => readIndex(query, page),
    warnings: () => [...tally.warnings],
    statistics: () => ({
      requests: tally.requests,
      entities: tally.entities,
      ms: Math.round(tally.ms * 10) / 10,
    }),
  })
}

interface Tally {
  requests: number
  entities: number
  ms: number
  readonly warnings: Set<string>
}

/** Attribute with the score of the ranking. */
export const rankScore = 'http://iotcrawler.eu/rankScore'

interface Answered {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

const isByIndex = (answer: BrokerAnswer): boolean =>
  'status' in answer && answer.status === 200 && answer.headers['selvedge-answered-by'] === 'index'

const entitiesPath = '/ngsi-ld/v1/entities'

/** Query parameters in a readable order. */
export function queryOf({ types, ids, q, near, ranking }: BrokerQuery): string {
  const parts = [`type=${types.map(encodeURIComponent).join(',')}`]
  if (ids !== undefined) parts.push(`id=${ids.map(encodeURIComponent).join(',')}`)
  if (q !== undefined) parts.push(`q=${encodeURIComponent(q)}`)
  if (near !== undefined) parts.push(nearQuery(near))
  return [...parts, ...(ranking === undefined ? [] : rankingQuery(ranking))].join('&')
}

function rankingQuery({ weights, point, distance, age }: RankingParameters): readonly string[] {
  const named = weights.map(([name, weight]) => `${encodeURIComponent(`rankWeights[${name}]`)}=${weight}`)
  if (point !== undefined) named.push(`rankPoint=${point.lon},${point.lat}`)
  if (distance !== undefined) named.push(`rankDistance=${distance}`)
  if (age !== undefined) named.push(`rankAge=${age}`)
  return named
}

function nearQuery({ lon, lat, maxDistance, minDistance }: Near): string {
  const bound =
    typeof maxDistance === 'number' ? `maxDistance==${maxDistance}` : `minDistance==${minDistance}`
  const georel = encodeURIComponent(`near;${bound}`)
  return `georel=${georel}&geometry=Point&coordinates=${encodeURIComponent(JSON.stringify([lon, lat]))}`
}

function entitiesOf(text: string, address: string): readonly EntityJson[] {
  const parsed: unknown = parsedJson(text)
  if (Array.isArray(parsed) && parsed.every(isEntity)) return parsed
  throw backendFailed(address, 502, 'its response is not a list of entities')
}

const isEntity = (one: unknown): one is EntityJson =>
  typeof one === 'object' && one !== null && typeof (one as { id?: unknown }).id === 'string'

/** Adds the texts of an NGSILD-Warning header, without duplicates. */
function note(warnings: Set<string>, header: string | undefined): void {
  for (const [, text] of (header ?? '').matchAll(/\b\d{3} \S+ "([^"]*)"/g)) {
    if (warnings.size < limits.searchWarningsMax.value) warnings.add(text!)
  }
}

const badRequest = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST' } })

const backendFailed = (address: string, status: number, reason: string): GraphQLError =>
  new GraphQLError(`${address} answered ${status}: ${reason}`, {
    extensions: { code: 'BACKEND_FAILED', status, backend: address },
  })

export const tooComplex = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'TOO_COMPLEX' } })
