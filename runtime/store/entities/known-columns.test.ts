/**
 * In-memory columns return the same rows as the tables: while they are loaded piece by piece, while entities
 * are created, deleted and changed, and whether a change is loaded from the tables before or after the
 * columns are notified of it. Their memory is bounded.
 */
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createEntityTables } from '#test/kit/entity-tables.ts'
import { diffIndexRows, type IndexRows, indexRows, scalarKinds } from './entity-index.ts'
import { type ColumnPart, type ColumnRow, createKnownColumns } from './known-columns.ts'

const tables = createEntityTables()
afterAll(() => tables.database.close())
const { nameOf } = tables.ports

interface Step {
  readonly rid: number
  readonly type: string
  readonly values: readonly number[]
  readonly place: number
  readonly isGone: boolean
  /** Queries before the columns are notified of the change. */
  readonly asked: number
}

const step: fc.Arbitrary<Step> = fc.record({
  rid: fc.integer({ min: 1, max: 40 }),
  type: fc.constantFrom('T', 'U'),
  values: fc.array(fc.constantFrom(-1.5, 0, 1, 2, 1e9), { minLength: 1, maxLength: 2 }),
  place: fc.integer({ min: -3, max: 3 }),
  isGone: fc.boolean(),
  asked: fc.nat(2),
})
const none: IndexRows = { types: [], attributes: [], scalars: [], places: [] }

const bound = fc.constantFrom(-Infinity, -1.5, 0, 0.5, 1, 2, Infinity)
const range = fc.record({ low: bound, high: bound, lowOpen: fc.boolean(), highOpen: fc.boolean() })

function entityOf({ rid, type, values, place }: Step): Entity {
  return {
    id: `urn:e:${rid}`,
    type,
    a: { type: 'Property', value: values.length === 1 ? values[0]! : values },
    at: { type: 'GeoProperty', value: { type: 'Point', coordinates: [place, place] } },
  }
}

const inTables = (name: number, kind: number): [number, number][] =>
  tables.database
    .prepare<[number, number], [number, number]>(
      'SELECT rid, value FROM scalar WHERE name = ? AND kind = ? ORDER BY value, rid',
    )
    .raw()
    .all(name, kind)

it('return the same rows as the tables', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30 }),
      fc.array(step, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 8 }),
      range,
      (first, then, rowsPerSearch, wanted) => {
        tables.fill([{ ...entityOf(first[0] ?? then[0]!), id: 'urn:e:1' }])
        const columns = createKnownColumns(tables.database, { bytesMax: 1e6, rowsPerSearch, cooldown: 0 })
        const kinds = [scalarKinds.number, scalarKinds.cell].map((kind) => ({
          name: nameOf(kind === scalarKinds.cell ? 'at' : 'a')!,
          kind,
        }))
        const ask = (): void => {
          columns.begin()
          for (const column of kinds) columns.count({ column, ranges: [] })
          columns.ofType(1)
        }
        const now = new Map<number, Entity>([[1, entityOf({ ...(first[0] ?? then[0]!), rid: 1 })]])
        const change = (one: Step, isAsked: boolean): void => {
          const before = now.get(one.rid)
          const after = one.isGone ? undefined : entityOf(one)
          if (before === undefined && after === undefined) return
          const difference =
            before === undefined
              ? { add: indexRows(after!), remove: none }
              : after === undefined
                ? { add: none, remove: indexRows(before) }
                : diffIndexRows(before, after)
          tables.reindex(one.rid, difference)
          for (let at = 0; isAsked && at < one.asked; at++) ask()
          columns.renew(one.rid, difference, nameOf)
          if (after === undefined) now.delete(one.rid)
          else now.set(one.rid, after)
        }
        for (const one of first) change(one, false)
        for (const one of then) change(one, true)
        for (let at = 0; at < 200; at++) ask()
        const rowsOf = (part: ColumnPart): ColumnRow[] => {
          const rows: ColumnRow[] = []
          expect(columns.each(part, 1000, ([rid, value]) => rows.push([rid, value]))).toBe(rows.length)
          return rows
        }
        for (const column of kinds) {
          const all = inTables(column.name, column.kind)
          const every = { low: -Infinity, high: Infinity }
          expect(rowsOf({ column, ranges: [every] })).toEqual(all)
          const { low, high, lowOpen, highOpen } = wanted
          const some = all.filter(
            ([, value]) =>
              (lowOpen ? value > low : value >= low) && (highOpen ? value < high : value <= high),
          )
          expect(rowsOf({ column, ranges: [wanted] })).toEqual(some)
          expect(columns.rids({ column, ranges: [wanted] }, 1000)).toEqual(some.map(([rid]) => rid))
          expect(columns.count({ column, ranges: [wanted] })).toBe(some.length)
        }
        for (const type of ['T', 'U']) {
          const number = nameOf(type)
          const rids = Array.from({ length: 40 }, (_, at) => at + 1)
          const have = number === undefined ? [] : columns.ofType(number)!(rids)
          expect(have).toEqual(rids.filter((rid) => now.get(rid)?.type === type))
        }
      },
    ),
    { numRuns: 500 },
  )
})

it('respect their memory limit, and are not reloaded for a while after an eviction', () => {
  const many = Array.from({ length: 3000 }, (_, at) => ({
    id: `urn:e:${at}`,
    type: 'T',
    a: { type: 'Property', value: (at * 7919) % 3000 },
    b: { type: 'Property', value: at % 7 },
  })) as Entity[]
  tables.fill(many)
  // A column of 3,000 pairs needs 6 blocks of 8 kB.
  const columns = createKnownColumns(tables.database, { bytesMax: 60_000, rowsPerSearch: 1000, cooldown: 20 })
  const ranges = [{ low: 10, high: 1999 }]
  const partOf = (name: string): ColumnPart => ({
    column: { name: nameOf(name)!, kind: scalarKinds.number },
    ranges,
  })
  const [a, b] = [partOf('a'), partOf('b')]
  const asked = (part: ColumnPart, times: number): number | undefined =>
    Array.from({ length: times }, () => {
      columns.begin()
      return columns.count(part)
    }).at(-1)
  expect(asked(a, 3)).toBeUndefined()
  expect(asked(a, 1)).toBe(1990)
  // In reverse order, each pair is inserted into a full block.
  for (const [at, entity] of many.entries()) {
    const moved = { ...entity, a: { type: 'Property', value: 5000 - at } } as Entity
    columns.renew(at + 1, diffIndexRows(entity, moved), nameOf)
  }
  expect(asked(a, 1)).toBeUndefined()
  expect(asked(b, 4)).toBe(0)
  expect(asked(a, 10)).toBeUndefined()
  expect(asked(b, 1)).toBe(0)
})

it('are loaded by one search only up to its limit, whatever it requests', () => {
  tables.fill(
    Array.from({ length: 100 }, (_, at) => ({
      id: `urn:e:${at}`,
      type: 'T',
      a: { type: 'Property', value: at },
      b: { type: 'Property', value: at },
    })) as Entity[],
  )
  const columns = createKnownColumns(tables.database, { bytesMax: 1e6, rowsPerSearch: 80, cooldown: 0 })
  const countOf = (name: string): number | undefined =>
    columns.count({
      column: { name: nameOf(name)!, kind: scalarKinds.number },
      ranges: [{ low: 0, high: 49 }],
    })
  const search = (): (number | undefined)[] => {
    columns.begin()
    return ['a', 'b', 'a', 'b'].map(countOf)
  }
  expect(search()).toEqual([undefined, undefined, undefined, undefined])
  // The last 20 of one column and the first 60 of the other, which has 100.
  expect(search()).toEqual([50, undefined, 50, undefined])
  expect(search()).toEqual([50, 50, 50, 50])
})
