/**
 * Retention on the real write path: tenant, writer thread and SQLite with a small bound. History is written as folds
 * of noise, which no codec makes small; then groups are made one by one until nothing more goes. Time is passed in.
 */
import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { limits } from '#base/limits.ts'
import { createLog } from '#base/log.ts'
import { createMetrics } from '#base/metrics.ts'
import { createRetention, type RetentionSettings } from '#broker/retention.ts'
import { createGroup } from '#broker/stage.ts'
import { openTenants } from '#broker/tenants.ts'
import type { TemporalQuery } from '#broker/types.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { StreamFold } from '#store/fold.ts'
import { createHistory } from '#store/history.ts'
import { createRecords } from '#store/records.ts'
import { createRetained, type GapRow } from '#store/retention.ts'
import { createWriter } from '#store/writer.ts'

const megabyte = 1024 * 1024
const dayMs = 86_400_000
const wallMs = Date.UTC(2026, 5, 1)
const startMs = wallMs - 100 * dayMs
const latestMs = Date.UTC(9999, 11, 31)
const everySecond = 1000
const perFold = 1000

const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-retention-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function openSite(dataFolder: string, retention: RetentionSettings) {
  const clock = {
    wall: wallMs,
    ahead: 0,
    now: () => clock.wall,
    monotonic: () => performance.now() + clock.ahead,
  }
  const events: Record<string, unknown>[] = []
  const log = createLog({ level: 'info', clock, write: (line) => events.push(JSON.parse(line)) })
  const metrics = createMetrics()
  const writer = createWriter((error) => {
    throw new AssertionError({ message: `the writer thread died: ${String(error)}` })
  })
  const nowhere = { start() {}, committed() {}, reread() {}, close: async () => undefined }
  const tenants = await openTenants(
    { dataFolder, writer, clock, log, metrics, attach: () => nowhere },
    { lingerMs: 0, synchronous: 'NORMAL', writebackMs: 60_000, history: retention },
  )
  const { main } = tenants
  const retained = createRetained(main.database)
  const history = createHistory(main.database)
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await tenants.close()
    await writer.end()
  }
  closers.push(close)

  const count = (sql: string): number => main.database.prepare<[], number>(sql).pluck().get() ?? 0
  const streamOf = (id: string): number =>
    count(`SELECT s FROM stream JOIN entity USING (rid) WHERE id = '${id}'`)
  /** What is there: changes when anything is removed. */
  const mark = (): string =>
    ['chunk', 'entity_history', 'tombstone'].map((table) => count(`SELECT count(*) FROM ${table}`)).join()

  /** One group, a little later. */
  async function turn(): Promise<void> {
    clock.ahead += 1100
    await main.door.commit(() => undefined)
  }
  return {
    ...main,
    clock,
    events,
    metrics,
    retained,
    close,
    count,
    turn,
    /** Groups until nothing more goes. */
    async settle(): Promise<void> {
      let before = ''
      for (let calm = 0; calm < 4; calm++) {
        await turn()
        if (mark() !== before) calm = 0
        before = mark()
      }
    },
    create: (id: string) =>
      main.broker.create({ id, type: 'Store', level: { type: 'Property', value: 0 } }, 'http'),
    /** Folds so many instances into the stream of an entity's attribute, one a second. */
    fold: (id: string, from: number, amount = perFold) =>
      main.door.commit((stage) => {
        const { s } = main.streams.open(stage, main.documents.find(stage, id)!, 'level', '')
        stage.foldStream(noise(s, from, amount))
        return s
      }),
    /** The folded instances of an entity's attribute. */
    span: (id: string): Span =>
      spanOf(history.chunks(streamOf(id), 0, latestMs).flatMap((chunk) => [...decodeChunk(chunk).times])),
    /** Times by a temporal query, over chunks and tail. */
    read(id: string, query: Partial<TemporalQuery> = {}): number[] {
      const all = { timeproperty: 'observedAt', limit: 1_000_000, ...query } as const
      const instances = main.broker.history(id, all)?.attributes.get('level') ?? []
      return instances.flatMap(({ observedAt }) => observedAt ?? [])
    },
    streamOf,
    gaps: (): GapRow[] => main.database.prepare<[], GapRow>('SELECT * FROM gap ORDER BY s, rid, g').all(),
  }
}

/** Values of full mantissa: nothing to compress. */
function noise(s: number, from: number, amount: number): StreamFold {
  const times = Float64Array.from({ length: amount }, (_, i) => from + i * everySecond)
  return {
    s,
    folded: 0,
    times,
    modified: times.slice(),
    values: times.map((time) => Math.sin(time * s)),
    others: [],
    shapes: ['{"type":"Property"}'],
  }
}

const ids = ['urn:ngsi-ld:Store:1', 'urn:ngsi-ld:Store:2', 'urn:ngsi-ld:Store:3']
const foldMs = perFold * everySecond

/** Instances one second apart, none missing between the first and the last. */
interface Span {
  readonly t0: number
  readonly t1: number
  readonly count: number
  readonly isWhole: boolean
}

function spanOf(times: readonly number[]): Span {
  const [t0, t1] = [times[0] ?? Number.NaN, times.at(-1) ?? Number.NaN]
  const isWhole = times.every((time, i) => time === t0 + i * everySecond)
  return { t0, t1, count: times.length, isWhole }
}

/** What is missing of a span that lost its beginning. */
const lostOf = (all: Span, kept: Span) => ({
  t0: all.t0,
  t1: kept.t0 - everySecond,
  count: all.count - kept.count,
})

/** Three streams with so many chunks each, written in order of time, the streams a little apart. */
async function fill(site: Awaited<ReturnType<typeof openSite>>, chunks: number): Promise<Map<string, Span>> {
  const start = (offset: number): number => startMs + offset * 10_000
  for (const id of ids) await site.create(id)
  for (let i = 0; i < chunks; i++) {
    for (const [offset, id] of ids.entries()) await site.fold(id, start(offset) + i * foldMs)
  }
  const count = chunks * perFold
  const spans = ids.map((_, offset): Span => {
    const t0 = start(offset)
    return { t0, t1: t0 + (count - 1) * everySecond, count, isWhole: true }
  })
  return new Map(ids.map((id, i) => [id, spans[i]!]))
}

const sum = (gaps: readonly GapRow[]): number => gaps.reduce((total, { count }) => total + count, 0)

test('below the bound nothing is removed, and no gap is recorded', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 2 * megabyte })
  const written = await fill(site, 40)
  await site.settle()
  expect(site.retained.usedBytes(0)).toBeLessThan(2 * megabyte)
  for (const id of ids) expect(site.span(id)).toEqual(written.get(id))
  expect(site.gaps()).toEqual([])
  expect(site.metrics.counter('selvedge_history_evicted_total').value).toBe(0)
})

test('above the bound the oldest history goes first, over all streams, and gaps tell exactly what went', async () => {
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
  // No stream lost what is younger than what another one kept, by more than a chunk.
  expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(foldMs)
  expect(sum(site.gaps())).toBe(gone)
  expect(site.metrics.counter('selvedge_history_evicted_total').value).toBe(gone)
  const told = site.events.filter(({ event }) => event === 'history.evicted')
  expect(told.reduce((total, { size }) => total + Number(size), 0)).toBe(gone)
})

test('free pages are filled again: the file does not grow with what passes through it', async () => {
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

test('reads at the edge of a gap give what is left, and what comes late into a gap is kept', async () => {
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

test('a restart keeps gaps and history, and the next eviction goes on where the last one ended', async () => {
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

test('by age, chunks go that end before the bound; one that reaches over it stays', async () => {
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
    // The chunk that the bound goes through is whole, the one before it is gone.
    expect(kept.t0).toBeLessThan(cut)
    expect(kept.t0).toBeGreaterThan(cut - foldMs)
    expect(site.gaps()[i]).toMatchObject({ ...lostOf(all, kept), reason: 'age' })
  }
  expect(site.gaps().length).toBe(3)
})

test('size and age are told apart in gaps of the same stream', async () => {
  const folder = temporaryFolder()
  const bySize = await openSite(folder, { maxBytes: megabyte })
  const written = await fill(bySize, 60)
  await bySize.settle()
  const [id] = ids as [string]
  const afterSize = bySize.span(id)
  await bySize.close()

  const byAge = await openSite(folder, { maxBytes: megabyte, maxAgeDays: 100 })
  byAge.clock.wall = wallMs + 50 * foldMs
  await byAge.settle()
  const kept = byAge.span(id)
  expect(byAge.retained.gaps(byAge.streamOf(id))).toMatchObject([
    { reason: 'size', ...lostOf(written.get(id)!, afterSize) },
    { reason: 'age', ...lostOf(afterSize, kept) },
  ])
  expect(kept.count).toBeLessThan(afterSize.count)
})

test('changes of entities go by their commit time; a deleted entity is forgotten when all of it is gone', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 100 * megabyte, maxAgeDays: 10 })
  const [gone, stays] = ids as [string, string]
  await site.create(stays)
  await site.create(gone)
  await site.fold(gone, wallMs - dayMs)
  await site.broker.remove(gone, 'http')
  const rid = site.count('SELECT rid FROM tombstone')
  // Records fold when they are half an hour old, and count as settled with the next look at the log.
  for (let i = 0; i < 4; i++) {
    site.clock.ahead += 40 * 60_000
    await site.turn()
  }
  expect(site.count('SELECT sum(count) FROM entity_history')).toBe(3)
  expect(site.read(gone).length).toBe(perFold)

  site.clock.wall = wallMs + 9 * dayMs + foldMs
  site.clock.ahead += 3_600_000
  await site.settle()
  // One day later than the observations: only they are old enough.
  expect(site.gaps()).toMatchObject([{ s: expect.any(Number), rid, count: perFold, reason: 'age' }])
  expect(site.broker.history(gone, { timeproperty: 'modifiedAt', limit: 100 })).toBeDefined()

  site.clock.wall = wallMs + 10 * dayMs + 1
  for (let i = 0; i < 2; i++) {
    site.clock.ahead += 3_600_000
    await site.settle()
  }
  expect(site.count('SELECT count(*) FROM entity_history')).toBe(0)
  expect(site.gaps()).toMatchObject([
    { s: 0, rid: expect.any(Number), count: 1, t0: wallMs, t1: wallMs },
    { s: 0, rid, count: 2, t0: wallMs, t1: wallMs },
    { count: perFold },
  ])
  expect(site.broker.history(gone, { timeproperty: 'modifiedAt', limit: 100 })).toBeUndefined()
  expect(site.broker.retrieve(stays)).toBeDefined()
  expect(site.broker.history(stays, { timeproperty: 'modifiedAt', limit: 100 })).toBeDefined()
  await site.close()

  const again = await openSite(folder, { maxBytes: 100 * megabyte })
  await again.create(gone)
  expect(again.count(`SELECT rid FROM entity WHERE id = '${gone}'`)).toBeGreaterThan(rid)
  expect(again.read(gone)).toEqual([])
})

test('what a replay would read again is not removed, whatever the bound', async () => {
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
  // This group looks for something to remove, and settles what the one before it folded.
  site.clock.ahead += 700_000
  await site.turn()
  expect(folded()).toBe(4)
  expect(site.gaps()).toEqual([])
  site.clock.ahead += 700_000
  await site.settle()
  expect(folded()).toBe(0)
  expect(site.gaps().map(({ count }) => count)).toEqual([2, 1, 1])
})

test('a bound that documents alone exceed is told once', async () => {
  const site = await openSite(temporaryFolder(), { maxBytes: 1 })
  for (const id of ids) await site.create(id)
  for (let i = 0; i < 3; i++) {
    await site.settle()
    site.clock.ahead += 700_000
  }
  const told = site.events.filter(({ event }) => event === 'history.no-room')
  expect(told).toMatchObject([{ level: 'warn', tenant: '', maxBytes: 1 }])
})

test('the log has bounds of its own and pushes no history out', async () => {
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
    { tenant, retained: site.retained, history, records, clock: site.clock, log, metrics },
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

test('gap records have a ceiling: those untouched for longest become one sum per reason', async () => {
  const folder = temporaryFolder()
  const site = await openSite(folder, { maxBytes: 100 * megabyte })
  const total = limits.gapsMax.value + 150
  for (let g = 1; g <= total; ) {
    await site.door.commit((stage) => {
      for (const end = g + 20_000; g < end && g <= total; g++) {
        const reason = g % 2 === 0 ? 'size' : 'age'
        stage.write('gap.insert', g, g, g, 1, g, g + 10, 2, wallMs + g, reason)
      }
    })
  }
  await site.close()
  const again = await openSite(folder, { maxBytes: 100 * megabyte })
  for (let i = 0; i < 4; i++) await again.turn()
  expect(again.retained.gapCount()).toBe(limits.gapsMax.value)
  expect(again.count('SELECT sum(count) FROM gap')).toBe(2 * total)
  expect(again.retained.gapsOfEntity(0)).toMatchObject([
    { g: -1, t0: 1, t1: 159, count: 150, at: wallMs + 149, reason: 'age' },
    { g: 0, t0: 2, t1: 160, count: 150, at: wallMs + 150, reason: 'size' },
  ])
})
