/**
 * Answers a query from the tables. The most selective condition yields candidates in ascending order, in
 * slices. SQL narrows each slice; predicates that need documents run last. Other work runs between slices, so
 * concurrent changes may or may not be visible.
 */

import { limits } from '#base/limits/limits.ts'
import { abandoned } from '#base/load/concurrency-limit.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Json } from '#contract'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import {
  boundingBoxOf,
  compileBoxTest,
  compileGeometryTest,
  compileGeoQuery,
  searchBoxesOf,
} from '#ngsi-ld/query/geo-query.ts'
import type { QueryTree } from '#ngsi-ld/query/query.ts'
import { compileQuery, type Follow, type FollowedEntity } from '#ngsi-ld/query/query-match.ts'
import { matchesScope } from '#ngsi-ld/query/scope-query.ts'
import type { Paging } from '#ngsi-ld/query/url-parameters.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { ownBroker } from '#plugins/indexing/entries/broker-rows.ts'
import {
  conditionOf,
  conjunctsOf,
  type IndexCondition,
  type NodeNumbers,
} from '#plugins/indexing/entries/conditions.ts'
import { deduce } from '#plugins/indexing/entries/deduced.ts'
import { kindNames, kindOf, kinds, searchable } from '#plugins/indexing/entries/entity-kinds.ts'
import { asCompared } from '#plugins/indexing/entries/facts.ts'
import { inBraces } from '#plugins/indexing/entries/paths.ts'
import type { Seen } from '#plugins/indexing/entries/seen.ts'
import type { QueryStatements } from '#plugins/indexing/entries/statements.ts'
import type { IndexCriteria } from './index-query.ts'

export interface SelectedPage {
  /** The entities of the page. */
  readonly entities: readonly Entity[]
  /** Number of all matches, if requested. */
  readonly count: number | undefined
  /** Approximate size of the entities as text. */
  readonly bytes: number
}

export interface SelectingPorts extends Omit<NodeNumbers, 'isValued'> {
  readonly sql: QueryStatements
  readonly seen: Seen
  /** A clock for intervals, ms. */
  readonly monotonic: () => number
}

export type Selecting = ReturnType<typeof createSelecting>

export function createSelecting(ports: SelectingPorts) {
  const { sql } = ports

  const texts = (numbers: readonly number[]): Map<number, string> =>
    new Map(sql.docs.all(JSON.stringify(numbers)) as [number, string][])
  const docs = (numbers: readonly number[]): Map<number, Entity> =>
    new Map([...texts(numbers)].map(([n, doc]) => [n, JSON.parse(doc) as Entity]))

  /** Returns a function that keeps the matching nodes of a slice. */
  function narrowing(criteria: IndexCriteria, { conditions, left }: SqlParts, isPlaced: boolean) {
    const narrowed = sql.narrowed([...(isPlaced ? [] : conditions), ...(criteria.isLocal ? [byOwn] : [])])
    const { selection } = criteria
    const isMeant =
      selection === undefined
        ? (bits: number) => (bits & searchable) !== 0
        : (bits: number) => means(selection, bits)
    const tests = [isPlaced ? undefined : placeTest(ports, criteria), windowTest(ports, criteria)]
    const whole = documentTest(ports, criteria, left)
    return (slice: readonly number[]): readonly number[] => {
      const rows = narrowed(slice)
      let numbers = rows.flatMap(([n, bits]) => (isMeant(bits) ? [n] : []))
      numbers.sort((a, b) => a - b)
      for (const test of tests) if (test !== undefined && numbers.length > 0) numbers = test(numbers)
      if (whole === undefined || numbers.length === 0) return numbers
      const read = docs(numbers)
      return numbers.filter((n) => read.has(n) && whole(read.get(n)!))
    }
  }

  /** Yields to the event loop, unless the query should end. Returns the time, ms. */
  async function pause(begun: number, signal: AbortSignal): Promise<number> {
    await nextTurn()
    const now = ports.monotonic()
    if (signal.aborted) throw abandoned()
    if (now - begun < limits.indexQueryMs.value) return now
    throw tooComplex(`the query took longer than ${limits.indexQueryMs.value} ms`)
  }

  return Object.freeze({
    /**
     * @param signal aborted when the client no longer waits.
     * @throws ngsi-ld.too-complex after `limits.indexQueryMs`.
     */
    async select(criteria: IndexCriteria, page: Paging, signal: AbortSignal): Promise<SelectedPage> {
      if (signal.aborted) throw abandoned()
      const begun = ports.monotonic()
      const parts = sqlPartsOf(ports, criteria)
      const { list, isPlaced } = listedBy(ports, criteria, parts.conditions)
      const narrow = narrowing(criteria, parts, isPlaced)
      const end = page.offset + page.limit
      const found: number[] = []
      let count = 0
      let turn = ports.monotonic()
      for (const slice of slicesOf(ports, criteria, list)) {
        for (const n of narrow(slice)) {
          if (count >= page.offset && count < end) found.push(n)
          count++
        }
        if (count >= end && !page.count) break
        if (ports.monotonic() - turn < limits.indexTurnMs.value) continue
        turn = await pause(begun, signal)
      }
      const read = texts(found)
      const docsFound = found.flatMap((n) => read.get(n) ?? [])
      return {
        entities: docsFound.map((doc) => JSON.parse(doc) as Entity),
        count: page.count ? count : undefined,
        bytes: docsFound.reduce((sum, { length }) => sum + length, 0),
      }
    },
    /** Derived facts of a slice of ids. */
    deduce: (ids: readonly string[]) => deduce(ports, ids),
  })
}

/** The part of a query that has an SQL form, and the terms left to predicates. */
interface SqlParts {
  readonly conditions: readonly IndexCondition[]
  readonly left: readonly QueryTree[]
}

function sqlPartsOf(ports: SelectingPorts, criteria: IndexCriteria): SqlParts {
  const conditions: IndexCondition[] = []
  const left: QueryTree[] = []
  const isValued = (name: number): boolean => ports.sql.hasScalar.get(name) === 1
  for (const part of criteria.q === undefined ? [] : conjunctsOf(criteria.q)) {
    const condition = conditionOf(part, { ...ports, isValued })
    if (condition !== undefined) conditions.push(condition)
    if (condition?.isExact !== true) left.push(part)
  }
  const hasAttrs = attrsCondition(criteria.attrs, ports)
  if (hasAttrs !== undefined) conditions.push(hasAttrs)
  return { conditions, left }
}

// ---- Candidates

/** Ascending numbers that include all matches and satisfy the word search. */
function* slicesOf(
  { sql }: SelectingPorts,
  criteria: IndexCriteria,
  list: number[] | undefined,
): Generator<readonly number[], void> {
  const most = limits.indexQuerySlice.value
  if (list !== undefined) {
    list.sort((a, b) => a - b)
    const all = criteria.words === undefined ? list : withWords(sql, criteria.words, list)
    for (let at = 0; at < all.length; at += most) yield all.slice(at, at + most)
    return
  }
  if (criteria.words !== undefined) return yield* byWords(sql, criteria.words)
  for (let behind = 0; ; ) {
    const slice = sql.walk(criteria.kinds || searchable, behind, most)
    if (slice.length > 0) yield slice
    if (slice.length < most) return
    behind = slice.at(-1)!
  }
}

/**
 * The nodes of an ascending list that contain the words. Prefix searches are expensive, so one search covers
 * the range.
 */
function withWords(sql: QueryStatements, words: string, list: readonly number[]): number[] {
  const [first, last] = [list[0], list.at(-1)]
  if (first === undefined) return []
  const wanted = new Set(list)
  return (sql.matchingWithin.all(words, first, last) as number[]).filter((n) => wanted.has(n))
}

/** All nodes that contain the words. Each search returns more than the previous one. */
function* byWords(sql: QueryStatements, words: string): Generator<readonly number[], void> {
  const most = limits.indexQuerySlice.value
  for (let behind = 0, wanted = most; ; wanted = Math.min(wanted * 4, limits.indexWordsPage.value)) {
    const found = sql.matching.all(words, behind, wanted) as number[]
    for (let at = 0; at < found.length; at += most) yield found.slice(at, at + most)
    if (found.length < wanted) return
    behind = found.at(-1)!
  }
}

/** The shortest available candidate list; undefined if none is short. */
function listedBy(
  ports: SelectingPorts,
  criteria: IndexCriteria,
  conditions: readonly IndexCondition[],
): {
  readonly list: number[] | undefined
  /** Whether all candidates satisfy the place query and the conditions already. */
  readonly isPlaced: boolean
} {
  const { ids } = criteria
  if (ids !== undefined)
    return { list: [...new Set(ids.flatMap((id) => ports.nodeOf(id) ?? []))], isPlaced: false }
  const near = placedNear(ports, criteria, conditions)
  if (near !== undefined && near.length < limits.indexShortList.value) return { list: near, isPlaced: true }
  let best = near
  for (const { drive } of conditions) {
    if (drive === undefined) continue
    const most = Math.min(best?.length ?? limits.indexListMax.value, limits.indexListMax.value)
    const found = ports.sql.driven(drive, most + 1)
    if (found.length <= most) best = found
  }
  return { list: best, isPlaced: best !== undefined && best === near }
}

/** Nodes from the R-tree that satisfy the conditions; undefined if too many are in the area. */
function placedNear(
  { sql }: SelectingPorts,
  { geo, kinds: bits }: IndexCriteria,
  conditions: readonly IndexCondition[],
): number[] | undefined {
  if (geo === undefined || geo.property !== 'location') return undefined
  const boxes = searchBoxesOf(geo)
  if (boxes === undefined) return undefined
  const found = new Set<number>()
  const spots = sql.spots(conditions)
  const test = compileBoxTest(geo)
  const exact = compileGeometryTest(geo)
  for (const name of kindNames) {
    const kind = kinds[name]
    if (((bits || searchable) & kind) === 0) continue
    for (const [west, south, east, north] of boxes) {
      const box = [west, east, south, north, kind, kind]
      const there = sql.spotsWithin.get(...box, limits.indexListMax.value + 1) as number
      if (there > limits.indexListMax.value) return undefined
      for (const [n, p, x0, x1, y0, y1] of spots(box)) {
        const all = test([x0, y0, x1, y1])
        if (all ?? exact(JSON.parse(sql.geometry.get(p) as string) as Json)) found.add(n)
      }
    }
  }
  return [...found]
}

// ---- Narrowing

/** Matches entries of this gateway's own broker. */
const byOwn = { text: 'node.prime = ?', parameters: [ownBroker] }

/** Whether the selection includes an entity of these kinds; two type names of one kind are equivalent. */
function means(selection: TypeSelection, bits: number): boolean {
  if (selection.kind === 'type') return (bits & kindOf(selection.name)) !== 0
  if (selection.kind === 'any') return true
  return selection.kind === 'and'
    ? selection.parts.every((part) => means(part, bits))
    : selection.parts.some((part) => means(part, bits))
}

function attrsCondition(
  attrs: readonly string[] | undefined,
  ports: SelectingPorts,
): IndexCondition | undefined {
  if (attrs === undefined) return undefined
  const known = attrs.flatMap((name) => ports.nameOf(name) ?? [])
  const marks = known.map(() => '?').join()
  return {
    text: `(EXISTS (SELECT 1 FROM scalar WHERE scalar.n = node.n AND scalar.k IN (${marks})) OR EXISTS (SELECT 1 FROM link WHERE link.n = node.n AND link.k IN (${marks})))`,
    parameters: [...known, ...known],
    isExact: true,
  }
}

type Test = ((numbers: readonly number[]) => number[]) | undefined

function placeTest({ sql }: SelectingPorts, { geo }: IndexCriteria): Test {
  if (geo === undefined || geo.property !== 'location') return undefined
  const fits = compileGeometryTest(geo)
  const byBox = compileBoxTest(geo)
  return (numbers) => {
    const matching = new Set<number>()
    for (const [n, text] of sql.geometries.all(JSON.stringify(numbers)) as [number, string][]) {
      if (matching.has(n)) continue
      const geometry = JSON.parse(text) as Json
      const box = boundingBoxOf(geometry)
      if ((box && byBox(box)) ?? fits(geometry)) matching.add(n)
    }
    return numbers.filter((n) => matching.has(n))
  }
}

function windowTest({ sql, seen }: SelectingPorts, { window }: IndexCriteria): Test {
  if (window === undefined) return undefined
  const { property, from, to } = window
  return (numbers) => {
    const list = JSON.stringify(numbers)
    const last = new Map<number, number>()
    const note = (n: number, at: number | undefined): void => {
      if (at !== undefined && at > (last.get(n) ?? Number.NEGATIVE_INFINITY)) last.set(n, at)
    }
    for (const [n, observation, noted] of sql.observations(list)) note(n, seen.of(observation) ?? noted)
    if (property === 'lastSeen')
      return numbers.filter((n) => {
        const at = last.get(n)
        return at !== undefined && at >= from && at < to
      })
    const spans = new Map(
      (sql.spans.all(list) as [number, number, number | null, number | null][]).map(
        ([n, created, begins, ends]) => [n, { created, begins, ends }] as const,
      ),
    )
    return numbers.filter((n) => {
      const span = spans.get(n)
      if (span === undefined) return false
      const begins = span.begins ?? span.created
      const ends = Math.max(begins, span.ends ?? last.get(n) ?? begins)
      return begins < to && ends >= from
    })
  }
}

/** Tests that need documents. */
function documentTest(
  { sql }: SelectingPorts,
  { geo, scope }: IndexCriteria,
  left: readonly QueryTree[],
): ((entity: Entity) => boolean) | undefined {
  const tests: ((entity: Entity) => boolean)[] = []
  if (scope !== undefined) tests.push((entity) => matchesScope(scope, entity.scope))
  if (geo !== undefined && geo.property !== 'location') tests.push(compileGeoQuery(geo))
  if (left.length > 0) {
    const followed = new Map<string, FollowedEntity | undefined>()
    const follow: Follow = (id) => {
      if (!followed.has(id)) {
        if (followed.size >= limits.indexFollowedKept.value) followed.clear()
        const doc = sql.docOf.get(id) as string | undefined
        followed.set(id, doc === undefined ? undefined : followedOf(asCompared(JSON.parse(doc) as Entity)))
      }
      return followed.get(id)
    }
    const predicates = left.map((part) => compileQuery(inBraces(part), follow))
    tests.push((entity) => {
      const compared = asCompared(entity)
      return predicates.every((predicate) => predicate(compared))
    })
  }
  return tests.length === 0 ? undefined : (entity) => tests.every((test) => test(entity))
}

const followedOf = (entity: Entity): FollowedEntity => ({
  entity: () => entity,
  times: () => ({ created: 0, modified: 0, attributes: {} }),
})
