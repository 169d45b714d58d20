/** Temporal requests and answers as values. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileContext, coreContext } from './context.ts'
import { msToDateTime } from './datetime.ts'
import {
  type Evolution,
  parseTemporalSelection,
  partOf,
  renderEvolution,
  type TimedInstance,
} from './temporal.ts'

const at = (second: number): number => Date.UTC(2025, 0, 1) + second * 1000
const seen = (second: number, more: object = {}): TimedInstance => ({
  instance: { type: 'Property', value: second, observedAt: msToDateTime(at(second)), ...more },
  observedAt: at(second),
  modifiedAt: at(second + 100),
  instanceId: `urn:i:${second}`,
})
const evolution = (attributes: Record<string, readonly TimedInstance[]>): Evolution => ({
  id: 'urn:x:1',
  type: 'https://a.example/T',
  attributes: new Map(Object.entries(attributes)),
})
const plain = { context: coreContext, timeproperty: 'observedAt', sysAttrs: false, values: false } as const

describe('a temporal selection', () => {
  it('is everything by observedAt when nothing is said', () => {
    expect(parseTemporalSelection({})).toEqual({ timeproperty: 'observedAt' })
  })
  it('has its times in milliseconds', () => {
    const between = {
      timerel: 'between',
      timeAt: msToDateTime(at(1)),
      endTimeAt: msToDateTime(at(2)),
      timeproperty: 'modifiedAt',
    }
    expect(parseTemporalSelection(between)).toEqual({
      timerel: 'between',
      timeAtMs: at(1),
      endTimeAtMs: at(2),
      timeproperty: 'modifiedAt',
    })
  })
})

describe('an evolution', () => {
  it('shows instances in the terms of the context', () => {
    const context = compileContext({ T: 'https://a.example/T', v: 'https://a.example/v' }, () => undefined)
    if ('missing' in context) return expect.unreachable()
    const rendered = renderEvolution(evolution({ 'https://a.example/v': [seen(1)] }), {
      ...plain,
      context,
      sysAttrs: true,
    })
    expect(rendered).toEqual({
      id: 'urn:x:1',
      type: 'T',
      v: [
        {
          type: 'Property',
          value: 1,
          observedAt: msToDateTime(at(1)),
          instanceId: 'urn:i:1',
          createdAt: msToDateTime(at(101)),
          modifiedAt: msToDateTime(at(101)),
        },
      ],
    })
  })

  it('shows values with the time that was asked for, apart by kind and dataset', () => {
    const to: TimedInstance = { ...seen(3), instance: { type: 'Relationship', object: 'urn:x:2' } }
    const mixed = evolution({ v: [seen(1), seen(2, { datasetId: 'urn:d:1' }), to] })
    const types = { ...mixed, type: ['T', 'U'] }
    expect(renderEvolution(types, { ...plain, values: true, timeproperty: 'modifiedAt' })).toEqual({
      id: 'urn:x:1',
      type: ['T', 'U'],
      v: [
        { type: 'Property', values: [[1, msToDateTime(at(101))]] },
        { type: 'Property', datasetId: 'urn:d:1', values: [[2, msToDateTime(at(102))]] },
        { type: 'Relationship', objects: [['urn:x:2', msToDateTime(at(103))]] },
      ],
    })
  })
})

describe('a part of an evolution', () => {
  it('ends where the first list that was cut ends', () => {
    const cut = evolution({
      a: [seen(1), seen(2), seen(3)],
      b: [seen(10), seen(20), seen(30)],
      c: [seen(40)],
    })
    const { evolution: part, range } = partOf(cut, 'observedAt', undefined)
    expect([...part.attributes].map(([name, list]) => [name, list.length])).toEqual([['a', 3]])
    expect(range).toBe('DateTime 2025-01-01T00:00:01Z-2025-01-01T00:00:03Z/*')
  })
  it('goes backwards with lastN', () => {
    const cut = evolution({ a: [seen(1), seen(2)], b: [seen(10), seen(20)], c: [seen(15)] })
    const { evolution: part, range } = partOf(cut, 'observedAt', 50)
    expect([...part.attributes.keys()]).toEqual(['b', 'c'])
    expect(range).toBe('DateTime 2025-01-01T00:00:20Z-2025-01-01T00:00:10Z/50')
  })

  it('joins with the parts after it to the whole, whatever the lists', () => {
    const times = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(times, times, fc.integer({ min: 2, max: 20 }), (a, b, share) => {
        const whole = { a: a.toSorted((x, y) => x - y), b: b.toSorted((x, y) => x - y) }
        const found = { a: new Set<number>(), b: new Set<number>() }
        let from = 0
        for (let step = 0; step <= 200; step++) {
          const rest = (list: readonly number[]) => list.filter((second) => second >= from)
          const lists = { a: rest(whole.a), b: rest(whole.b) }
          const isCut = lists.a.length + lists.b.length > 2 * share
          const shown = isCut ? { a: lists.a.slice(0, share), b: lists.b.slice(0, share) } : lists
          // An attribute of which there is nothing left is not part of an evolution.
          const left = Object.entries(shown).filter(([, list]) => list.length > 0)
          const asEvolution = evolution(
            Object.fromEntries(left.map(([name, list]) => [name, list.map((second) => seen(second))])),
          )
          const part = isCut
            ? partOf(asEvolution, 'observedAt', undefined)
            : { evolution: asEvolution, range: '' }
          for (const name of ['a', 'b'] as const) {
            for (const one of part.evolution.attributes.get(name) ?? [])
              found[name].add(one.instance.value as number)
          }
          if (!isCut) break
          from =
            (Date.parse(/-(\S+Z)\//.exec(part.range.slice('DateTime 2025-01-01T00:00:01Z'.length))![1]!) -
              at(0)) /
            1000
        }
        expect([...found.a].toSorted((x, y) => x - y)).toEqual(whole.a)
        expect([...found.b].toSorted((x, y) => x - y)).toEqual(whole.b)
      }),
    )
  })
})
