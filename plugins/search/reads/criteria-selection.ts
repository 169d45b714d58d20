/**
 * Finds the entities that satisfy criteria, from the inside out: linked entities are found first, and their
 * ids become terms of the query for the outer ones, many ids per query. Inner entities are read only as far
 * as necessary. Paging applies to the result; an entity found by several queries counts once.
 */
import { GraphQLError } from 'graphql'
import { limits } from '#base/limits/limits.ts'
import {
  type EntityJson,
  instanceOf,
  memberOf,
  targetsOf,
  toScalar,
} from '#plugins/search/schema/entity-values.ts'
import type { Model } from '#plugins/search/schema/model.ts'
import {
  isBare,
  type LinkCriteria,
  type QueryCriteria,
  type Words,
} from '#plugins/search/schema/query-criteria.ts'
import {
  type BrokerQuery,
  type PageRequest,
  type RankingParameters,
  type Reads,
  rankScore,
  tooComplex,
} from './reads.ts'

export interface Selection {
  /** A page of entities; the best first if ranked. */
  select(
    criteria: QueryCriteria,
    page: PageRequest,
    ranking?: RankingParameters,
  ): Promise<readonly EntityJson[]>
  count(criteria: QueryCriteria): Promise<number>
}

export function createSelection(model: Model, reads: Reads): Selection {
  const parts: Parts = { model, reads }
  return Object.freeze({
    select: (criteria: QueryCriteria, page: PageRequest, ranking?: RankingParameters) =>
      ranking === undefined ? select(parts, criteria, page) : selectRanked(parts, criteria, page, ranking),
    count: (criteria: QueryCriteria) => count(parts, criteria),
  })
}

interface Parts {
  readonly model: Model
  readonly reads: Reads
}

async function select(
  parts: Parts,
  criteria: QueryCriteria,
  page: PageRequest,
): Promise<readonly EntityJson[]> {
  const queries = queriesOf(parts, criteria)
  // Only reading further shows whether a second query follows, which a first page does not need.
  if (page.offset === 0 && criteria.links.length > 0) return collected(parts, queries, page)
  const { first, rest } = await peek(queries)
  if (first === undefined) return []
  return rest === undefined ? upTo(parts, first, page) : collected(parts, rest, page)
}

/** The results of several queries without duplicates, as far as the page needs. */
async function collected(
  parts: Parts,
  queries: AsyncIterable<BrokerQuery>,
  page: PageRequest,
): Promise<readonly EntityJson[]> {
  const found = new Map<string, EntityJson>()
  const wanted = page.offset + page.limit
  if (page.limit === 0) return []
  for await (const query of queries) {
    for await (const entities of pagesOf(parts, query, wanted)) {
      for (const entity of entities) if (!found.has(entity.id)) found.set(entity.id, entity)
      if (found.size >= wanted) return [...found.values()].slice(page.offset, wanted)
    }
  }
  return [...found.values()].slice(page.offset, wanted)
}

/** Each query returns its best entities first, so the first ones of each suffice. */
async function selectRanked(
  parts: Parts,
  criteria: QueryCriteria,
  page: PageRequest,
  ranking: RankingParameters,
): Promise<readonly EntityJson[]> {
  const { first, rest } = await peek(queriesOf(parts, criteria))
  if (first === undefined) return []
  if (rest === undefined) return upTo(parts, { ...first, ranking }, page)
  const found = new Map<string, EntityJson>()
  const wanted = page.offset + page.limit
  for await (const query of rest) {
    const best = await upTo(parts, { ...query, ranking }, { offset: 0, limit: wanted })
    for (const entity of best) if (!found.has(entity.id)) found.set(entity.id, entity)
  }
  const scored = [...found.values()].map((entity) => ({ entity, score: scoreOf(entity) }))
  const sorted = scored.toSorted((a, b) => b.score - a.score)
  return sorted.slice(page.offset, wanted).map(({ entity }) => entity)
}

function scoreOf(entity: EntityJson): number {
  const instance = instanceOf(entity, [rankScore])
  const score = instance === undefined ? undefined : toScalar(memberOf(instance, undefined), 'Float')
  return typeof score === 'number' ? score : 0
}

async function count(parts: Parts, criteria: QueryCriteria): Promise<number> {
  const { first, rest } = await peek(queriesOf(parts, criteria))
  if (first === undefined) return 0
  if (rest === undefined) return parts.reads.count(first)
  const ids = new Set<string>()
  for await (const query of rest) {
    for await (const entities of pagesOf(parts, query, limits.searchPageEntities.value)) {
      for (const { id } of entities) ids.add(id)
    }
  }
  return ids.size
}

/** The page of a single query, for any page size. */
async function upTo(
  parts: Parts,
  query: BrokerQuery,
  { offset, limit }: PageRequest,
): Promise<readonly EntityJson[]> {
  const found: EntityJson[] = []
  while (found.length < limit) {
    const size = Math.min(limit - found.length, limits.searchPageEntities.value)
    const page = await parts.reads.page(query, { offset: offset + found.length, limit: size })
    found.push(...page)
    if (page.length < size) break
  }
  return found
}

/** All pages of a query. The first page is small, because few entities may suffice. */
async function* pagesOf(
  parts: Parts,
  query: BrokerQuery,
  wanted: number,
): AsyncGenerator<readonly EntityJson[]> {
  let size = Math.min(Math.max(wanted, 1), limits.searchPageEntities.value)
  for (let offset = 0; ; ) {
    const page = await parts.reads.page(query, { offset, limit: size })
    if (page.length > 0) yield page
    if (page.length < size) return
    offset += size
    size = limits.searchPageEntities.value
  }
}

// ---- Queries

interface Peeked<T> {
  readonly first: T | undefined
  /** All elements including the first; undefined if there is at most one. */
  readonly rest: AsyncIterable<T> | undefined
}

async function peek<T>(all: AsyncGenerator<T>): Promise<Peeked<T>> {
  const one = await all.next()
  if (one.done === true) return { first: undefined, rest: undefined }
  const two = await all.next()
  if (two.done === true) return { first: one.value, rest: undefined }
  return { first: one.value, rest: chained([one.value, two.value], all) }
}

async function* chained<T>(known: readonly T[], more: AsyncGenerator<T>): AsyncGenerator<T> {
  yield* known
  yield* more
}

/** A condition of a link on the outer entity: a q term, or a set of ids. */
interface Demand {
  readonly q?: string
  readonly ids?: readonly string[]
}

async function* queriesOf(parts: Parts, criteria: QueryCriteria): AsyncGenerator<BrokerQuery> {
  const { terms, near, words, type } = criteria
  const own: Demand = terms.length === 0 ? {} : { q: terms.join(';') }
  for await (const demand of demandsOf(parts, criteria)) {
    const ids = intersection(criteria.ids, demand.ids)
    for (const some of ids === undefined ? [undefined] : chunksOf(ids, 1)) {
      for (const kind of parts.model.kindsOf(type.name)) {
        const q = joined([own.q, demand.q, alternativesOf(kind.alternatives)])
        yield* located(parts, { types: kind.types, ids: some, q, near }, words)
      }
    }
  }
}

/** Types that inherit places and words from related entities. */
const withPartners: ReadonlySet<string> = new Set([
  'http://purl.org/iot/ontology/iot-stream#IotStream',
  'http://purl.org/iot/ontology/iot-stream#IoTStream',
  'http://www.w3.org/ns/sosa/Sensor',
])

/**
 * Queries for a place or words. The index resolves streams and sensors to ids; other types are queried
 * directly.
 */
async function* located(
  parts: Parts,
  query: BrokerQuery,
  words: Words | undefined,
): AsyncGenerator<BrokerQuery> {
  const { near, ...placeless } = query
  const direct: BrokerQuery = { ...query, q: joined([query.q, words?.q]) }
  const isSearch = near !== undefined || words !== undefined
  const derived = isSearch ? query.types.filter((type) => withPartners.has(type)) : []
  if (derived.length === 0) {
    yield direct
    return
  }
  const others = query.types.filter((type) => !withPartners.has(type))
  // Few entities may suffice.
  let limit = limits.searchFirstPage.value
  for (let offset = 0; ; ) {
    const wanted = { ...query, types: derived, search: words?.text }
    const ids = await parts.reads.indexed(wanted, { offset, limit })
    if (ids === undefined) {
      yield direct
      return
    }
    if (offset === 0 && others.length > 0) yield { ...direct, types: others }
    for (const chunk of chunksOf(ids, query.q === undefined ? 1 : 2)) {
      yield { ...placeless, types: derived, ids: chunk }
    }
    if (ids.length < limit) return
    offset += limit
    limit = limits.searchPageEntities.value
  }
}

const alternativeType = 'http://www.agtinternational.com/ontologies/ngsi-ld#alternativeType'
const alternativesOf = (classes: readonly string[] | undefined): string | undefined =>
  classes === undefined
    ? undefined
    : `${alternativeType}==${classes.map((one) => JSON.stringify(one)).join(',')}`

const joined = (terms: readonly (string | undefined)[]): string | undefined => {
  const present = terms.filter((one) => one !== undefined && one !== '')
  return present.length === 0 ? undefined : present.join(';')
}

function intersection(
  a: readonly string[] | undefined,
  b: readonly string[] | undefined,
): readonly string[] | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const wanted = new Set(b)
  return a.filter((id) => wanted.has(id))
}

/**
 * Combines the demands of all links. The demands of one link are streamed; those of the others are collected
 * first, because each is combined with each.
 */
async function* demandsOf(parts: Parts, criteria: QueryCriteria): AsyncGenerator<Demand> {
  const { links } = criteria
  const [only] = links
  if (only === undefined) {
    yield {}
    return
  }
  if (links.length === 1) {
    yield* demandsOfLink(parts, only, 1)
    return
  }
  const peeked: Peeked<Demand>[] = []
  for (const link of links) {
    const one = await peek(demandsOfLink(parts, link, links.length))
    if (one.first === undefined) return
    peeked.push(one)
  }
  const long = peeked.filter(({ rest }) => rest !== undefined)
  const [driver, ...others] = long
  let fixed: readonly Demand[] = [{}]
  for (const { first, rest } of peeked) if (rest === undefined) fixed = crossed(fixed, [first!])
  for (const { rest } of others) fixed = crossed(fixed, await collectDemands(rest!))
  if (driver === undefined) return yield* fixed
  for await (const demand of driver.rest!) yield* crossed(fixed, [demand])
}

const crossed = (some: readonly Demand[], others: readonly Demand[]): readonly Demand[] =>
  some.flatMap((a) =>
    others.map((b): Demand => {
      const [q, ids] = [joined([a.q, b.q]), intersection(a.ids, b.ids)]
      return { ...(q !== undefined && { q }), ...(ids !== undefined && { ids }) }
    }),
  )

async function collectDemands(demands: AsyncIterable<Demand>): Promise<readonly Demand[]> {
  const found: Demand[] = []
  for await (const demand of demands) {
    found.push(demand)
    if (found.length > limits.searchPartsMax.value) {
      throw tooComplex('Two criteria on one level each match too many entities; narrow one of them')
    }
  }
  return found
}

async function* demandsOfLink(parts: Parts, link: LinkCriteria, share: number): AsyncGenerator<Demand> {
  const portion = share * Math.max(1, link.field.uris.length)
  for (const inner of link.anyOf) yield* demandsOfTarget(parts, link.field, { inner, portion })
}

/** One alternative for the entity behind a link. */
async function* demandsOfTarget(
  parts: Parts,
  { uris, inverse, name }: LinkCriteria['field'],
  { inner, portion }: { readonly inner: QueryCriteria; readonly portion: number },
): AsyncGenerator<Demand> {
  if (isBare(inner) && inner.ids === undefined) {
    if (uris.length === 0) throw new GraphQLError(`${name} requires criteria`)
    yield { q: some(uris) }
    return
  }
  // Ids need no read, unless the other entity may hold the link.
  if (isBare(inner) && inverse === undefined) {
    for (const ids of chunksOf(inner.ids!, portion)) yield { q: leadsTo(uris, ids) }
    return
  }
  for await (const entities of innerPages(parts, inner)) {
    const ids = entities.map(({ id }) => id)
    if (uris.length > 0) for (const chunk of chunksOf(ids, portion)) yield { q: leadsTo(uris, chunk) }
    const outer = inverse === undefined ? [] : entities.flatMap((one) => targetsOf(one, [inverse]))
    for (const chunk of chunksOf([...new Set(outer)], portion)) yield { ids: chunk }
  }
}

async function* innerPages(parts: Parts, criteria: QueryCriteria): AsyncGenerator<readonly EntityJson[]> {
  const seen = new Set<string>()
  for await (const query of queriesOf(parts, criteria)) {
    for await (const entities of pagesOf(parts, query, limits.searchFirstPage.value)) {
      const fresh = entities.filter(({ id }) => !seen.has(id))
      for (const { id } of fresh) seen.add(id)
      if (fresh.length > 0) yield fresh
    }
  }
}

const some = (uris: readonly string[]): string => (uris.length === 1 ? uris[0]! : `(${uris.join('|')})`)

function leadsTo(uris: readonly string[], ids: readonly string[]): string {
  const list = ids.map((id) => JSON.stringify(id)).join(',')
  return some(uris.map((uri) => `${uri}==${list}`))
}

/** Splits ids into chunks that fit into one query when this list may use 1/share of it. */
function* chunksOf(ids: readonly string[], share: number): Generator<readonly string[]> {
  const most = Math.max(1, Math.floor(limits.searchIdsPerRead.value / share))
  const characters = limits.searchQueryCharacters.value / share
  let chunk: string[] = []
  let length = 0
  for (const id of ids) {
    if (chunk.length > 0 && (chunk.length >= most || length + id.length > characters)) {
      yield chunk
      chunk = []
      length = 0
    }
    chunk.push(id)
    length += id.length + 3
  }
  if (chunk.length > 0) yield chunk
}
