/**
 * The cache of entity rows: it is bounded, rows that are read stay longest, and a written row replaces the
 * cached one.
 */
import { afterEach, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createEntityTables } from '#test/kit/entity-tables.ts'
import { createEntities } from './entity-rows.ts'
import { createRowBudget } from './recent-rows.ts'

afterEach(restoreLimits)

function open(budget = createRowBudget()) {
  const tables = createEntityTables()
  const all = Array.from({ length: 6 }, (_, i): Entity => ({ id: `urn:e:${i}`, type: 'T' }))
  tables.fill(all)
  const entities = createEntities(tables.database, budget)
  /** Marks rows read from the tables, to distinguish them from cached rows. */
  const overwrite = (): void => {
    tables.database.exec("UPDATE entity SET doc = '{}'")
  }
  const isKnown = (i: number): boolean => entities.byId(`urn:e:${i}`)!.doc !== '{}'
  return { entities, overwrite, isKnown, tables }
}

/** Entities with a text of each length. */
const entitiesOf = (name: string, lengths: readonly number[]): Entity[] =>
  lengths.map((length, i) => ({
    id: `urn:${name}:${i}`,
    type: 'T',
    note: { type: 'Property', value: 'x'.repeat(length) },
  }))

it('evicts rows beyond the limit in the order they were cached, unless they were read since', () => {
  const { entities, overwrite, isKnown } = open()
  for (const i of [0, 1, 2]) entities.byId(`urn:e:${i}`)
  const row = entities.byId('urn:e:0')!
  const size = row.doc.length + row.sys.length + row.id.length + 360
  setLimit('documentsCachedBytes', 3 * size)
  entities.byId('urn:e:3')
  overwrite()
  expect([0, 2, 3].map(isKnown)).toEqual([true, true, true])
  expect(isKnown(1)).toBe(false)
})

it('evicts rows when memory becomes short, and caches more again afterwards', () => {
  const budget = createRowBudget()
  const { entities } = open(budget)
  const known = (): number => [1, 2, 3, 4, 5, 6].filter((rid) => entities.knownRows([rid])).length
  const readAll = (): void => {
    for (const i of [0, 1, 2, 3, 4, 5]) entities.byId(`urn:e:${i}`)
  }
  const { doc, sys, id } = entities.byId('urn:e:0')!
  setLimit('documentsCachedShortBytes', 2 * (doc.length + sys.length + id.length + 360))
  readAll()
  expect(known()).toBe(6)
  budget.saveMemory(true)
  expect(known()).toBe(2)
  readAll()
  expect(known()).toBe(2)
  budget.saveMemory(false)
  readAll()
  expect(known()).toBe(6)
})

it('shares one budget between tenants: the largest cache evicts first, and closing a tenant frees its space', () => {
  const budget = createRowBudget()
  const [one, other] = [open(budget), open(budget)]
  const knownOf = ({ entities }: typeof one): readonly number[] =>
    [1, 2, 3, 4, 5, 6].filter((rid) => entities.knownRows([rid]) !== undefined)
  const { doc, sys, id } = one.entities.byId('urn:e:0')!
  setLimit('documentsCachedBytes', 4 * (doc.length + sys.length + id.length + 360))
  for (const i of [1, 2, 3]) one.entities.byId(`urn:e:${i}`)
  expect(knownOf(one)).toHaveLength(4)
  for (const i of [0, 1]) other.entities.byId(`urn:e:${i}`)
  expect([knownOf(one).length, knownOf(other).length]).toEqual([2, 2])
  one.entities.forgetAll()
  for (const i of [0, 1, 2, 3, 4, 5]) other.entities.byId(`urn:e:${i}`)
  expect([knownOf(one).length, knownOf(other).length]).toEqual([0, 4])
})

it('admits rows that searches of one tenant read more often than the cached rows of another', () => {
  const budget = createRowBudget()
  const [one, other] = [open(budget).entities, open(budget).entities]
  const { doc, sys, id } = one.byRids([1]).rows[0]!
  setLimit('documentsCachedBytes', doc.length + sys.length + id.length + 360)
  for (let i = 0; i < 3; i++) one.byRids([1])
  for (let i = 0; i < 8; i++) other.byRids([1])
  expect(other.knownRows([1])).toBeUndefined()
  for (let i = 0; i < 4; i++) other.byRids([1])
  expect([one.knownRows([1]), other.knownRows([1])?.rows.length]).toEqual([undefined, 1])
})

it('forgets the read counts of a tenant that is no longer searched, while others search', () => {
  setLimit('rowFrequenciesMax', 4)
  const budget = createRowBudget()
  const [one, other] = [open(budget).entities, open(budget).entities]
  const { doc, sys, id } = one.byRids([1]).rows[0]!
  setLimit('documentsCachedBytes', doc.length + sys.length + id.length + 360)
  for (let i = 1; i < 35; i++) one.byRids([1])
  expect(one.knownRows([1])?.rows).toHaveLength(1)
  for (let i = 0; i < 100; i++) other.byRids([1])
  expect([one.knownRows([1]), other.knownRows([1])?.rows.length]).toEqual([undefined, 1])
})

it('counts two bytes for each character of a text with one beyond Latin-1', () => {
  const { entities, tables } = open()
  const entityOf = (i: number, value: string): Entity => ({
    id: `urn:e:${i}`,
    type: 'T',
    note: { type: 'Property', value },
  })
  tables.fill([entityOf(1, `ü${'x'.repeat(1000)}`), entityOf(2, `日${'x'.repeat(1000)}`)])
  setLimit('documentsCachedBytes', 2000)
  const isKept = (i: number): boolean => entities.knownRows([entities.byId(`urn:e:${i}`)!.rid]) !== undefined
  expect([isKept(1), isKept(2)]).toEqual([true, false])
})

it('ends a page by its bytes and reads none of the entities beyond it', () => {
  const { entities, tables } = open()
  tables.fill(entitiesOf('page', [10, 10, 1000, 1000, 1000, 1000]))
  const rids = [1, 2, 3, 4, 5, 6]
  setLimit('pageBytesMax', 1500)
  for (let i = 0; i < 4; i++) {
    const { rows, taken } = entities.byRids(rids)
    expect([rows.map(({ id }) => id), taken]).toEqual([['urn:page:0', 'urn:page:1', 'urn:page:2'], 3])
  }
  // Searches read these rows so often that they are cached.
  expect(rids.map((rid) => entities.knownRows([rid]) !== undefined).slice(3)).toEqual([true, false, false])
  expect(entities.byRids([99, 5, 6])).toMatchObject({ rows: [{ id: 'urn:page:4' }], taken: 2 })
})

it('returns rows in the order of their rids, however they are read', () => {
  const { entities, tables } = open()
  tables.fill(entitiesOf('row', [10, 1000, 10, 10, 1000, 10]))
  setLimit('shortRowsRead', 2)
  setLimit('shortRowBytes', 500)
  // Cached after the third time. 99 and 100 are deleted, and the second and the fifth are long.
  for (let i = 0; i < 4; i++) {
    const ridsOf = (rids: readonly number[]) => entities.byRids(rids).rows.map(({ rid }) => rid)
    expect(ridsOf([1, 2, 3, 4, 5, 99, 6, 100])).toEqual([1, 2, 3, 4, 5, 6])
    expect(ridsOf([2])).toEqual([2])
  }
  expect(entities.knownRows([1, 2, 3, 4, 5, 6])?.rows).toHaveLength(6)
})

it('replaces a cached row when it is written, and caches no row that nobody read', () => {
  const { entities, overwrite, isKnown } = open()
  const row = entities.byId('urn:e:0')!
  entities.renew({ ...row, n: 9, doc: '{"id":"urn:e:0","type":"U"}' })
  expect(entities.byId('urn:e:0')).toMatchObject({ n: 9 })
  entities.renew({ ...row, id: 'urn:e:1' })
  entities.forget('urn:e:0')
  overwrite()
  expect([0, 1].map(isKnown)).toEqual([false, false])
})

it('caches a row when searches read it the third time, so not the rows of an occasional page', () => {
  const { entities } = open()
  const ridsOf = (rids: readonly number[]) => entities.byRids(rids).rows.map(({ rid }) => rid)
  expect(ridsOf([1, 2])).toEqual([1, 2])
  expect(ridsOf([1, 2])).toEqual([1, 2])
  expect(entities.knownRows([2])).toBeUndefined()
  expect(ridsOf([2, 3, 99])).toEqual([2, 3])
  expect(entities.knownRows([2])?.rows).toHaveLength(1)
  expect([1, 3].map((rid) => entities.knownRows([rid]))).toEqual([undefined, undefined])
})

it('keeps rows that searches read often, and admits rows that they read more often', () => {
  const { entities } = open()
  const meet = (rid: number, times: number): void => {
    for (let i = 0; i < times; i++) entities.byRids([rid])
  }
  const known = (): readonly number[] => [1, 2, 3, 4].filter((rid) => entities.knownRows([rid]) !== undefined)
  const { doc, sys, id } = entities.byRids([1]).rows[0]!
  setLimit('documentsCachedBytes', 2 * (doc.length + sys.length + id.length + 360))
  meet(1, 4)
  meet(2, 9)
  // Read hardly more often than the cached rows, it would only keep replacing one of them.
  meet(3, 10)
  expect(known()).toEqual([1, 2])
  meet(3, 1)
  expect(known()).toEqual([2, 3])
  // Reads from the cache count, too.
  meet(4, 18)
  expect(known()).toEqual([2, 3])
  // A row read by id is always cached, whatever searches read.
  entities.byId('urn:e:5')
  expect(known()).toHaveLength(1)
  expect(entities.knownRows([6])?.rows).toHaveLength(1)
})

it('decays read counts slowly', () => {
  setLimit('rowFrequenciesMax', 4)
  const { entities } = open()
  for (let i = 0; i < 4; i++) entities.byRids([1, 2])
  // The ninth read halves the counts, so one more read is only the third.
  entities.forget('urn:e:0')
  entities.byRids([3])
  entities.byRids([1])
  expect(entities.knownRows([1])?.rows).toHaveLength(1)
  entities.forget('urn:e:0')
  for (let i = 0; i < 16; i++) entities.byRids([3])
  entities.byRids([1])
  expect(entities.knownRows([1])).toBeUndefined()
})

it('ends a page of rows when it holds enough characters, also of a single row', () => {
  const { entities } = open()
  const ridsAfter = (rid: number): number[] => entities.rowsAfter(rid, 4).map((row) => row.rid)
  expect(ridsAfter(0)).toEqual([1, 2, 3, 4])
  setLimit('scannedPageBytes', entities.byId('urn:e:0')!.doc.length)
  expect(ridsAfter(0)).toEqual([1, 2])
  setLimit('scannedPageBytes', 1)
  expect(ridsAfter(2)).toEqual([3])
  expect(ridsAfter(6)).toEqual([])
})
