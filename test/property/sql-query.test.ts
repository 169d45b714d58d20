/**
 * SQL and the predicate agree: for any search, pages and counts from the tables equal the filter over all
 * entities. Covers selective drivers, walks, sets, and values newer than the tables.
 */
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { compileOrder, type EntityOrder, parseOrder } from '#ngsi-ld/query/order.ts'
import type { QueryTimes } from '#ngsi-ld/query/query-match.ts'
import { compileSearch, type EntitySearch } from '#ngsi-ld/query/search.ts'
import { diffIndexRows, indexRows } from '#store/entities/entity-index.ts'
import { createKnownColumns } from '#store/entities/known-columns.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import type { OrderedPlace } from '#store/query/entity-order.ts'
import type { ValueTest } from '#store/query/newer-values.ts'
import { createEntityTables } from '#test/kit/entity-tables.ts'
import { entities, entityBody, focused, geometry, plain, scalar, search } from '#test/kit/random-searches.ts'
import { runs } from '#test/kit/runs.ts'
import { createWholeQuery } from '#test/kit/whole-query.ts'

const tables = createEntityTables()
afterAll(() => tables.database.close())

const timesOf = (at: number): QueryTimes => ({
  created: Date.UTC(2024, 4, 1, 12) + at,
  modified: Date.UTC(2024, 4, 1, 12) + 500 * (at % 3),
  attributes: { a: [0, Date.UTC(2024, 4, 1, 12) + 500 * (at % 2)] },
})

/** Every query strategy: the defaults, data without selective conditions, and one in between. */
const settings = [
  { selectiveRowsMax: 2000, walkedEntitiesMax: 1000, ridsAtFirst: 128 },
  { selectiveRowsMax: -1, walkedEntitiesMax: 1000, ridsAtFirst: 1 },
  { selectiveRowsMax: -1, walkedEntitiesMax: 0, ridsAtFirst: 1 },
  { selectiveRowsMax: 2, walkedEntitiesMax: 3, ridsAtFirst: 2 },
]
/**
 * Besides columns that are completely in memory: none, so that the tables are queried, and columns that are
 * loaded in pieces and evicted.
 */
const otherColumns = [
  createKnownColumns(tables.database, { bytesMax: 0, rowsPerSearch: 1, cooldown: Infinity }),
  createKnownColumns(tables.database, { bytesMax: 24_576, rowsPerSearch: 4, cooldown: 3 }),
]
const withOthers = <Ports extends typeof tables.ports>(ports: Ports): Ports[] =>
  otherColumns.map((columns) => ({ ...ports, entities: { ...ports.entities, columns } }))
const queries = [
  ...withOthers(tables.ports).map((ports) => createWholeQuery(ports, settings[0])),
  ...settings.map((setting) => createWholeQuery(tables.ports, setting)),
]

function fill(all: readonly Entity[]): void {
  tables.fill(all, timesOf)
  for (const columns of otherColumns) columns.forget()
}

function matching(wanted: EntitySearch, all: readonly Entity[]): string[] {
  const isMatch = compileSearch(wanted, (id) => {
    const at = all.findIndex((entity) => entity.id === id)
    return at < 0 ? undefined : { entity: () => all[at]!, times: () => timesOf(at) }
  })
  return all.filter((entity, at) => isMatch(entity, timesOf(at))).map(({ id }) => id)
}

const byA = parseOrder({ orderBy: 'a;desc' }, (name) => name)!

const idsOf = (rows: readonly EntityRow[]): string[] => rows.map(({ id }) => id)

/** Entities in an order, by the predicate and the order alone. */
function sorted(wanted: EntitySearch, order: EntityOrder, all: readonly Entity[]): string[] {
  const compiled = compileOrder(order)
  const found = new Set(matching(wanted, all))
  return all
    .map((entity, at) => ({ id: entity.id, keys: compiled.keysOf(entity, timesOf(at)) }))
    .filter(({ id }) => found.has(id))
    .toSorted((a, b) => compiled.compare(a.keys, b.keys))
    .map(({ id }) => id)
}

const orders: fc.Arbitrary<EntityOrder> = fc
  .tuple(
    fc.uniqueArray(
      fc.constantFrom('a', 'b', 'a;desc', 'b;desc', 'place', 'id;desc', 'modifiedAt', 'a.sub', 'unheard'),
      {
        minLength: 1,
        maxLength: 3,
      },
    ),
    fc.option(fc.constant('[1,1]'), { nil: undefined }),
    fc.option(fc.constant('de'), { nil: undefined }),
  )
  .map(([terms, orderFrom, collation]) =>
    parseOrder({ orderBy: terms.join(), orderFrom, collation }, (name) => name),
  )
  .map((order) => order!)

describe('an order computed from the tables', () => {
  it('equals that of the documents, page by page', () => {
    fc.assert(
      fc.property(entities, search, orders, fc.integer({ min: 1, max: 5 }), (all, wanted, order, limit) => {
        fill(all)
        const expected = sorted(wanted, order, all)
        for (const query of queries) {
          const found: string[] = []
          let after: OrderedPlace | undefined
          for (let more = true; more; ) {
            const page = query.ordered(wanted, order, { limit, offset: 0, after })
            found.push(...idsOf(page.rows))
            more = page.more
            after = page.last
          }
          expect(found).toEqual(expected)
          const { rows } = query.ordered(wanted, order, { limit: 100, offset: 2 })
          expect(idsOf(rows)).toEqual(expected.slice(2))
        }
      }),
      { numRuns: runs(120) },
    )
  })
})

/** The entities with newer values, and these values by attribute and rid. */
function withNewer(all: readonly Entity[], values: readonly (readonly [at: number, value: unknown])[]) {
  const current = [...all]
  const dirty = new Map<string, Map<number, Json>>()
  for (const [at, value] of values) {
    const [name, kind] = typeof value === 'object' ? ['place', 'GeoProperty'] : ['a', 'Property']
    const [first, ...others] = all[at] === undefined ? [] : instancesOf(all[at], name)
    if (first?.type !== kind) continue
    const laid = { ...first, value: value as Json }
    current[at] = { ...current[at]!, [name]: others.length === 0 ? laid : [laid, ...others] }
    dirty.set(name, (dirty.get(name) ?? new Map()).set(at + 1, value as Json))
  }
  return { current, dirty }
}

describe('a term evaluated on the tables', () => {
  it('equals the predicate', () => {
    fc.assert(
      fc.property(plain, fc.array(focused, { minLength: 15, maxLength: 25 }), (all, searches) => {
        fill(all)
        for (const wanted of searches) {
          const expected = matching(wanted, all)
          for (const query of queries.slice(0, 5)) {
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0 }).rows)).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
          }
        }
      }),
      { numRuns: runs(50) },
    )
  })
})

describe('a search evaluated on the tables', () => {
  it('equals the predicate, page by page and in number', () => {
    const some = fc.array(fc.oneof(search, focused), { minLength: 4, maxLength: 8 })
    fc.assert(
      fc.property(entities, some, fc.integer({ min: 1, max: 4 }), (all, searches, limit) => {
        fill(all)
        for (const wanted of searches) {
          const expected = matching(wanted, all)
          for (const query of queries) {
            const found: string[] = []
            for (let offset = 0; ; offset += limit) {
              const { rows, more } = query.page(wanted, { limit, offset })
              found.push(...idsOf(rows))
              if (!more) break
            }
            expect(found).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
            const after = 2
            const behind = expected.filter((id) => Number(id.split(':').at(-1)) + 1 > after)
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0, after }).rows)).toEqual(behind)
          }
        }
      }),
      { numRuns: runs(50) },
    )
  })

  it('includes values that are newer than the tables', () => {
    const newer = fc.array(fc.tuple(fc.nat(11), fc.oneof(scalar, geometry)), { minLength: 1, maxLength: 8 })
    const some = fc.array(fc.oneof(focused, focused, search), { minLength: 8, maxLength: 12 })
    fc.assert(
      fc.property(plain, newer, some, (all, values, searches) => {
        fill(all)
        const { current, dirty } = withNewer(all, values)
        const newerPorts = {
          ...tables.ports,
          view: ({ rid }: EntityRow) => ({ entity: () => current[rid - 1]!, times: () => timesOf(rid - 1) }),
          unwritten: (name: string, { fits, low, high }: ValueTest) => {
            const found = dirty.get(name)
            const isFitting = (value: Json): boolean =>
              typeof value === 'number' && (value < low || value > high) ? false : fits(value)
            const rids = [...(found ?? [])].filter(([, value]) => isFitting(value)).map(([rid]) => rid)
            return found && { rids, has: (rid: number) => found.has(rid) }
          },
        }
        for (const query of [
          ...withOthers(newerPorts).map((ports) => createWholeQuery(ports, settings[0])),
          ...settings.slice(0, 3).map((setting) => createWholeQuery(newerPorts, setting)),
        ]) {
          for (const wanted of searches) {
            const expected = matching(wanted, current)
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0 }).rows)).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
            const { rows } = query.ordered(wanted, byA, { limit: 100, offset: 0 })
            expect(idsOf(rows)).toEqual(sorted(wanted, byA, current))
          }
        }
      }),
      { numRuns: runs(50) },
    )
  })
})

describe('index rows', () => {
  it('reflect a changed entity exactly', () => {
    fc.assert(
      fc.property(entityBody, fc.array(entityBody, { maxLength: 4 }), (first, later) => {
        const versions = [first, ...later].map((body) => ({ ...body, id: 'urn:e:0:0' }) as Entity)
        tables.fill([versions[0]!])
        versions.slice(1).forEach((version, at) => {
          // Unchanged attributes are the same objects, as merge returns them.
          tables.reindex(1, diffIndexRows(versions[at]!, version))
        })
        const followed = tables.indexed()
        tables.fill([versions.at(-1)!])
        expect(followed).toEqual(tables.indexed())
        expect(indexRows(versions.at(-1)!).attributes).toEqual(attributeNames(versions.at(-1)!))
      }),
      { numRuns: runs(100) },
    )
  })
})
