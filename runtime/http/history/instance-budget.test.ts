/** What is read for an answer of histories: all that the answer needs, and not much more. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type EntityHistory, LargeHistory, type TemporalQuery } from '#broker/history/temporal-requests.ts'
import { beginningOf, partOf } from '#ngsi-ld/history/temporal-part.ts'
import type { TimedInstance } from '#ngsi-ld/history/temporal-query.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { firstRead, readFirst, readMore } from './instance-budget.ts'

/** Seconds at which an attribute was observed, ascending. */
type Lists = Readonly<Record<string, readonly number[]>>

const instance = (second: number, i: number): TimedInstance => {
  const observedAt = Date.UTC(2025, 0, 1) + second * 1000
  return {
    instance: { type: 'Property', value: i, observedAt: msToDateTime(observedAt) },
    observedAt,
    createdAt: observedAt,
    modifiedAt: observedAt,
    instanceId: `urn:i:${i}`,
  }
}

/** Reads like the broker; records the instances held at once and read in total. */
function readerOf(site: Readonly<Record<string, Lists>>) {
  const stored = new Map(
    Object.entries(site).map(([id, lists]) => [
      id,
      Object.entries(lists).map(([name, all]) => [name, all.map(instance)] as const),
    ]),
  )
  const held = new Map<string, number>()
  let most = 0
  let sum = 0
  const read = (id: string, query: TemporalQuery): EntityHistory => {
    const { limit, lastN } = query
    const cut = new Set<string>()
    const attributes = new Map<string, readonly TimedInstance[]>()
    for (const [name, all] of stored.get(id)!) {
      const wanted = lastN === undefined ? all : all.slice(-lastN)
      if (wanted.length > limit) cut.add(name)
      attributes.set(name, beginningOf(wanted, limit, query))
    }
    const count = [...attributes.values()].reduce((instances, list) => instances + list.length, 0)
    held.set(id, count)
    sum += count
    most = Math.max(
      most,
      [...held.values()].reduce((instances, each) => instances + each, 0),
    )
    const entity = { id, type: 'T' }
    return { id, type: 'T', entity, created: 0, modified: 0, deleted: undefined, attributes, cut }
  }
  return { read, mostHeld: () => most, sumRead: () => sum }
}

const seconds = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

it('holds about three times the content of a response, for histories of any length', () => {
  const ids = seconds(50).map((i) => `urn:x:${i}`)
  const most = 1000
  const site = Object.fromEntries(ids.map((id) => [id, { a: seconds(500), b: seconds(500), c: [7] }]))
  const reader = readerOf(site)
  const query = firstRead({ timeproperty: 'observedAt', limit: most }, ids.length)
  const page = ids.map((id) => reader.read(id, query))
  const part = partOf(readMore(page, { query, most }, reader.read), most, query)
  expect(reader.mostHeld()).toBeLessThanOrEqual(3 * most)
  const values = part.evolutions.flatMap(({ attributes }) =>
    [...attributes.values()].map((list) => list.length),
  )
  expect(values).toEqual(ids.flatMap(() => [9, 9, 1]))
})

it('reads one more instance than fits the second time, which suffices', () => {
  const ids = seconds(20).map((i) => `urn:x:${i}`)
  const most = 1000
  const reader = readerOf(Object.fromEntries(ids.map((id) => [id, { a: seconds(500) }])))
  const query = firstRead({ timeproperty: 'observedAt', limit: most }, ids.length)
  const page = ids.map((id) => reader.read(id, query))
  readMore(page, { query, most }, reader.read)
  expect(reader.sumRead()).toBe(ids.length * (query.limit + most / ids.length + 1))
})

it('reads the first part of an entity once, and again with few instances if they are large', () => {
  const { read, sumRead } = readerOf({ x: { a: seconds(500) } })
  const small = readFirst({ timeproperty: 'observedAt', limit: 800 }, (query) => read('x', query))
  expect([small.query.limit, sumRead()]).toEqual([100, 100])
  const large = readFirst({ timeproperty: 'observedAt', limit: 800 }, (query) => {
    if (query.bytesMax !== undefined) throw new LargeHistory()
    return read('x', query)
  })
  expect([large.query.limit, sumRead()]).toEqual([32, 132])
})

it('leaves out an entity whose history was deleted between two reads', () => {
  const ids = seconds(3).map((i) => `urn:x:${i}`)
  const [most, deleted] = [1000, ids[1]]
  const reader = readerOf(Object.fromEntries(ids.map((id) => [id, { a: seconds(500) }])))
  const query = firstRead({ timeproperty: 'observedAt', limit: most }, ids.length)
  const page = ids.map((id) => reader.read(id, query))
  const read = (id: string, more: TemporalQuery) => (id === deleted ? undefined : reader.read(id, more))
  const found = readMore(page, { query, most }, read)
  expect(found.map(({ id, attributes }) => [id, attributes.get('a')?.length])).toEqual([
    ['urn:x:0', 500],
    ['urn:x:2', 500],
  ])
})

const optionsOf = fc.record({
  most: fc.integer({ min: 1, max: 60 }),
  entities: fc.integer({ min: 1, max: 5 }),
  lastN: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
})

/** The response built from stored lists, and the lists it was built from. */
function reportedOf(all: readonly Lists[], query: TemporalQuery, most: number) {
  const site = Object.fromEntries(all.map((one, i) => [`urn:x:${i}`, one]))
  const { read } = readerOf(site)
  const page = Object.keys(site).map((id) => read(id, query))
  const { evolutions, range } = partOf(readMore(page, { query, most }, read), most, query)
  return { range, lists: evolutions.map(({ attributes }) => Object.fromEntries(attributes)) }
}

const timesOf = (unique: boolean) => {
  const second = fc.integer({ min: 0, max: unique ? 300 : 60 })
  const list = unique ? fc.uniqueArray(second, { maxLength: 80 }) : fc.array(second, { maxLength: 80 })
  const ascending = list.map((all) => all.sort((a, b) => a - b))
  return fc.array(fc.record({ a: ascending, b: ascending }), { minLength: 1, maxLength: 4 })
}

it('builds the same response as a read of everything', () => {
  fc.assert(
    fc.property(timesOf(true), optionsOf, (all, { most, entities, lastN }) => {
      const whole = { timeproperty: 'observedAt', limit: most, lastN } as const
      expect(reportedOf(all, firstRead(whole, entities), most)).toEqual(reportedOf(all, whole, most))
    }),
    { numRuns: 2000 },
  )
})

it('builds a complete response within its range, even if many instances share a time', () => {
  fc.assert(
    fc.property(timesOf(false), optionsOf, (all, { most, entities, lastN }) => {
      const query = firstRead({ timeproperty: 'observedAt', limit: most, lastN }, entities)
      const { lists } = reportedOf(all, query, most)
      const times = lists.flatMap((one) =>
        Object.values(one).flatMap((list) => list.map((each) => each.observedAt!)),
      )
      const [first, last] = [Math.min(...times), Math.max(...times)]
      for (const [i, one] of all.entries()) {
        for (const [name, seconds] of Object.entries(one)) {
          const wanted = seconds.map(instance).slice(lastN === undefined ? 0 : -lastN)
          // In ascending order, instances of the last time are repeated in the next part.
          const isWhole = ({ observedAt }: TimedInstance): boolean =>
            observedAt! >= first && (lastN === undefined ? observedAt! < last : observedAt! <= last)
          expect(lists[i]![name]!.filter(isWhole).length).toBe(wanted.filter(isWhole).length)
        }
      }
    }),
    { numRuns: 2000 },
  )
})
