/**
 * Retention by size on the real write path: the parts removed, the parts kept, the gap records, and that
 * failures and restarts change nothing about it.
 */
import { expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { createGroup } from '#broker/commit/stage.ts'
import { createRetention } from '#broker/upkeep/retention-policy.ts'
import { createHistory } from '#store/history/history-rows.ts'
import { createRecords } from '#store/tables/records.ts'
import {
  fill,
  foldMs,
  ids,
  lostOf,
  megabyte,
  perFold,
  rollUpParts,
  type Span,
  sitesOfFile,
  spanOf,
  startMs,
  sum,
  wallMs,
} from '#test/kit/history-site.ts'

const { temporaryFolder, openSite } = sitesOfFile()

test('below the bound nothing is removed, and no gap is recorded', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 2 * megabyte })
  const written = await fill(site, 40)
  await site.settle()
  expect(site.retained.usedBytes(0)).toBeLessThan(2 * megabyte)
  for (const id of ids) expect(site.span(id)).toEqual(written.get(id))
  expect(site.gaps()).toEqual([])
  expect(site.metrics.counter('selvedge_history_evicted_total').value).toBe(0)
})

test('above the bound the oldest history of all streams is removed first, and gaps record it exactly', async () => {
  const maxBytes = megabyte
  const site = await openSite(temporaryFolder(), { maxBytes })
  const written = await fill(site, 100)
  await site.settle()
  const used = site.retained.usedBytes(0)
  expect(used).toBeLessThanOrEqual(maxBytes)
  expect(used).toBeGreaterThan(maxBytes * 0.85)
  let gone = 0
  const ends: number[] = []
  for (const id of ids) {
    const all = written.get(id)!
    const kept = site.span(id)
    expect(kept).toMatchObject({ t1: all.t1, isWhole: true })
    const s = site.streamOf(id)
    const lost = lostOf(all, kept)
    expect(site.retained.gaps(s)).toMatchObject([{ s, ...lost, at: wallMs, reason: 'size' }])
    const rid = site.count(`SELECT rid FROM entity WHERE id = '${id}'`)
    expect(site.retained.gapsOfEntity(rid)).toEqual(site.retained.gaps(s))
    gone += lost.count
    ends.push(lost.t1)
  }
  // No stream lost data younger than another one's oldest, by more than a chunk.
  expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(foldMs)
  expect(sum(site.gaps())).toBe(gone)
  expect(site.metrics.counter('selvedge_history_evicted_total').value).toBe(gone)
  const told = site.events.filter(({ event }) => event === 'history.evicted')
  expect(told.reduce((total, { size }) => total + Number(size), 0)).toBe(gone)
})

test('free pages are reused: the file does not grow with the data that passes through it', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: megabyte })
  const [id] = ids as [string]
  await site.create(id)
  let pages = 0
  for (let i = 0; i < 400; i++) {
    await site.fold(id, startMs + i * foldMs)
    await site.turn()
    if (i === 150) pages = site.count('SELECT page_count FROM pragma_page_count')
  }
  expect(sum(site.gaps())).toBeGreaterThan(250 * perFold)
  expect(site.count('SELECT page_count FROM pragma_page_count')).toBeLessThanOrEqual(pages * 1.02)
})

test('reads at the edge of a gap return the remaining data, and late data inside a gap is kept', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: megabyte })
  const [id] = ids as [string]
  await fill(site, 60)
  await site.settle()
  const { t0: first, count } = site.span(id)
  const window = (from: number, to: number) =>
    site.read(id, { timerel: 'between', timeAtMs: from, endTimeAtMs: to })
  expect(window(startMs, first)).toEqual([])
  expect(window(first - 5000, first + 2500)).toEqual([first, first + 1000, first + 2000])
  expect(site.read(id, { timerel: 'before', timeAtMs: first + 1 })).toEqual([first])
  expect(spanOf(site.read(id, { timerel: 'after', timeAtMs: first }))).toEqual(site.span(id))
  expect(site.read(id, { lastN: 1 })).toEqual([site.span(id).t1])

  const lost = sum(site.gaps())
  await site.fold(id, startMs, 1)
  expect(window(startMs, startMs + 1)).toEqual([startMs])
  expect(window(startMs, first + 1)).toEqual([startMs, first])
  expect(site.span(id)).toMatchObject({ t0: startMs, count: count + 1 })
  expect(sum(site.gaps())).toBe(lost)
})

test('a restart keeps gaps and history, and the next eviction continues after the last one', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 1.5 * megabyte })
  await fill(site, 80)
  await site.settle()
  const gaps = site.gaps()
  const kept = ids.map(site.span)
  expect(gaps.length).toBe(3)
  await site.close()

  const same = await openSite(folder, { maxBytes: 1.5 * megabyte })
  await same.settle()
  expect(same.gaps()).toEqual(gaps)
  expect(ids.map(same.span)).toEqual(kept)
  await same.close()

  const smaller = await openSite(folder, { maxBytes: megabyte })
  await smaller.settle()
  const left = ids.map(smaller.span)
  expect(left).toMatchObject(kept.map(({ t1 }) => ({ t1, isWhole: true })))
  const total = (spans: readonly Span[]): number => spans.reduce((all, { count }) => all + count, 0)
  const more = total(kept) - total(left)
  expect(more).toBeGreaterThan(10_000)
  expect(smaller.gaps().length).toBe(3)
  expect(sum(smaller.gaps())).toBe(sum(gaps) + more)
  expect(smaller.count("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'")).toBe(0)
})

test('a bound that documents alone exceed is reported once', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 1 })
  for (const id of ids) await site.create(id)
  for (let i = 0; i < 3; i++) {
    await site.settle()
    site.clock.ahead += 700_000
  }
  const told = site.events.filter(({ event }) => event === 'history.no-room')
  expect(told).toMatchObject([{ level: 'warn', tenant: '', maxBytes: 1 }])
})

test('the log has limits of its own and evicts no history', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: megabyte })
  const [id] = ids as [string]
  await site.create(id)
  await site.fold(id, startMs, 20 * perFold)
  const text = 'x'.repeat(1000)
  for (let i = 0; i < 12; i++) {
    await site.door.commit((stage) => {
      const draft = site.documents.find(stage, id)!
      for (let j = 0; j < 250; j++) {
        site.observer.observe(stage, draft, 'level', '', wallMs + (i * 250 + j) * 1000, text)
      }
    })
  }
  await site.settle()
  expect(site.retained.usedBytes(0)).toBeGreaterThan(3 * megabyte)
  expect(site.gaps()).toEqual([])
  expect(site.read(id).length).toBe(23 * perFold)
})

test('a group that fails leaves everything to the next one', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 100 * megabyte })
  await fill(site, 40)
  const { tenant, log, metrics } = {
    tenant: '',
    log: createLog({ level: 'error', clock: site.clock, write: () => {} }),
    metrics: createMetrics(),
  }
  const records = createRecords(site.database)
  const history = createHistory(site.database)
  const retention = createRetention(
    {
      ...rollUpParts(site.database),
      tenant,
      retained: site.retained,
      history,
      records,
      clock: site.clock,
      log,
      metrics,
    },
    { maxBytes: megabyte / 2 },
  )
  const group = createGroup({ at: wallMs, number: 1000 })
  retention.attach(group, 0)
  const rows = group.message().rows
  expect(rows.filter(([name]) => name === 'chunk.delete').length).toBeGreaterThan(20)
  expect(rows.filter(([name]) => name === 'gap.insert').length).toBe(3)
  group.undo()
  const next = createGroup({ at: wallMs, number: 1000 })
  retention.attach(next, 0)
  expect(next.message().rows).toEqual(rows)
  expect(metrics.counter('selvedge_history_evicted_total').value).toBe(0)
})

test('a commit that fails removes nothing and records nothing; the removal happens later', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 2 * megabyte })
  const written = await fill(site, 40)
  await site.close()

  // The writer thread reads it when it starts.
  process.env['SELVEDGE_FAILPOINTS'] = 'writer:before-commit=throw(1)'
  const failing = await openSite(folder, { maxBytes: megabyte / 2 })
  delete process.env['SELVEDGE_FAILPOINTS']
  await failing.turn()
  expect(failing.events.map(({ event }) => event)).toContain('store.commit-failed')
  for (const id of ids) expect(failing.span(id)).toEqual(written.get(id))
  expect(failing.gaps()).toEqual([])
  expect(failing.metrics.counter('selvedge_history_evicted_total').value).toBe(0)

  failing.clock.ahead += 11_000
  await failing.settle()
  const lost = ids.map((id) => lostOf(written.get(id)!, failing.span(id)))
  expect(failing.gaps()).toMatchObject(lost)
  expect(failing.retained.usedBytes(0)).toBeLessThanOrEqual(megabyte / 2)
})

test('gap records are limited: the least recently changed ones are merged into one sum per reason', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 100 * megabyte })
  const total = limits.gapsMax.value + 150
  for (let g = 1; g <= total; ) {
    await site.door.commit((stage) => {
      for (const end = g + 20_000; g < end && g <= total; g++) {
        const reason = g % 2 === 0 ? 'size' : 'age'
        stage.write('gap.insert', g, g, g, 1, g, g + 10, 2, wallMs + g, reason, wallMs + g, g, 0)
      }
    })
  }
  await site.close()
  const again = await openSite(folder, { maxBytes: 100 * megabyte })
  for (let i = 0; i < 6; i++) await again.turn()
  expect(again.retained.gapCount()).toBe(limits.gapsMax.value)
  expect(again.count('SELECT sum(count) FROM gap')).toBe(2 * total)
  expect(again.retained.gapsOfEntity(0)).toMatchObject([
    { g: -1, t0: 1, t1: 159, count: 150, at: wallMs + 149, reason: 'age' },
    { g: 0, t0: 2, t1: 160, count: 150, at: wallMs + 150, reason: 'size' },
  ])
})
