/**
 * Saving of many streams: slices, and what a kill in the middle leaves. Each observation that is counted gets a
 * time of its own, so that a record does not recognize one that is counted twice.
 */
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import type { ChangesPort, EntityState, Follower, PastObservation } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { brokerTables } from '#plugins/quality/brokers/broker-statements.ts'
import { createRemoteStore } from '#plugins/quality/brokers/remote-store.ts'
import { createRecordRows } from '#plugins/quality/measures/record-rows.ts'
import { usualProperties, usualTable } from '#plugins/quality/measures/usual-properties.ts'
import { createForeignSources } from '#plugins/quality/sources/foreign-sources.ts'
import { createMessageJournal, messageTables } from '#plugins/quality/sources/message-statements.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { runs } from '#test/kit/runs.ts'
import { createConcordances } from './concordances.ts'
import { createDowntimes } from './downtimes.ts'
import { createKnownStreams, type KnownStreams } from './known-streams.ts'
import { createOwnStreams } from './own-streams.ts'
import { createStreamSaving } from './stream-saving.ts'
import {
  aliveColumn,
  createStreamStatements,
  reachColumns,
  type StreamStatements,
  streamTables,
} from './stream-statements.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} } as never
const signal = new AbortController().signal
const streamId = (i: number): string => `urn:s:${i}`
const observationId = (i: number): string => `urn:o:${i}`
/** Before all observations. */
const begin = Date.parse('2026-06-01T00:00:00Z')
const tables = [[streamTables, messageTables, brokerTables].join('\n'), reachColumns, aliveColumn]

let database = createPluginDatabase(tables)
let monotonic = 0
/** Observations that were counted in this test. */
let counted = 0

beforeEach(() => {
  database = createPluginDatabase(tables)
  counted = 0
})

/** Each look at the monotonic time takes 4 ms, so that a slice has three streams. */
const clockAt = (now: () => number) => ({ ...systemClock, now, monotonic: () => (monotonic += 4) })

function entitiesOf(count: number): Map<string, EntityState> {
  const all = Array.from({ length: count }, (_, i): Entity[] => [
    { id: streamId(i), type: iotStream.IotStream } as unknown as Entity,
    {
      id: observationId(i),
      type: iotStream.StreamObservation,
      [iotStream.belongsTo]: { type: 'Relationship', object: streamId(i) },
    } as unknown as Entity,
  ]).flat()
  return new Map(
    all.map((entity, rid) => [
      entity.id,
      {
        rid: rid + 1,
        id: entity.id,
        types: [entity.type as string],
        entity: () => entity,
        text: () => '',
        times: () => ({ created: 0, modified: 0, attributes: {} }),
      },
    ]),
  )
}

/** The streams of a process, whose observations all count. */
function streamsOf(entities: ReadonlyMap<string, EntityState>): {
  readonly streams: KnownStreams
  readonly table: StreamStatements
} {
  const records = createRecordRows()
  const streams = createKnownStreams({
    entityOf: (id) => entities.get(id)?.entity(),
    usual: usualProperties(usualTable({}), 0.8),
    records,
    concordances: createConcordances({ radiusMeters: 1 }),
    leftOut: { hasRoom: () => true, delete: () => undefined },
    monotonic: () => 0,
    now: () => begin,
    downtimes: () => [],
    changed: () => undefined,
    removed: () => undefined,
    moved: () => undefined,
  })
  const time = (): number => begin + counted++
  return {
    streams: {
      ...streams,
      observe: (id, arrival) => streams.observe(id, { ...arrival, time: time() }),
      count: (id, arrival) => streams.count(id, { ...arrival, time: time() }),
    },
    table: createStreamStatements(database, records),
  }
}

const savedCounts = () =>
  new Map(
    streamsOf(new Map())
      .table.all()
      .map(({ id, record }) => [id, record.count] as const),
  )

/** A gateway's log; row `n` is an observation of the stream `of[n - 1]`, committed `n` ms after `begin`. */
interface GatewayLog {
  readonly of: readonly number[]
  /** Rows that are committed. */
  written: number
  /** Rows that the log no longer has. */
  pruned: number
}

interface Kill {
  /** Pauses of saves, or batches of the log, after which a process is killed. */
  readonly pauses: number
  readonly batches: number
}

const noKill: Kill = { pauses: Number.POSITIVE_INFINITY, batches: Number.POSITIVE_INFINITY }

/** A process that counts the log until it is at its end, or until it is killed. */
async function run(log: GatewayLog, saveEvery: number, kill = noKill): Promise<void> {
  const entities = entitiesOf(5)
  const { streams, table } = streamsOf(entities)
  const ended = Promise.withResolvers<void>()
  let isKilled = false
  let pauses = 0
  function die(): void {
    isKilled = true
    ended.resolve()
  }
  const rest = async (): Promise<void> => {
    if (pauses++ >= kill.pauses) die()
    // Long enough for a batch of the log.
    for (let i = 0; i < 2; i++) await turn()
    if (isKilled) await new Promise(() => undefined)
  }
  const rowOf = (n: number) => ({
    n,
    id: observationId(log.of[n - 1]!),
    name: sosa.hasSimpleResult,
    dataset: '',
    time: begin + n,
    value: n,
    committed: begin + n,
    isLate: false,
    via: undefined,
  })
  async function follow(from: number, follower: Follower): Promise<void> {
    let cursor = from
    for (let batches = 1; !isKilled && (log.written < log.of.length || cursor < log.written); batches++) {
      log.written = Math.min(log.of.length, log.written + 2)
      if (cursor < log.pruned) cursor = await follower.readAnew()
      const rows = Array.from({ length: Math.min(3, log.written - cursor) }, (_, i) => rowOf(cursor + i + 1))
      if (rows.length > 0) {
        cursor = rows.at(-1)!.n
        await follower.take({
          through: cursor,
          at: begin + cursor,
          changed: [],
          deleted: [],
          observed: rows,
        })
      }
      // As after its figures were written.
      const written = streams.get(streamId(batches % 5))
      if (written !== undefined) streams.noteUnsaved(written)
      if (batches % saveEvery === 0) own.saving.attempt()
      if (batches >= kill.batches) die()
      await turn()
    }
    if (isKilled) return
    await own.close()
    ended.resolve()
  }
  const changes: ChangesPort = {
    position: () => log.written,
    lastCommitAt: () => begin + log.written,
    entities: (behind, limit) => [...entities.values()].filter(({ rid }) => rid > behind).slice(0, limit),
    entity: (id) => entities.get(id),
    follow(from, follower) {
      // It begins when the read of what exists is over.
      setImmediate(() => void follow(from, follower))
      return { close: () => undefined }
    },
    async *history({ from, to }): AsyncIterable<readonly PastObservation[]> {
      for (let n = 1; n <= log.written; n++) if (begin + n >= from && begin + n < to) yield [rowOf(n)]
    },
  }
  const own = createOwnStreams({
    changes,
    streams,
    table: { ...table, rest },
    journal: createMessageJournal(database),
    downtimes: createDowntimes(begin),
    clock: clockAt(() => begin + log.written + 5),
    log: silent,
    signal,
  })
  void own.start()
  await ended.promise
}

it('counts each observation of the log once, whenever the process is killed', async () => {
  const names = fc.array(fc.nat(4), { minLength: 20, maxLength: 80 })
  const kill = fc.record({ pauses: fc.nat(20), batches: fc.nat(20), pruned: fc.boolean() })
  const kills = fc.array(kill, { maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(names, fc.integer({ min: 1, max: 5 }), kills, async (of, saveEvery, processes) => {
      database = createPluginDatabase(tables)
      const log = { of, written: 0, pruned: 0 }
      for (const process of processes) {
        await run(log, saveEvery, process)
        if (process.pruned) log.pruned = log.written
      }
      await run(log, saveEvery)
      const expected = Map.groupBy(of, streamId)
      const counts = [...savedCounts()].filter(([, count]) => count > 0)
      expect(new Map(counts)).toEqual(new Map([...expected].map(([id, all]) => [id, all.length])))
    }),
    { numRuns: runs(60) },
  )
})

const never = new Promise<void>(() => undefined)

/** A process with streams that are saved in slices, and a pause that may never end. */
function openStreams(count: number, isInterrupted = false) {
  const { streams, table } = streamsOf(entitiesOf(count))
  for (const state of entitiesOf(count).values()) streams.take(state.entity())
  let pauses = 0
  const rest = (): Promise<void> => {
    pauses++
    return isInterrupted ? never : turn()
  }
  const journal = createMessageJournal(database)
  const clock = clockAt(() => begin)
  const common = {
    table: { ...table, rest },
    streams,
    journal,
    downtimes: createDowntimes(begin),
    clock,
    log: silent,
  }
  return { streams, table, journal, common, pauses: () => pauses }
}

it('leaves the event loop to others between slices', async () => {
  const { common, pauses } = openStreams(60)
  await createStreamSaving({
    ...common,
    cursor: () => ({ position: 7, committed: 7, countsFrom: 0 }),
  }).now()
  expect(pauses()).toBeGreaterThan(20)
  expect(savedCounts().size).toBe(60)
})

it('saves all that is unsaved after the disk failed', async () => {
  const { common, table } = openStreams(10)
  let isFailing = true
  const saving = createStreamSaving({
    ...common,
    table: {
      ...common.table,
      end(...given) {
        if (isFailing) throw new Error('the disk is full')
        table.end(...given)
      },
    },
    cursor: () => ({ position: 7, committed: 7, countsFrom: 0 }),
  })
  await expect(saving.now()).rejects.toThrow('the disk is full')
  expect(table.cursor()).toBeUndefined()
  database.prepare('DELETE FROM streams').run()
  isFailing = false
  await saving.now()
  expect(savedCounts().size).toBe(10)
})

it('counts each message of a source once after a kill in the middle of a save', async () => {
  const { streams, journal, common, table } = openStreams(4, true)
  const ids = [0, 1, 2, 3].map(streamId)
  const message = {
    source: 'mqtt://127.0.0.1',
    digest: 'd',
    receivedAt: begin,
    observations: ids.map((id) => [id, begin, 1] as const),
  }
  const saving = createStreamSaving({
    ...common,
    cursor: () => ({ position: 7, committed: 7, countsFrom: 0 }),
  })
  for (let i = 0; i < 5; i++) {
    journal.add([message])
    for (const [id, time, value] of message.observations)
      streams.count(id, { time, value, committedAt: begin })
  }
  void saving.now()
  expect([...savedCounts()].length).toBe(3)

  const next = streamsOf(entitiesOf(4))
  next.streams.restore(next.table.all(), [])
  const sources = createForeignSources(
    {
      streams: next.streams,
      entityOf: (id) => entitiesOf(4).get(id)?.entity(),
      journal: createMessageJournal(database),
      messagesOf: table.messagesOf,
      saving,
      clock: clockAt(() => begin),
      log: silent,
      signal,
      fail: () => undefined,
      sources: { allowsLoopback: true } as never,
      remote: undefined as never,
    },
    { hosts: [] },
  )
  await sources.start()
  await sources.close()
  expect(ids.map((id) => next.streams.get(id)?.record.count)).toEqual([5, 5, 5, 5])
})

it('saves each stream of a remote broker with the times that it counted', async () => {
  const { streams, common } = openStreams(4, true)
  const store = createRemoteStore({ ...common, database })
  for (let i = 0; i < 12; i++) {
    const stream = streams.get(streamId(i % 4))!
    store.counted.add(stream.n, begin + i)
    streams.count(stream.id, { time: begin, value: i, committedAt: begin })
  }
  store.entities.put({ id: 'e', type: 'T' } as unknown as Entity)
  void store.saving.now()
  expect([...savedCounts().values()]).toEqual([3, 3])
  const times = database.prepare('SELECT n, count(*) AS times FROM counted_times GROUP BY n').all()
  expect(times).toEqual([
    { n: 1, times: 3 },
    { n: 2, times: 3 },
  ])
})
