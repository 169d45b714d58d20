/** Partial responses of evolutions that do not fit. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { beginningOf, type CutEvolution, partOf, stuckAttribute } from './temporal-part.ts'
import type { TimedInstance } from './temporal-query.ts'

const at = (second: number): number => Date.UTC(2025, 0, 1) + second * 1000
const seen = (second: number): TimedInstance => ({
  instance: { type: 'Property', value: second, observedAt: msToDateTime(at(second)) },
  observedAt: at(second),
  createdAt: at(second),
  modifiedAt: at(second),
  instanceId: `urn:i:${second}`,
})
const evolution = (lists: Record<string, readonly number[]>, cut: readonly string[] = []): CutEvolution => ({
  id: 'urn:x:1',
  type: 'T',
  attributes: new Map(Object.entries(lists).map(([name, list]) => [name, list.map(seen)])),
  cut: new Set(cut),
})
const observed = { timeproperty: 'observedAt' } as const
const valuesOf = (part: ReturnType<typeof partOf>, name: string): unknown[] =>
  part.evolutions
    .flatMap(({ attributes }) => attributes.get(name) ?? [])
    .map(({ instance }) => instance.value)

it('is complete if it fits', () => {
  const part = partOf([evolution({ a: [1, 2], b: [3] })], 3, observed)
  expect(part.range).toBeUndefined()
  expect(valuesOf(part, 'a')).toEqual([1, 2])
})

it('ends at the end of the first cut list, and keeps attributes without earlier instances', () => {
  const part = partOf([evolution({ a: [1, 2, 3, 4], b: [10, 20, 30, 40], c: [50] })], 7, observed)
  expect([valuesOf(part, 'a'), valuesOf(part, 'b'), valuesOf(part, 'c')]).toEqual([[1, 2, 3], [], []])
  expect(part.range).toBe('date-time 2025-01-01T00:00:01Z-2025-01-01T00:00:03Z/*')
})

it('extends backwards with lastN, over all entities', () => {
  const part = partOf([evolution({ a: [1, 2, 3] }), evolution({ a: [10, 20, 30] })], 4, {
    ...observed,
    lastN: 50,
  })
  expect(valuesOf(part, 'a')).toEqual([20, 30])
  expect(part.range).toBe('date-time 2025-01-01T00:00:30Z-2025-01-01T00:00:20Z/50')
})

it('starts at the requested times if there are any', () => {
  const asked = {
    timeproperty: 'observedAt',
    timerel: 'between',
    timeAtMs: at(0),
    endTimeAtMs: at(99),
  } as const
  const lists = [evolution({ a: [1, 2, 3] })]
  expect(partOf(lists, 2, asked).range).toBe('date-time 2025-01-01T00:00:00Z-2025-01-01T00:00:02Z/*')
  expect(partOf(lists, 2, { ...asked, lastN: 3 }).range).toBe(
    'date-time 2025-01-01T00:01:39Z-2025-01-01T00:00:02Z/3',
  )
})

it('treats a list that was cut before as cut', () => {
  expect(partOf([evolution({ a: [1, 2] }, ['a'])], 9, observed).range).toMatch(/^date-time /)
})

it('joins with the following parts to the whole, for all lists', () => {
  const times = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(times, times, fc.integer({ min: 4, max: 40 }), (a, b, most) => {
      const whole = { a: a.toSorted((x, y) => x - y), b: b.toSorted((x, y) => x - y) }
      const found = { a: new Set<unknown>(), b: new Set<unknown>() }
      let from = 0
      for (let step = 0; step <= 400; step++) {
        const rest = (list: readonly number[]) => list.filter((second) => second >= from)
        const part = partOf([evolution({ a: rest(whole.a), b: rest(whole.b) })], most, observed)
        for (const name of ['a', 'b'] as const) {
          for (const value of valuesOf(part, name)) found[name].add(value)
        }
        if (part.range === undefined) break
        const end = /Z-(\S+Z)\//.exec(part.range)![1]!
        from = (Date.parse(end) - at(0)) / 1000
      }
      expect([...found.a].toSorted((x, y) => Number(x) - Number(y))).toEqual(whole.a)
      expect([...found.b].toSorted((x, y) => Number(x) - Number(y))).toEqual(whole.b)
    }),
  )
})

it.each([
  ['forwards', undefined],
  ['backwards', 1000],
])('reaches the end %s however many share a time, and skips none', (_, lastN) => {
  const seconds = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(seconds, seconds, fc.integer({ min: 1, max: 30 }), (a, b, most) => {
      const whole = { a: a.toSorted((x, y) => x - y), b: b.toSorted((x, y) => x - y) }
      const told = { a: 0, b: 0 }
      let from = 0
      let to = 100
      for (let step = 0; ; step++) {
        expect(step).toBeLessThan(30)
        const rest = (list: readonly number[]) => list.filter((second) => second >= from && second < to)
        const part = partOf([evolution({ a: rest(whole.a), b: rest(whole.b) })], most, { ...observed, lastN })
        const end = part.range && (Date.parse(/Z-(\S+Z)\//.exec(part.range)![1]!) - at(0)) / 1000
        // Forwards, the next part repeats the last time of a part.
        const isNew = (second: unknown): boolean =>
          end === undefined || lastN !== undefined || Number(second) < Number(end)
        for (const name of ['a', 'b'] as const) told[name] += valuesOf(part, name).filter(isNew).length
        if (end === undefined) break
        if (lastN === undefined) from = Number(end)
        else to = Number(end)
      }
      expect(told).toEqual({ a: a.length, b: b.length })
    }),
  )
})

it.each([
  ['forwards', undefined, { a: [2, 2], b: [1, 2] }, undefined],
  ['forwards', undefined, { a: [2, 2], b: [2, 3] }, 'a'],
  ['backwards', 9, { a: [2, 2], b: [3, 4] }, undefined],
  ['backwards', 9, { a: [2, 2], b: [1, 4] }, 'a'],
])('is stuck %s only where it begins', (_, lastN, lists, name) => {
  const found = stuckAttribute([evolution(lists, ['a', 'b'])], 9, { ...observed, lastN })
  expect(found?.name).toBe(name)
})

it.each([
  ['forwards', undefined],
  ['backwards', 1000],
])('reaches the end %s with minimal reads', (_, lastN) => {
  const options = { ...observed, lastN }
  const seconds = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(seconds, seconds, fc.integer({ min: 1, max: 12 }), (a, b, most) => {
      const whole = [a, b].map((list) => list.toSorted((x, y) => x - y).map(seen))
      const told = [0, 0]
      let from = at(0)
      let to = at(100)
      const read = (i: number, limit: number): CutEvolution => {
        const rest = whole[i]!.filter(({ observedAt = 0 }) => observedAt >= from && observedAt < to)
        // Simulates a history reader that stops at one instance more than the limit.
        const list = lastN === undefined ? rest.slice(0, limit + 1) : rest.slice(-limit - 1)
        const attributes = new Map([['a', beginningOf(list, limit, options)]])
        return { id: String(i), type: 'T', attributes, cut: new Set(rest.length > limit ? ['a'] : []) }
      }
      for (let step = 0; ; step++) {
        expect(step).toBeLessThan(30)
        const limits = [most, most]
        const page = [read(0, most), read(1, most)]
        const find = () => stuckAttribute(page, 99, options)
        for (let stuck = find(); stuck !== undefined; stuck = find()) {
          const i = Number(stuck.id)
          expect(limits[i]).toBeLessThan(99)
          limits[i]! *= 2
          page[i] = read(i, limits[i]!)
        }
        const part = partOf(page, most, options)
        const end = part.range && Date.parse(/Z-(\S+Z)\//.exec(part.range)![1]!)
        const isNew = ({ observedAt = 0 }: TimedInstance): boolean =>
          end === undefined || lastN !== undefined || observedAt < Number(end)
        for (const { id, attributes } of part.evolutions)
          told[Number(id)]! += attributes.get('a')!.filter(isNew).length
        if (end === undefined) break
        if (lastN === undefined) from = Number(end)
        else to = Number(end)
      }
      expect(told).toEqual([a.length, b.length])
    }),
  )
})
