/**
 * Retention by age on the real write path, for chunks, other changes of entities, and deleted entities.
 */
import { expect, test } from 'vitest'
import {
  dayMs,
  everySecond,
  fill,
  foldMs,
  ids,
  lostOf,
  megabyte,
  perFold,
  sitesOfFile,
  startMs,
  sum,
  wallMs,
} from '#test/kit/history-site.ts'

const { temporaryFolder, openSite } = sitesOfFile()

test('by age, chunks that end before the bound are removed; one that spans it stays', async () => {
  const maxAgeDays = 100
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte, maxAgeDays })
  const written = await fill(site, 40)
  await site.settle()
  expect(site.gaps()).toEqual([])
  site.clock.wall = wallMs + 20.5 * foldMs
  site.clock.ahead += 3_600_000
  await site.settle()
  const cut = site.clock.wall - maxAgeDays * dayMs
  for (const [i, id] of ids.entries()) {
    const all = written.get(id)!
    const kept = site.span(id)
    expect(kept).toMatchObject({ t1: all.t1, isWhole: true })
    // The chunk that contains the bound is complete, the one before it is removed.
    expect(kept.t0).toBeLessThan(cut)
    expect(kept.t0).toBeGreaterThan(cut - foldMs)
    expect(site.gaps()[i]).toMatchObject({ ...lostOf(all, kept), reason: 'age' })
  }
  expect(site.gaps().length).toBe(3)
})

test('gaps of one stream record size and age separately', async () => {
  const folder = temporaryFolder()
  const bySize = await openSite(folder, { maxBytes: megabyte })
  const written = await fill(bySize, 60)
  await bySize.settle()
  const [id] = ids as [string]
  const afterSize = bySize.span(id)
  await bySize.close()

  const byBoth = await openSite(folder, { maxBytes: megabyte / 2, maxAgeDays: 100 })
  byBoth.clock.wall = wallMs + 35.5 * foldMs
  await byBoth.settle()
  const kept = byBoth.span(id)
  const gaps = byBoth.retained.gaps(byBoth.streamOf(id))
  // Chunks that are too old as a whole are removed for age first, then chunks beyond the size limit.
  const ageEnd = startMs + 35 * foldMs - everySecond
  expect(gaps).toMatchObject([
    { reason: 'size', ...lostOf(written.get(id)!, afterSize) },
    { reason: 'age', t0: afterSize.t0, t1: ageEnd },
    { reason: 'size', t0: ageEnd + everySecond, t1: kept.t0 - everySecond },
  ])
  expect(sum(gaps)).toBe(written.get(id)!.count - kept.count)
})

test('changes of entities are removed by commit time; a deleted entity is forgotten when all of its history is removed', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 100 * megabyte, maxAgeDays: 10 })
  const [gone, stays] = ids as [string, string]
  await site.create(stays)
  await site.create(gone)
  await site.fold(gone, wallMs - dayMs)
  await site.fold(gone, wallMs + dayMs)
  await site.broker.remove(gone, 'http')
  const rid = site.count('SELECT rid FROM tombstone')
  // Records are folded after half an hour, and count as settled at the next check of the log.
  for (let i = 0; i < 4; i++) {
    site.clock.ahead += 40 * 60_000
    await site.turn()
  }
  expect(site.count('SELECT sum(count) FROM entity_history')).toBe(3)
  expect(site.read(gone).length).toBe(2 * perFold)
  const isKnown = (id: string): boolean =>
    site.broker.history(id, { timeproperty: 'modifiedAt', limit: 100 }) !== undefined
  /** Two runs: the tombstone is removed in the run after the last history. */
  const pass = async (wall: number): Promise<void> => {
    site.clock.wall = wall + 10 * dayMs
    for (let i = 0; i < 2; i++) {
      site.clock.ahead += 3_600_000
      await site.settle()
    }
  }

  await pass(wallMs - dayMs + foldMs)
  const early = { rid, t0: wallMs - dayMs, count: perFold, reason: 'age' }
  expect(site.gaps()).toMatchObject([early])

  await pass(wallMs + 1)
  const changes = { s: 0, t0: wallMs, t1: wallMs, reason: 'age' }
  expect(site.count('SELECT count(*) FROM entity_history')).toBe(0)
  expect(site.gaps()).toMatchObject([{ ...changes, count: 1 }, { ...changes, rid, count: 2 }, early])
  expect(isKnown(gone)).toBe(true)

  await pass(wallMs + dayMs + foldMs)
  expect(sum(site.gaps())).toBe(2 * perFold + 3)
  expect(isKnown(gone)).toBe(false)
  expect(isKnown(stays)).toBe(true)
  await site.close()

  const again = await openSite(folder, { maxBytes: 100 * megabyte })
  await again.create(gone)
  expect(again.count(`SELECT rid FROM entity WHERE id = '${gone}'`)).toBeGreaterThan(rid)
  expect(again.read(gone)).toEqual([])
})

test('history that a replay would need is not removed, whatever the bound', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 1 })
  for (const id of ids) await site.create(id)
  await site.broker.remove(ids[0]!, 'http')
  await site.settle()
  expect(site.count('SELECT count(*) FROM tombstone')).toBe(1)
  const folded = (): number => site.count('SELECT sum(count) FROM entity_history')
  for (let i = 0; i < 9 && folded() === 0; i++) {
    site.clock.ahead += 40 * 60_000
    await site.turn()
  }
  // This group searches for removable parts, and settles what the previous one folded.
  site.clock.ahead += 700_000
  await site.turn()
  expect(folded()).toBe(4)
  expect(site.gaps()).toEqual([])
  site.clock.ahead += 700_000
  await site.settle()
  expect(folded()).toBe(0)
  expect(site.gaps().map(({ count }) => count)).toEqual([2, 1, 1])
})
