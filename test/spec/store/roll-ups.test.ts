/**
 * Aggregates over chunks, tails and roll-ups on the real write path: they equal aggregates of the individual
 * values. Rolled-up hours stay included until they are too old themselves.
 */
import { expect, test } from 'vitest'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import { parseDuration } from '#ngsi-ld/values/duration.ts'
import {
  dayMs,
  everySecond,
  foldMs,
  type HistorySite,
  ids,
  megabyte,
  perFold,
  sitesOfFile,
  startMs,
  wallMs,
} from '#test/kit/history-site.ts'

const { temporaryFolder, openSite } = sitesOfFile()
const [id] = ids as [string]
const methods = new Set<AggregateMethod>(['totalCount', 'sum', 'min', 'max', 'stddev'])
const hourMs = 3_600_000
type Row = [value: number, start: string, end: string]

async function aggregates(site: HistorySite, query: object = {}): Promise<Record<string, Row[]>> {
  const all = {
    timeproperty: 'observedAt',
    limit: 1,
    methods,
    duration: parseDuration('PT1H'),
    ...query,
  } as const
  const found = await site.broker.temporal.aggregate(id, all)
  return (found?.attributes.get('level')?.[0] ?? {}) as unknown as Record<string, Row[]>
}
const total = (rows: readonly Row[] | undefined): number =>
  (rows ?? []).reduce((sum, [count]) => sum + count, 0)

test('aggregates equal those of the values, wherever chunks begin and end', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  await site.create(id)
  for (let i = 0; i < 12; i++) await site.fold(id, startMs + i * foldMs)
  const s = site.streamOf(id)
  for (const from of [startMs, startMs + 1_234_000, startMs + 777]) {
    const to = startMs + 9.5 * foldMs
    const window = { timerel: 'between', timeAtMs: from, endTimeAtMs: to } as const
    for (const text of ['PT1H', 'PT7M', 'P1D']) {
      const duration = parseDuration(text)!
      const { sum, totalCount, max } = await aggregates(site, { ...window, duration })
      const times = Array.from({ length: 12 * perFold }, (_, i) => startMs + i * everySecond)
      const groups = Map.groupBy(
        times.filter((time) => time >= from && time < to),
        (time) => Math.floor((time - from) / duration.ms),
      )
      expect(totalCount!.map(([count]) => count)).toEqual([...groups.values()].map((group) => group.length))
      for (const [i, group] of [...groups.values()].entries()) {
        const values = group.map((time) => Math.sin(time * s))
        expect(sum![i]![0]).toBeCloseTo(
          values.reduce((all, value) => all + value, 0),
          6,
        )
        expect(max![i]![0]).toBe(Math.max(...values))
      }
    }
  }
})

test('rolled-up history stays in aggregates, and is removed when it is too old itself', async () => {
  const settings = { maxBytes: 100 * megabyte, maxAgeDays: 100, rollUpDays: 200 }
  const site = await openSite(temporaryFolder(), settings)
  await site.create(id)
  for (let i = 0; i < 20; i++) await site.fold(id, startMs + i * foldMs)
  const window = { timerel: 'after', timeAtMs: startMs - (startMs % hourMs) } as const
  const before = await aggregates(site, window)

  site.clock.wall = wallMs + 10.5 * foldMs
  site.clock.ahead += hourMs
  await site.settle()
  expect(site.read(id).length).toBeLessThan(12 * perFold)
  const after = await aggregates(site, window)
  expect(after['totalCount']).toEqual(before['totalCount'])
  expect(after['min']).toEqual(before['min'])
  expect(after['max']).toEqual(before['max'])
  for (const [i, [value]] of after['stddev']!.entries())
    expect(value).toBeCloseTo(before['stddev']![i]![0], 6)

  const distinct = await aggregates(site, { ...window, methods: new Set(['distinctCount']) })
  expect(distinct['distinctCount']!.length).toBeLessThan(before['totalCount']!.length)

  site.clock.wall = wallMs + 150 * dayMs
  site.clock.ahead += hourMs
  await site.settle()
  expect(total((await aggregates(site, window))['totalCount'])).toBe(0)
})

test('without roll-ups none of it remains', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte, maxAgeDays: 50 })
  await site.create(id)
  for (let i = 0; i < 4; i++) await site.fold(id, startMs + i * foldMs)
  site.clock.ahead += hourMs
  await site.settle()
  expect(await aggregates(site)).toEqual({})
})
