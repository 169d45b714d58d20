/**
 * Which entities are as the criteria say, from the inside out: linked entities are found first, their ids become terms of
 * the question about the outer ones, many ids in one question. Inner ones are read only as far as the outer ones need
 * them. Paging acts on the result; an entity that several questions find counts once.
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
  type Criteria,
  isBare,
  type LinkCriteria,
  type Words,
} from '#plugins/search/schema/query-criteria.ts'
import { type Ask, type Page, type Ranking, type Reads, rankScore, tooComplex } from './reads.ts'

export interface Selection {
  /** The entities of a page, best first where it is ranked. */
  select(criteria: Criteria, page: Page, ranking?: Ranking): Promise<readonly EntityJson[]>
  count(criteria: Criteria): Promise<number>
}

export function createSelection(model: Model, reads: Reads): Selection {
  const parts: Parts = { model, reads }
  return Object.freeze({
    select: (criteria: Criteria, page: Page, ranking?: Ranking) =>
      ranking === undefined ? select(parts, criteria, page) : selectRanked(parts, criteria, page, ranking),
    count: (criteria: Criteria) => count(parts, criteria),
  })
}

interface Parts {
  readonly model: Model
  readonly reads: Reads
}

async function select(parts: Parts, criteria: Criteria, page: Page): Promise<readonly EntityJson[]> {
  const asks = asksOf(parts, criteria)
  // Whether there is a second question is only known by reading on, which a first page does not need.
  if (page.offset === 0 && criteria.links.length > 0) return collected(parts, asks, page)
  const { first, rest } = await peek(asks)
  if (first === undefined) return []
  return rest === undefined ? upTo(parts, first, page) : collected(parts, rest, page)
}

/** What several questions find, each entity once, as far as the page needs. */
async function collected(parts: Parts, asks: AsyncIterable<Ask>, page: Page): Promise<readonly EntityJson[]> {
  const found = new Map<string, EntityJson>()
  const wanted = page.offset + page.limit
  if (page.limit === 0) return []
  for await (const ask of asks) {
    for await (const entities of pagesOf(parts, ask, wanted)) {
      for (const entity of entities) if (!found.has(entity.id)) found.set(entity.id, entity)
      if (found.size >= wanted) return [...found.values()].slice(page.offset, wanted)
    }
  }
  return [...found.values()].slice(page.offset, wanted)
}

/** Each question is answered best first, so its first ones are all that can be among the best of all. */
async function selectRanked(
  parts: Parts,
  criteria: Criteria,
  page: Page,
  ranking: Ranking,
): Promise<readonly EntityJson[]> {
  const { first, rest } = await peek(asksOf(parts, criteria))
  if (first === undefined) return []
  if (rest === undefined) return upTo(parts, { ...first, ranking }, page)
  const found = new Map<string, EntityJson>()
  const wanted = page.offset + page.limit
  for await (const ask of rest) {
    const best = await upTo(parts, { ...ask, ranking }, { offset: 0, limit: wanted })
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

async function count(parts: Parts, criteria: Criteria): Promise<number> {
  const { first, rest } = await peek(asksOf(parts, criteria))
  if (first === undefined) return 0
  if (rest === undefined) return parts.reads.count(first)
  const ids = new Set<string>()
  for await (const ask of rest) {
    for await (const entities of pagesOf(parts, ask, limits.searchPageEntities.value)) {
      for (const { id } of entities) ids.add(id)
    }
  }
  return ids.size
}

/** One question for a page of any size. */
async function upTo(parts: Parts, ask: Ask, { offset, limit }: Page): Promise<readonly EntityJson[]> {
  const found: EntityJson[] = []
  while (found.length < limit) {
    const size = Math.min(limit - found.length, limits.searchPageEntities.value)
    const page = await parts.reads.page(ask, { offset: offset + found.length, limit: size })
    found.push(...page)
    if (page.length < size) break
  }
  return found
}

/** All pages of a question: a small one first, since few entities may suffice. */
async function* pagesOf(parts: Parts, ask: Ask, wanted: number): AsyncGenerator<readonly EntityJson[]> {
  let size = Math.min(Math.max(wanted, 1), limits.searchPageEntities.value)
  for (let offset = 0; ; ) {
    const page = await parts.reads.page(ask, { offset, limit: size })
    if (page.length > 0) yield page
    if (page.length < size) return
    offset += size
    size = limits.searchPageEntities.value
  }
}

// ---- Questions

interface Peeked<T> {
  readonly first: T | undefined
  /** All of them with the first; undefined when there is at most one. */
  readonly rest: AsyncIterable<T> | undefined
}

async function peek<T>(all: AsyncGenerator<T>): Promise<Peeked<T>> {
  const one = await all.next()
  if (one.done === true) return { first: undefined, rest: undefined }
  const two = await all.next()
  if (two.done === true) return { first: one.value, rest: undefined }
  return { first: one.value, rest: behind([one.value, two.value], all) }
}

async function* behind<T>(known: readonly T[], more: AsyncGenerator<T>): AsyncGenerator<T> {
  yield* known
  yield* more
}

/** What a link demands of the outer entity: a term, or ids it is among. */
interface Demand {
  readonly q?: string
  readonly ids?: readonly string[]
}

async function* asksOf(parts: Parts, criteria: Criteria): AsyncGenerator<Ask> {
  const { terms, near, words, type } = criteria
  const own: Demand = terms.length === 0 ? {} : { q: terms.join(';') }
  for await (const demand of demandsOf(parts, criteria)) {
    const ids = both(criteria.ids, demand.ids)
    for (const some of ids === undefined ? [undefined] : chunksOf(ids, 1)) {
      for (const kind of parts.model.kindsOf(type.name)) {
        const q = joined([own.q, demand.q, alternativesOf(kind.alternatives)])
        yield* located(parts, { types: kind.types, ids: some, q, near }, words)
      }
    }
  }
}

/** Types whose places and words are those of their partners too. */
const withPartners: ReadonlySet<string> = new Set([
  'http://purl.org/iot/ontology/iot-stream#IotStream',
  'http://purl.org/iot/ontology/iot-stream#IoTStream',
  'http://www.w3.org/ns/sosa/Sensor',
])

/** A question about a place or words: of streams and sensors the index knows which they are. */
async function* located(parts: Parts, ask: Ask, words: Words | undefined): AsyncGenerator<Ask> {
  const { near, ...placeless } = ask
  const direct: Ask = { ...ask, q: joined([ask.q, words?.q]) }
  const isAsked = near !== undefined || words !== undefined
  const derived = isAsked ? ask.types.filter((type) => withPartners.has(type)) : []
  if (derived.length === 0) {
    yield direct
    return
  }
  const others = ask.types.filter((type) => !withPartners.has(type))
  // Few may suffice.
  let limit = limits.searchFirstPage.value
  for (let offset = 0; ; ) {
    const wanted = { ...ask, types: derived, search: words?.text }
    const ids = await parts.reads.indexed(wanted, { offset, limit })
    if (ids === undefined) {
      yield direct
      return
    }
    if (offset === 0 && others.length > 0) yield { ...direct, types: others }
    for (const chunk of chunksOf(ids, ask.q === undefined ? 1 : 2)) {
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
  const said = terms.filter((one) => one !== undefined && one !== '')
  return said.length === 0 ? undefined : said.join(';')
}

function both(
  a: readonly string[] | undefined,
  b: readonly string[] | undefined,
): readonly string[] | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const wanted = new Set(b)
  return a.filter((id) => wanted.has(id))
}

/**
 * All links together: the demands of one come as they are found, those of the others are gathered first, since each of
 * them meets each.
 */
async function* demandsOf(parts: Parts, criteria: Criteria): AsyncGenerator<Demand> {
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
  for (const { rest } of others) fixed = crossed(fixed, await gathered(rest!))
  if (driver === undefined) return yield* fixed
  for await (const demand of driver.rest!) yield* crossed(fixed, [demand])
}

const crossed = (some: readonly Demand[], others: readonly Demand[]): readonly Demand[] =>
  some.flatMap((a) =>
    others.map((b): Demand => {
      const [q, ids] = [joined([a.q, b.q]), both(a.ids, b.ids)]
      return { ...(q !== undefined && { q }), ...(ids !== undefined && { ids }) }
    }),
  )

async function gathered(demands: AsyncIterable<Demand>): Promise<readonly Demand[]> {
  const found: Demand[] = []
  for await (const demand of demands) {
    found.push(demand)
    if (found.length > limits.searchPartsMax.value) {
      throw tooComplex('Two criteria on one level match too much each; narrow one of them')
    }
  }
  return found
}

async function* demandsOfLink(parts: Parts, link: LinkCriteria, share: number): AsyncGenerator<Demand> {
  const { uris, inverse } = link.field
  const portion = share * Math.max(1, uris.length)
  for (const inner of link.anyOf) {
    if (isBare(inner) && inner.ids === undefined) {
      if (uris.length === 0) throw new GraphQLError(`${link.field.name} needs criteria`)
      yield { q: some(uris) }
      continue
    }
    // Ids alone need no reading, but where the link may be kept at the other end.
    if (isBare(inner) && inverse === undefined) {
      for (const ids of chunksOf(inner.ids!, portion)) yield { q: leadsTo(uris, ids) }
      continue
    }
    for await (const entities of innerPages(parts, inner)) {
      const ids = entities.map(({ id }) => id)
      if (uris.length > 0) for (const chunk of chunksOf(ids, portion)) yield { q: leadsTo(uris, chunk) }
      const outer = inverse === undefined ? [] : entities.flatMap((one) => targetsOf(one, [inverse]))
      for (const chunk of chunksOf([...new Set(outer)], portion)) yield { ids: chunk }
    }
  }
}

async function* innerPages(parts: Parts, criteria: Criteria): AsyncGenerator<readonly EntityJson[]> {
  const seen = new Set<string>()
  for await (const ask of asksOf(parts, criteria)) {
    for await (const entities of pagesOf(parts, ask, limits.searchFirstPage.value)) {
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

/** Ids in portions that fit one question, of which this list has a share. */
function* chunksOf(ids: readonly string[], share: number): Generator<readonly string[]> {
  const most = Math.max(1, Math.floor(limits.searchIdsPerRead.value / share))
  const characters = limits.searchQueryCharacters.value / share
  let [chunk, length]: [string[], number] = [[], 0]
  for (const id of ids) {
    if (chunk.length > 0 && (chunk.length >= most || length + id.length > characters)) {
      yield chunk
      ;[chunk, length] = [[], 0]
    }
    chunk.push(id)
    length += id.length + 3
  }
  if (chunk.length > 0) yield chunk
}
