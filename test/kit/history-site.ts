/**
 * A tenant on the real write path with a small bound of history, for tests of retention. History is written as folds
 * of noise, which no codec makes small; then groups are made one by one until nothing more goes. Time is passed in.
 */
import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { createNames } from '#broker/commit/interned-names.ts'
import type { TemporalQuery } from '#broker/history/temporal-requests.ts'
import { openTenants } from '#broker/tenant/tenants.ts'
import type { RetentionSettings } from '#broker/upkeep/retention-policy.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import type { Database } from '#store/file/database.ts'
import type { StreamFold } from '#store/history/fold.ts'
import { createHistoryEdits } from '#store/history/history-edits.ts'
import { createHistory } from '#store/history/history-rows.ts'
import { createRemovableParts, type GapRow } from '#store/history/oldest-parts.ts'
import { createRollUps } from '#store/history/roll-ups.ts'
import { createRecords } from '#store/tables/records.ts'
import { createWriter } from '#store/writer/writer.ts'
import { unmended } from './mending.ts'

export const megabyte = 1024 * 1024
export const dayMs = 86_400_000
/** When the tests play; the history of `fill` begins a hundred days before. */
export const wallMs = Date.UTC(2026, 5, 1)
export const startMs = wallMs - 100 * dayMs
const latestMs = Date.UTC(9999, 11, 31)
export const everySecond = 1000
export const perFold = 1000

/** Folders and sites of one test file; closed and removed after each test, the last one first. */
export function sitesOfFile() {
  const closers: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close()
  })
  return {
    temporaryFolder(): string {
      const folder = mkdtempSync(join(tmpdir(), 'selvedge-retention-'))
      closers.push(() => rmSync(folder, { recursive: true, force: true }))
      return folder
    },
    async openSite(dataFolder: string, retention: RetentionSettings): Promise<HistorySite> {
      const site = await openHistorySite(dataFolder, retention)
      closers.push(site.close)
      return site
    },
  }
}

export type HistorySite = Awaited<ReturnType<typeof openHistorySite>>

async function openHistorySite(dataFolder: string, retention: RetentionSettings) {
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
  const tenants = await openTenants(
    { ...unmended(dataFolder, log), writer, clock, log, metrics },
    { lingerMs: 0, synchronous: 'NORMAL', writebackMs: 60_000, history: retention },
  )
  const { main } = tenants
  const retained = createRemovableParts(main.database)
  const history = createHistory(main.database)
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await tenants.close()
    await writer.end()
  }

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
      }),
    /** The folded instances of an entity's attribute. */
    span: (id: string): Span =>
      spanOf(
        [...history.chunks(streamOf(id), 0, latestMs)].flatMap((chunk) => [...decodeChunk(chunk).times]),
      ),
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

/** What retention rolls up with, over a database alone. */
export const rollUpParts = (database: Database) => ({
  rollUps: createRollUps(database),
  edits: createHistoryEdits(database),
  names: createNames(createRecords(database)),
})

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

export const ids = ['urn:ngsi-ld:Store:1', 'urn:ngsi-ld:Store:2', 'urn:ngsi-ld:Store:3']
export const foldMs = perFold * everySecond

/** Instances one second apart, none missing between the first and the last. */
export interface Span {
  readonly t0: number
  readonly t1: number
  readonly count: number
  readonly isWhole: boolean
}

export function spanOf(times: readonly number[]): Span {
  const [t0, t1] = [times[0] ?? Number.NaN, times.at(-1) ?? Number.NaN]
  const isWhole = times.every((time, i) => time === t0 + i * everySecond)
  return { t0, t1, count: times.length, isWhole }
}

/** What is missing of a span that lost its beginning. */
export const lostOf = (all: Span, kept: Span) => ({
  t0: all.t0,
  t1: kept.t0 - everySecond,
  count: all.count - kept.count,
})

/** Three streams with so many chunks each, written in order of time, the streams a little apart. */
export async function fill(site: HistorySite, chunks: number): Promise<Map<string, Span>> {
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

/** How many instances went. */
export const sum = (gaps: readonly GapRow[]): number => gaps.reduce((total, { count }) => total + count, 0)
