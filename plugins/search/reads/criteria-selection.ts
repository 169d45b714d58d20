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

export type Selection = ReturnType<typeof createSelection>

export function createSelection(model: Model, reads: Reads) {
  async function select(criteria: QueryCriteria, page: PageRequest): Promise<readonly EntityJson[]> {
    const queries = queriesOf(criteria)
    // Only reading further shows whether a second query follows, which a first page does not need.
    if (page.offset === 0 && criteria.links.length > 0) return collected(queries, page)
    const { first, rest } = await peek(queries)
    if (first === undefined) return []
    return rest === undefined ? upTo(first, page) : collected(rest, page)
  }

  /** The results of several queries without duplicates, as far as the page needs. */
  async function collected(
    queries: AsyncIterable<BrokerQuery>,
    page: PageRequest,
  ): Promise<readonly EntityJson[]> {
    const found = new Map<string, EntityJson>()
    const wanted = page.offset + page.limit
    if (page.limit === 0) return []
    for await (const query of queries) {
      for await (const entities of pagesOf(query, wanted)) {
        for (const entity of entities) if (!found.has(entity.id)) found.set(entity.id, entity)
        if (found.size >= wanted) return [...found.values()].slice(page.offset, wanted)
      }
    }
    return [...found.values()].slice(page.offset, wanted)
  }

  /** Each query returns its best entities first, so the first ones of each suffice. */
  async function selectRanked(
    criteria: QueryCriteria,
    page: PageRequest,
    ranking: RankingParameters,
  ): Promise<readonly EntityJson[]> {
    const { first, rest } = await peek(queriesOf(criteria))
    if (first === undefined) return []
    if (rest === undefined) return upTo({ ...first, ranking }, page)
    const found = new Map<string, EntityJson>()
    const wanted = page.offset + page.limit
    for await (const query of rest) {
      const best = await upTo({ ...query, ranking }, { offset: 0, limit: wanted })
      for (const entity of best) if (!found.has(entity.id)) found.set(entity.id, entity)
    }
    const scored = [...found.values()].map((entity) => ({ entity, score: scoreOf(entity) }))
    const sorted = scored.toSorted((a, b) => b.score - a.score)
    return sorted.slice(page.offset, wanted).map(({ entity }) => entity)
  }

  async function count(criteria: QueryCriteria): Promise<number> {
    const { first, rest } = await peek(queriesOf(criteria))
    if (first === undefined) return 0
    if (rest === undefined) return reads.count(first)
    const ids = new Set<string>()
    for await (const query of rest) {
      for await (const entities of pagesOf(query, limits.searchPageEntities.value)) {
        for (const { id } of entities) ids.add(id)
      }
    }
    return ids.size
  }

  /** The page of a single query, for any page size. */
  async function upTo(query: BrokerQuery, { offset, limit }: PageRequest): Promise<readonly EntityJson[]> {
    const found: EntityJson[] = []
    while (found.length < limit) {
      const size = Math.min(limit - found.length, limits.searchPageEntities.value)
      const page = await reads.page(query, { offset: offset + found.length, limit: size })
      found.push(...page)
      if (page.length < size) break
    }
    return found
  }

  /** All pages of a query. The first page is small, because few entities may suffice. */
  async function* pagesOf(query: BrokerQuery, wanted: number): AsyncGenerator<readonly EntityJson[]> {
    let size = Math.min(Math.max(wanted, 1), limits.searchPageEntities.value)
    for (let offset = 0; ; ) {
      const page = await reads.page(query, { offset, limit: size })
      if (page.length > 0) yield page
      if (page.length < size) return
      offset += size
      size = limits.searchPageEntities.value
    }
  }

  async function* queriesOf(criteria: QueryCriteria): AsyncGenerator<BrokerQuery> {
    const { terms, near, words, type } = criteria
    const own: Demand = terms.length === 0 ? {} : { q: terms.join(';') }
    for await (const demand of demandsOf(criteria)) {
      const ids = intersection(criteria.ids, demand.ids)
      for (const some of ids === undefined ? [undefined] : chunksOf(ids, 1)) {
        for (const kind of model.kindsOf(type.name)) {
          const q = joined([own.q, demand.q, alternativesOf(kind.alternatives)])
          yield* located({ types: kind.types, ids: some, q, near }, words)
        }
      }
    }
  }

  /**
   * Queries for a place or words. The index resolves streams and sensors to ids; other types are queried
   * directly.
   */
  async function* located(query: BrokerQuery, words: Words | undefined): AsyncGenerator<BrokerQuery> {
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
      const ids = await reads.indexed(wanted, { offset, limit })
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

  /**
   * Combines the demands of all links. The demands of one link are streamed; those of the others are
   * collected first, because each is combined with each.
   */
  async function* demandsOf(criteria: QueryCriteria): AsyncGenerator<Demand> {
    const { links } = criteria
    const [only] = links
    if (only === undefined) {
      yield {}
      return
    }
    if (links.length === 1) {
      yield* demandsOfLink(only, 1)
      return
    }
    const peeked: Peeked<Demand>[] = []
    for (const link of links) {
      const one = await peek(demandsOfLink(link, links.length))
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

  async function* demandsOfLink(link: LinkCriteria, share: number): AsyncGenerator<Demand> {
    const portion = share * Math.max(1, link.field.uris.length)
    for (const inner of link.anyOf) yield* demandsOfTarget(link.field, { inner, portion })
  }

  /** One alternative for the entity behind a link. */
  async function* demandsOfTarget(
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
      yield* leadingTo(uris, inner.ids!, portion)
      return
    }
    for await (const entities of innerPages(inner)) {
      const ids = entities.map(({ id }) => id)
      if (uris.length > 0) yield* leadingTo(uris, ids, portion)
      const outer = inverse === undefined ? [] : entities.flatMap((one) => targetsOf(one, [inverse]))
      for (const chunk of chunksOf([...new Set(outer)], portion)) yield { ids: chunk }
    }
  }

  async function* innerPages(criteria: QueryCriteria): AsyncGenerator<readonly EntityJson[]> {
    const seen = new Set<string>()
    for await (const query of queriesOf(criteria)) {
      for await (const entities of pagesOf(query, limits.searchFirstPage.value)) {
        const fresh = entities.filter(({ id }) => !seen.has(id))
        for (const { id } of fresh) seen.add(id)
        if (fresh.length > 0) yield fresh
      }
    }
  }

  return Object.freeze({
    /** A page of entities; the best first if ranked. */
    select: (criteria: QueryCriteria, page: PageRequest, ranking?: RankingParameters) =>
      ranking === undefined ? select(criteria, page) : selectRanked(criteria, page, ranking),
    count,
  })
}

function scoreOf(entity: EntityJson): number {
  const instance = instanceOf(entity, [rankScore])
  const score = instance === undefined ? undefined : toScalar(memberOf(instance, undefined), 'Float')
  return typeof score === 'number' ? score : 0
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

/** Types that inherit places and words from related entities. */
const withPartners: ReadonlySet<string> = new Set([
  'http://purl.org/iot/ontology/iot-stream#IotStream',
  'http://purl.org/iot/ontology/iot-stream#IoTStream',
  'http://www.w3.org/ns/sosa/Sensor',
])

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

const some = (uris: readonly string[]): string => (uris.length === 1 ? uris[0]! : `(${uris.join('|')})`)

/** Demands that an attribute leads to one of the ids. */
function* leadingTo(uris: readonly string[], ids: readonly string[], portion: number): Generator<Demand> {
  for (const chunk of chunksOf(ids, portion)) {
    const list = chunk.map((id) => JSON.stringify(id)).join(',')
    yield { q: some(uris.map((uri) => `${uri}==${list}`)) }
  }
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
