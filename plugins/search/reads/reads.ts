/**
 * What one operation reads from the broker: queries as they are asked, entities by id and by who points to them gathered
 * into few requests, each entity once. Counts what it costs and stops at ceilings. A broker that fails is an error of
 * GraphQL that says who answered what.
 */
import DataLoader from 'dataloader'
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import type { BrokerAnswer, BrokerPort, BrokerRequest } from '#contract'
import { type EntityJson, targetsOf } from '#plugins/search/schema/entity-values.ts'
import type { FieldModel, Model } from '#plugins/search/schema/model.ts'
import type { Near } from '#plugins/search/schema/query-criteria.ts'

/** One question to a broker. */
export interface Ask {
  readonly types: readonly string[]
  readonly ids?: readonly string[] | undefined
  readonly q?: string | undefined
  readonly near?: Near | undefined
  readonly ranking?: Ranking | undefined
}

/** One question to the index. */
export interface IndexAsk extends Ask {
  /** Words. */
  readonly search?: string | undefined
}

/** What the component that ranks is asked. */
export interface Ranking {
  /** Name and weight. */
  readonly weights: readonly (readonly [string, number])[]
  /** From where nearness is measured. */
  readonly point?: { readonly lon: number; readonly lat: number } | undefined
  /** Metres away that count one half. */
  readonly distance?: number | undefined
  /** Seconds ago that count one half. */
  readonly age?: number | undefined
}

export interface Page {
  readonly offset: number
  readonly limit: number
}

export interface Reads {
  /** A page of what matches, in the order of the broker. */
  page(ask: Ask, page: Page): Promise<readonly EntityJson[]>
  count(ask: Ask): Promise<number>
  /** Ids of what the index finds by place and words; undefined where there is no index. */
  indexed(ask: IndexAsk, page: Page): Promise<readonly string[] | undefined>
  /** The entity of that id, of the type or one below it; undefined when there is none. */
  byId(type: string, id: string): Promise<EntityJson | undefined>
  /** Entities that point to an id by an attribute. */
  pointingTo(field: FieldModel, id: string): Promise<readonly EntityJson[]>
  /** What answers warned of, each once. */
  warnings(): readonly string[]
  statistics(): { readonly requests: number; readonly entities: number; readonly ms: number }
}

export interface ReadPorts {
  readonly model: Model
  readonly broker: BrokerPort
  /** Who answers questions with weights. */
  readonly ranking: BrokerPort
  /** Who knows places and words of streams by their partners; left out where another site is searched. */
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
        const found = await readAll(ports, tally, { types, ids: wanted })
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
        const found = await readAll(ports, tally, { types, q })
        const by = new Map<string, EntityJson[]>(wanted.map((id) => [id, []]))
        for (const entity of found) for (const id of targetsOf(entity, [uri])) by.get(id)?.push(entity)
        return wanted.map((id) => by.get(id)!)
      },
      { maxBatchSize },
    )
    pointers.set(field, made)
    return made
  }

  return Object.freeze({
    page: (ask: Ask, page: Page) => readPage(ports, tally, ask, page),
    count: (ask: Ask) => readCount(ports, tally, ask),
    byId: (type: string, id: string) => byId(type).load(id),
    pointingTo: (field: FieldModel, id: string) => pointing(field).load(id),
    indexed: (ask: IndexAsk, page: Page) => readIndex(ports, tally, ask, page),
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

/** Everything that matches; where that is more than a page, page by page. */
async function readAll(ports: ReadPorts, tally: Tally, ask: Ask): Promise<readonly EntityJson[]> {
  const limit = limits.searchPageEntities.value
  const found: EntityJson[] = []
  for (let offset = 0; ; offset += limit) {
    const page = await readPage(ports, tally, ask, { offset, limit })
    found.push(...page)
    if (page.length < limit) return found
  }
}

/** A whole page, in several requests where the broker ends it early because its entities are large. */
async function readPage(
  ports: ReadPorts,
  tally: Tally,
  ask: Ask,
  { offset, limit }: Page,
): Promise<readonly EntityJson[]> {
  const found: EntityJson[] = []
  for (;;) {
    const rest = { offset: offset + found.length, limit: limit - found.length }
    const { entities, more } = await readPart(ports, tally, ask, rest)
    found.push(...entities)
    if (!more || entities.length === 0 || found.length >= limit) return found
  }
}

async function readPart(
  ports: ReadPorts,
  tally: Tally,
  ask: Ask,
  { offset, limit }: Page,
): Promise<{ readonly entities: readonly EntityJson[]; readonly more: boolean }> {
  const paging = `&limit=${limit}${offset > 0 ? `&offset=${offset}` : ''}`
  const { text, headers } = await exchange(ports, tally, ask, paging)
  const entities = entitiesOf(text, ports.broker.address)
  if (ask.ranking !== undefined && entities.length > 0 && entities.every((one) => !(rankScore in one))) {
    throw backendFailed(ports.ranking.address, 502, 'it answered no rankScore, so it does not rank')
  }
  tally.entities += entities.length
  if (tally.entities > limits.searchEntitiesMax.value) {
    throw tooComplex(`The operation reads more than ${limits.searchEntitiesMax.value} entities; narrow it`)
  }
  return { entities, more: /\brel="?next\b/.test(headers['link'] ?? '') }
}

async function readCount(ports: ReadPorts, tally: Tally, ask: Ask): Promise<number> {
  const { headers } = await exchange(ports, tally, ask, '&limit=1&count=true')
  const count = Number(headers['ngsild-results-count'] ?? Number.NaN)
  if (Number.isInteger(count)) return count
  throw backendFailed(ports.broker.address, 502, 'it does not tell how many entities match')
}

/** Attribute of the score that the component of ranking gives. */
export const rankScore = 'http://iotcrawler.eu/rankScore'

interface Answered {
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

/** Without the index places and words are those that entities have themselves, and the client is told. */
async function readIndex(
  ports: ReadPorts,
  tally: Tally,
  ask: IndexAsk,
  { offset, limit }: Page,
): Promise<readonly string[] | undefined> {
  const { index } = ports
  if (index === undefined) return undefined
  const { search } = ask
  const words = search === undefined ? '' : `&search=${encodeURIComponent(search)}`
  // Everything that was acknowledged counts, as at the broker.
  const headers = { Accept: 'application/json', 'Selvedge-Index-Position': 'latest' }
  const asked = (one: Ask): Promise<BrokerAnswer> => {
    const path = `${entitiesPath}?${queryOf(one)}${words}&pick=id&limit=${limit}&offset=${offset}`
    return counted(ports, tally, index, { path, headers })
  }
  let answer = await asked(ask)
  // What it cannot tell by q the broker does; names in q that it never saw are such.
  const isRefused = 'status' in answer && answer.status < 500 && !isByIndex(answer)
  if (ask.q !== undefined && isRefused) answer = await asked({ ...ask, q: undefined })
  if ('failure' in answer && answer.failure === 'unreachable') {
    const without = 'the index does not run, so near and search see only what entities have themselves'
    if (!ports.signal.aborted) tally.warnings.add(without)
    return undefined
  }
  if ('failure' in answer) throw backendFailed(index.address, 504, answer.reason)
  if (answer.status >= 400 && answer.status < 500) throw badRequest(problemText(answer.text))
  if (!isByIndex(answer)) throw backendFailed(index.address, answer.status, problemText(answer.text))
  note(tally.warnings, answer.headers['ngsild-warning'])
  return entitiesOf(answer.text, index.address).map(({ id }) => id)
}

const isByIndex = (answer: BrokerAnswer): boolean =>
  'status' in answer && answer.status === 200 && answer.headers['selvedge-answered-by'] === 'index'

const entitiesPath = '/ngsi-ld/v1/entities'

/** One request, if the operation may have another. */
async function counted(
  ports: ReadPorts,
  tally: Tally,
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

async function exchange(ports: ReadPorts, tally: Tally, ask: Ask, paging: string): Promise<Answered> {
  const port = ask.ranking === undefined ? ports.broker : ports.ranking
  const path = `${entitiesPath}?${queryOf(ask)}${paging}`
  const answer = await counted(ports, tally, port, { path, headers: { Accept: 'application/json' } })
  if ('failure' in answer) {
    throw backendFailed(port.address, answer.failure === 'timeout' ? 504 : 502, answer.reason)
  }
  if (answer.status >= 200 && answer.status < 300) {
    note(tally.warnings, answer.headers['ngsild-warning'])
    return answer
  }
  // What is ranked by is said by the client; everything else that is asked was made here.
  if (answer.status === 400 && port !== ports.broker) throw badRequest(`ranking: ${problemText(answer.text)}`)
  throw backendFailed(port.address, answer.status, problemText(answer.text))
}

/** Parameters in the order that a person would read them in. */
export function queryOf({ types, ids, q, near, ranking }: Ask): string {
  const parts = [`type=${types.map(encodeURIComponent).join(',')}`]
  if (ids !== undefined) parts.push(`id=${ids.map(encodeURIComponent).join(',')}`)
  if (q !== undefined) parts.push(`q=${encodeURIComponent(q)}`)
  if (near !== undefined) parts.push(nearQuery(near))
  return [...parts, ...(ranking === undefined ? [] : rankingQuery(ranking))].join('&')
}

function rankingQuery({ weights, point, distance, age }: Ranking): readonly string[] {
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
  try {
    const parsed: unknown = JSON.parse(text)
    if (Array.isArray(parsed) && parsed.every(isEntity)) return parsed
  } catch {}
  throw backendFailed(address, 502, 'it answered no list of entities')
}

const isEntity = (one: unknown): one is EntityJson =>
  typeof one === 'object' && one !== null && typeof (one as { id?: unknown }).id === 'string'

/** What a problem body says, in one line. */
function problemText(text: string): string {
  try {
    const { title, detail } = JSON.parse(text) as { title?: unknown; detail?: unknown }
    const said = [title, detail].filter((one) => typeof one === 'string')
    if (said.length > 0) return said.join(': ')
  } catch {}
  return text.slice(0, 200)
}

/** Texts of a header of warnings; what many answers warn of alike is told once. */
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
