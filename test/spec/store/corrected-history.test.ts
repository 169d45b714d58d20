/**
 * The cost of corrections is proportional to what they affect: chunks without a corrected instant are not
 * read if statistics or a time bound suffice. The bodies of those chunks are damaged here, so reading one
 * fails.
 */

import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { expect, test } from 'vitest'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { AggregateMethod } from '#ngsi-ld/history/aggregate.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import {
  everySecond,
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
const folds = 8
const at = (fold: number, n: number): number => startMs + fold * foldMs + n * everySecond

interface Damageable {
  readonly site: HistorySite
  /** Damages all chunks of the entity except these, in order of time. */
  damageAllBut(...sound: readonly number[]): void
}

/** Eight chunks of a thousand values each. */
async function openChunks(): Promise<Damageable> {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 100 * megabyte })
  await site.create(id)
  for (let i = 0; i < folds; i++) await site.fold(id, at(i, 0))
  return {
    site,
    damageAllBut(...sound) {
      const database = new BetterSqlite3(join(folder, 'selvedge.db'))
      const keys = database.prepare('SELECT k FROM chunk ORDER BY k').safeIntegers().pluck().all()
      expect(keys).toHaveLength(folds)
      const damage = database.prepare("UPDATE chunk SET body = x'00' WHERE k = ?")
      for (const [i, key] of keys.entries()) if (!sound.includes(i)) damage.run(key)
      database.close()
    },
  }
}

const instanceAt = (site: HistorySite, time: number): string =>
  site.broker
    .history(id, {
      timeproperty: 'observedAt',
      timerel: 'between',
      timeAtMs: time,
      endTimeAtMs: time + 1,
      limit: 1,
    })!
    .attributes.get('level')![0]!.instanceId
const remove = (site: HistorySite, time: number): Promise<void> =>
  site.broker.temporal.removeInstance(id, 'level', instanceAt(site, time))
const replace = (site: HistorySite, time: number, value: number, observedAt = time): Promise<void> => {
  const instance = { type: 'Property', value, observedAt: msToDateTime(observedAt) } as AttributeInstance
  return site.broker.temporal.replaceInstance(id, 'level', instanceAt(site, time), instance)
}

test('aggregates read only the chunks that hold a corrected instant', async () => {
  const { site, damageAllBut } = await openChunks()
  await replace(site, at(2, 500), 7)
  await remove(site, at(5, 0))
  damageAllBut(2, 5)
  const methods = new Set<AggregateMethod>(['totalCount', 'max'])
  const duration = { months: 0, ms: foldMs }
  const counts = async (query: object): Promise<unknown[]> => {
    const asked = { timeproperty: 'observedAt', limit: 1, methods, duration, ...query } as const
    const found = await site.broker.temporal.aggregate(id, asked)
    const { totalCount, max } = found!.attributes.get('level')![0] as unknown as Record<string, [number][]>
    return [totalCount!.map(([count]) => count), max!.map(([greatest]) => greatest > 1)]
  }
  const whole = [1000, 1000, 1000, 1000, 1000, 999, 1000, 1000]
  const exceeds = whole.map((_, i) => i === 2)
  expect(await counts({ timerel: 'after', timeAtMs: startMs })).toEqual([whole, exceeds])
  expect(await counts({})).toEqual([whole, exceeds])
  expect(await counts({ timerel: 'before', timeAtMs: at(folds, 0) })).toEqual([whole, exceeds])
})

test('the last instances are found from the end, and removed ones are replaced by earlier ones', async () => {
  const { site, damageAllBut } = await openChunks()
  await replace(site, at(3, 0), 7)
  for (const n of [997, 998, 999]) await remove(site, at(7, n))
  damageAllBut(6, 7)
  const last = (lastN: number, query: object = {}): number[] => site.read(id, { lastN, ...query })
  expect(last(2)).toEqual([at(7, 995), at(7, 996)])
  // As many as the last chunk held.
  const times = last(perFold)
  expect(times).toHaveLength(perFold)
  expect([times[0], times.at(-1)]).toEqual([at(6, 997), at(7, 996)])
  expect(last(1, { timerel: 'before', timeAtMs: at(7, 0) })).toEqual([at(6, 999)])
})

test('the last instances are found in a tail whose newest ones were removed', async () => {
  const { site } = await openChunks()
  const add = (n: number): Promise<void> => {
    const instance = {
      type: 'Property',
      value: n,
      observedAt: msToDateTime(at(folds, n)),
    } as AttributeInstance
    return site.broker.temporal.append(
      id,
      { types: undefined, attributes: new Map([['level', [instance]]]) },
      'http',
    )
  }
  for (const n of [1, 2, 3, 4]) await add(n)
  await remove(site, at(folds, 4))
  await remove(site, at(folds, 3))
  expect(site.read(id, { lastN: 1 })).toEqual([at(folds, 2)])
  expect(site.read(id, { lastN: 2 })).toEqual([at(folds, 1), at(folds, 2)])
})

test('a part is read up to its end, and an instance is found where it was moved to', async () => {
  const { site, damageAllBut } = await openChunks()
  await replace(site, at(4, 10), 7, at(1, 20) + 5)
  await replace(site, at(1, 30), 8, at(7, 20) + 5)
  damageAllBut(1, 4)
  const window = { timerel: 'between', timeAtMs: at(1, 19), endTimeAtMs: at(1, 32) } as const
  const seconds = [19, 20, 20.005, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31]
  expect(site.read(id, window)).toEqual(seconds.map((n) => at(1, n)))
  const first = site.read(id, { timerel: 'after', timeAtMs: at(1, 0), limit: 100 })
  expect(first).toHaveLength(100)
  expect(first.at(-1)).toBe(at(1, 99))
})

test('over write times, chunks written at other times are not read', async () => {
  const { site, damageAllBut } = await openChunks()
  await replace(site, at(3, 0), 7)
  damageAllBut(2, 3)
  const window = {
    timeproperty: 'modifiedAt',
    timerel: 'between',
    timeAtMs: at(2, 5),
    endTimeAtMs: at(2, 8),
  } as const
  expect(site.read(id, window)).toEqual([5, 6, 7].map((n) => at(2, n)))
  const asked = { ...window, limit: 1, methods: new Set<AggregateMethod>(['totalCount']) }
  const found = await site.broker.temporal.aggregate(id, asked)
  expect(found!.attributes.get('level')![0]!['totalCount']).toEqual([
    [3, msToDateTime(at(2, 5)), msToDateTime(at(2, 8))],
  ])
})
