/** Windows of groups of streams: which are published, and that the order of arrival does not matter. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePatternModel } from '#plugins/patterns/registrations/model-document.ts'
import { runs } from '#test/kit/runs.ts'
import { createAnalysis, type StreamValue } from './analysis.ts'
import type { PlacedStream } from './spatial.ts'

/** The label is the larger of two streams. */
const model = {
  kind: 'k-means',
  centroids: [16, 0].map((first) => Array.from({ length: 16 }, (_, i) => (i < 8 ? first : 16 - first))),
}

function analysisOf({
  properties = ['p', 'q'],
  more = {},
  streams = [
    { id: 'a', properties: ['p'], place: [1, 1] },
    { id: 'b', properties: ['q'], place: [1, 1] },
  ],
}: {
  properties?: readonly string[]
  more?: object
  streams?: readonly PlacedStream[]
}) {
  const known = new Map(streams.map((one) => [one.id, one]))
  const events = new Map<string, string>()
  let published = 0
  const analysis = createAnalysis({
    streams: { all: () => known.values(), get: (id) => known.get(id) },
    publish(id, entity) {
      published++
      if (entity === undefined) events.delete(id)
      else events.set(id, JSON.stringify(entity))
    },
    // No model here is in ONNX.
    labels: { follow: unexpected, unfollow: () => undefined, add: unexpected, drop: () => undefined },
    yieldIfDue: async () => undefined,
  })
  analysis.add(parsePatternModel('m', { observableProperties: properties, model, ...more } as never))
  const between = async (): Promise<void> => undefined
  const spans = (): string[] =>
    [...events.values()]
      .map((text) => {
        const entity = JSON.parse(text) as Record<string, { value: Record<string, string> }>
        const at = (name: string): number =>
          Date.parse(entity[`http://purl.org/iot/ontology/iot-stream#${name}`]!.value['@value']!)
        return `${at('windowStart')}-${at('windowEnd')}`
      })
      .sort((a, b) => Number(a.split('-')[1]) - Number(b.split('-')[1]))
  return {
    analysis,
    events,
    known,
    spans,
    published: () => published,
    regroup: () => analysis.regroup(between),
    observe: (values: readonly StreamValue[]) => analysis.observe(values, between),
  }
}

const unexpected = (): never => expect.unreachable()

const of = (stream: string, ...times: readonly number[]): StreamValue[] =>
  times.map((time) => ({ stream, time, value: time % 7 }))

describe('windows of a group', () => {
  it('are complete when every stream has reached their end', async () => {
    const one = analysisOf({ more: { temporal: { window: 3 } } })
    await one.regroup()
    await one.observe(of('a', 1, 2, 3, 4))
    expect(one.spans()).toEqual([])
    await one.observe(of('b', 1, 2, 3))
    expect(one.spans()).toEqual(['1-3'])
    await one.observe(of('b', 4))
    expect(one.spans()).toEqual(['1-3', '2-4'])
  })

  it('have a row for each time, filled from the value before', async () => {
    const one = analysisOf({ more: { temporal: { window: 3 } } })
    await one.regroup()
    await one.observe([...of('a', 10, 20, 30), ...of('b', 12, 22, 32)])
    expect(one.spans()).toEqual(['10-20', '12-22', '20-30'])
  })

  it('need a value of every stream within them', async () => {
    const one = analysisOf({ more: { temporal: { window: 2 } } })
    await one.regroup()
    await one.observe([...of('a', 1, 2, 3, 4, 5), ...of('b', 1, 5)])
    expect(one.spans()).toEqual(['1-2', '4-5'])
  })

  it('follow each other by the step', async () => {
    const one = analysisOf({ more: { temporal: { window: 4, step: 3 } } })
    await one.regroup()
    const times = Array.from({ length: 12 }, (_, i) => i)
    for (const time of times) await one.observe([...of('a', time), ...of('b', time)])
    expect(one.spans()).toEqual(['0-3', '3-6', '6-9'])
  })

  it('change with a late value, which makes no other event', async () => {
    const one = analysisOf({ more: { temporal: { window: 2 } } })
    await one.regroup()
    await one.observe([...of('a', 1, 3), ...of('b', 1, 3)])
    expect(one.spans()).toEqual(['1-3'])
    await one.observe([...of('a', 2), ...of('b', 2)])
    expect(one.spans()).toEqual(['1-2', '2-3'])
  })

  it('are not published again for values that are known', async () => {
    const one = analysisOf({ more: { temporal: { window: 2 } } })
    await one.regroup()
    const values = [...of('a', 1, 2, 3), ...of('b', 1, 2, 3)]
    await one.observe(values)
    const published = one.published()
    await one.observe(values)
    expect(one.published()).toBe(published)
  })

  it('lie within the hours of one day', async () => {
    const one = analysisOf({ more: { temporal: { window: 2, hours: '07:00-19:00' } } })
    await one.regroup()
    const hour = (day: number, hours: number): number => new Date(2026, 4, day, hours).getTime()
    const times = [hour(4, 6), hour(4, 17), hour(4, 18), hour(4, 19), hour(5, 7), hour(5, 8)]
    await one.observe([...of('a', ...times), ...of('b', ...times)])
    expect(one.spans()).toEqual([`${times[1]}-${times[2]}`, `${times[4]}-${times[5]}`])
  })

  it('keep their steps when old rows are dropped, and too old values are ignored', async () => {
    const one = analysisOf({ more: { temporal: { window: 4, step: 4 } } })
    await one.regroup()
    const count = 2001
    for (let time = 0; time < count; time++) await one.observe([...of('a', time), ...of('b', time)])
    const expected = Array.from({ length: (count / 4) | 0 }, (_, i) => `${4 * i}-${4 * i + 3}`)
    expect(one.spans()).toEqual(expected)
    const published = one.published()
    await one.observe(of('a', 0.5))
    expect(one.published()).toBe(published)
    expect(one.analysis.counts().ignoredValues).toBe(1)
  })

  it('do not depend on the order of arrival', async () => {
    const feed = fc.record({
      values: fc.array(
        fc.record({ stream: fc.constantFrom('a', 'b'), time: fc.nat(40), value: fc.nat(16) }),
        { maxLength: 60 },
      ),
      temporal: fc.record({ window: fc.integer({ min: 2, max: 6 }), step: fc.integer({ min: 1, max: 4 }) }),
      order: fc.array(fc.nat(1000), { minLength: 60, maxLength: 60 }),
      part: fc.integer({ min: 1, max: 20 }),
    })
    await fc.assert(
      fc.asyncProperty(feed, async ({ values, temporal, order, part }) => {
        // One value per stream and time: of several, the last to arrive counts.
        const unique = [...new Map(values.map((one) => [`${one.stream} ${one.time}`, one])).values()]
        const shuffled = unique
          .map((one, i) => [order[i]!, one] as const)
          .sort(([a], [b]) => a - b)
          .map(([, one]) => one)
        const [sorted, mixed] = [analysisOf({ more: { temporal } }), analysisOf({ more: { temporal } })]
        await sorted.regroup()
        await mixed.regroup()
        for (const one of unique.toSorted((a, b) => a.time - b.time)) await sorted.observe([one])
        for (let from = 0; from < shuffled.length; from += part)
          await mixed.observe(shuffled.slice(from, from + part))
        expect(Object.fromEntries(mixed.events)).toEqual(Object.fromEntries(sorted.events))
      }),
      { numRuns: runs(100) },
    )
  })

  it('continue from saved values', async () => {
    const more = { temporal: { window: 4, step: 3 } }
    const [whole, first, second] = [analysisOf({ more }), analysisOf({ more }), analysisOf({ more })]
    for (const one of [whole, first]) await one.regroup()
    const rows = (from: number, to: number): StreamValue[] =>
      Array.from({ length: to - from }, (_, i) => [...of('a', from + i), ...of('b', from + i)]).flat()
    for (const value of rows(0, 1000)) await whole.observe([value])
    const saved = new Map<string, { n: number; time: number; value: number }>()
    const groups = new Map<string, number>()
    for (const value of rows(0, 700)) await first.observe([value])
    const unsaved = first.analysis.unsaved()
    for (const { n, time, value } of unsaved.values) {
      if (value === undefined) saved.delete(`${n} ${time}`)
      else saved.set(`${n} ${time}`, { n, time, value })
    }
    for (const [key, since] of unsaved.groups) if (since !== undefined) groups.set(key, since)
    const streams = [...unsaved.streams] as [string, number][]
    second.analysis.restore(streams, [...groups])
    second.analysis.restoreValues([...saved.values()], new Map(streams.map(([id, n]) => [n, id])))
    await second.regroup()
    // The log is read again from some earlier position.
    for (const value of rows(690, 1000)) await second.observe([value])
    expect(saved.size).toBeLessThan(800)
    expect([...first.spans(), ...second.spans()]).toEqual(whole.spans())
  })
})

describe('groups', () => {
  it('end with their streams, whose values are dropped', async () => {
    const one = analysisOf({})
    await one.regroup()
    await one.observe(of('a', 1, 2))
    expect(one.analysis.figures('m')).toMatchObject({ groups: 1, streams: 2 })
    one.analysis.forgetUnsaved()
    one.known.delete('a')
    await one.regroup()
    expect(one.analysis.figures('m')).toMatchObject({ groups: 0, streams: 0 })
    const { values, streams } = one.analysis.unsaved()
    expect(values).toEqual([1, 2].map((time) => ({ n: 1, time, value: undefined })))
    expect([...streams]).toEqual([['a', undefined]])
  })
})
