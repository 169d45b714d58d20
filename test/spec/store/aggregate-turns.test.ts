/**
 * Aggregating a long history yields to other work. A write during the aggregation is included completely or
 * not at all.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AggregateQuery } from '#broker/history/temporal-requests.ts'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import {
  foldMs,
  type HistorySite,
  ids,
  megabyte,
  perFold,
  sitesOfFile,
  startMs,
} from '#test/kit/history-site.ts'

const { temporaryFolder, openSite } = sitesOfFile()
const [id] = ids as [string]
const folds = 12

// Each chunk is processed in a turn of its own.
beforeEach(() => setLimit('aggregateTurnMs', 0))
afterEach(restoreLimits)

async function openChunks(): Promise<HistorySite> {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  await site.create(id)
  for (let i = 0; i < folds; i++) await site.fold(id, startMs + i * foldMs)
  return site
}

const each = { methods: new Set<AggregateMethod>(['totalCount', 'distinctCount']) }
const shortPeriods = { methods: new Set<AggregateMethod>(['totalCount']), duration: { months: 0, ms: 7000 } }

/** The number of values. */
async function count(site: HistorySite, how: Pick<AggregateQuery, 'methods' | 'duration'>): Promise<number> {
  const found = await site.broker.temporal.aggregate(id, { timeproperty: 'observedAt', limit: 1, ...how })
  const { totalCount } = found!.attributes.get('level')![0] as unknown as { totalCount: [number][] }
  return totalCount.reduce((sum, [some]) => sum + some, 0)
}

/** One commit adds a value to the first chunk and one to the last. */
const addLate = (site: HistorySite, n: number): Promise<void> =>
  site.door.commit((stage) => {
    const { s } = site.streams.open(stage, site.documents.find(stage, id)!, 'level', '')
    const times = Float64Array.of(startMs + n * 1000 + 500, startMs + (folds - 1) * foldMs + n * 1000 + 500)
    const values = times.map((time) => Math.cos(time))
    stage.foldStream({
      s,
      folded: 0,
      times,
      modified: times.slice(),
      values,
      others: [],
      shapes: ['{"type":"Property"}'],
    })
  })

test('other work runs in between', async () => {
  const site = await openChunks()
  let isDone = false
  const counted = count(site, each).finally(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) await nextTurn()
  expect(await counted).toBe(folds * perFold)
  expect(turns).toBeGreaterThanOrEqual(folds)
})

test.each([
  ['one by one', each],
  ['as numbers', shortPeriods],
])('what is written meanwhile is there as a whole or not at all, %s', async (_, how) => {
  const site = await openChunks()
  const added = async (): Promise<number> => (await count(site, how)) - folds * perFold
  const results: number[] = []
  for (let round = 0; round < 10; round++) {
    const counting = added()
    for (let turn = 0; turn < round; turn++) await nextTurn()
    await addLate(site, round)
    results.push(await counting)
  }
  for (const [round, found] of results.entries()) expect([2 * round, 2 * round + 2]).toContain(found)
  expect(await added()).toBe(2 * results.length)
})

test('an entity deleted while a page is aggregated is included once', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  for (const one of ids) {
    await site.create(one)
    for (let i = 0; i < 4; i++) await site.fold(one, startMs + i * foldMs)
  }
  const search = { limit: 10, offset: 0, count: true }
  const query = { timeproperty: 'observedAt', limit: 10, ...each } as const
  const summing = site.broker.temporal.searchAggregates(search, query)
  await site.broker.remove(id, 'http')
  const { found, count: total } = await summing
  expect(found.map((one) => one.id).toSorted()).toEqual(ids)
  expect(total).toBe(ids.length)
})

test('other work runs while entities without a matching value are tested', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  for (const one of ids) {
    await site.create(one)
    await site.fold(one, startMs)
  }
  const q = parseQuery('level>1000000', (term) => term)
  const search = { q, limit: 10, offset: 0, count: true }
  let turns = 0
  const goOn = (): void => void turns++
  const query = { timeproperty: 'observedAt', limit: 10, ...each, goOn } as const
  const { found, count: total } = await site.broker.temporal.searchAggregates(search, query)
  expect({ found, total }).toEqual({ found: [], total: 0 })
  expect(turns).toBe(ids.length)
})

test('aggregation stops when its client stops waiting', async () => {
  const site = await openChunks()
  let turns = 0
  const goOn = (): void => {
    if (++turns === 3) throw new RangeError('nobody waits')
  }
  const query = { timeproperty: 'observedAt', limit: 1, ...each, goOn } as const
  await expect(site.broker.temporal.aggregate(id, query)).rejects.toThrow('nobody waits')
  const search = { limit: 10, offset: 0, count: true }
  turns = 0
  await expect(site.broker.temporal.searchAggregates(search, query)).rejects.toThrow('nobody waits')
})
