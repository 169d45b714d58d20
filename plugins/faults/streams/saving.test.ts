/** Saving of many streams: slices, what a kill in the middle leaves, and a disk that fails. */
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { runs } from '#test/kit/runs.ts'
import { type FaultStream, newRecord } from './fault-stream.ts'
import { createSaving } from './saving.ts'
import { noMetadata } from './watched-metadata.ts'
import {
  createWatchStatements,
  saveTables,
  tables,
  type WatchStatements,
} from './watched-stream-statements.ts'

const streamOf = (id: string): FaultStream => ({
  id,
  types: [],
  sensorId: undefined,
  sources: [],
  isDoubtful: false,
  observations: new Set(),
  metadata: noMetadata,
  detector: undefined,
  buffered: [],
  record: newRecord(),
})
const numbered = (count: number): FaultStream[] =>
  Array.from({ length: count }, (_, i) => streamOf(`stream-${i}`))

let table: WatchStatements
let position = 0
/** Each look at it takes 4 ms, so that a slice has three streams. */
let now = 0
const clock = { ...systemClock, monotonic: () => (now += 4) }

beforeEach(() => {
  table = createWatchStatements(createPluginDatabase([...tables, ...saveTables]))
  position = 7
})

const savingTo = (to: WatchStatements) =>
  createSaving({ table: to, cursor: () => ({ position, committed: position }), clock, fail: () => undefined })
/** The number of equal values of each saved stream, by which the tests tell its versions. */
const saved = () => new Map(table.all().map(({ id, record }) => [id, record.equalValues]))

it('leaves the event loop to others between slices, and the log waits meanwhile', async () => {
  const saving = savingTo(table)
  const streams = numbered(60)
  for (const stream of streams) saving.note(stream)
  const done = saving.now()
  let turns = 0
  for (let busy = saving.inProgress(); busy !== undefined; busy = saving.inProgress()) {
    await turn()
    turns++
  }
  await done
  expect(turns).toBeGreaterThan(20)
  expect(saved().size).toBe(60)
  expect(table.cursor()).toEqual({ position: 7, committed: 7 })
})

it('keeps the former save if the process is killed in the middle of one', async () => {
  const [a, b, c] = [streamOf('a'), streamOf('b'), streamOf('c')]
  const saving = savingTo(table)
  for (const stream of [a, b]) saving.note(stream)
  await saving.now()
  a.record.equalValues = 5
  position = 8
  const save = table.nextSave()
  table.put({ save, items: ['b', a, c], from: 0, isEnough: () => false })
  expect([...saved()]).toEqual([
    ['a', 0],
    ['b', 0],
  ])
  expect(table.cursor()?.position).toBe(7)
  // The rows of the interrupted save do not come back with the next one.
  saving.note(a)
  await saving.now()
  expect([...saved()]).toEqual([
    ['a', 5],
    ['b', 0],
  ])
  expect(table.cursor()?.position).toBe(8)
})

it('takes the newest rows if a kill left those that they replaced', () => {
  const [a, b] = [streamOf('a'), streamOf('b')]
  table.put({ save: 1, items: [a, b], from: 0, isEnough: () => false })
  table.end(1, { position: 1, committed: 1 })
  a.record.equalValues = 5
  table.put({ save: 2, items: ['b', a], from: 0, isEnough: () => false })
  table.end(2, { position: 2, committed: 2 })
  expect([...saved()]).toEqual([['a', 5]])
})

it('reads rows some at a time, so that a save in between counts for those that are still unread', async () => {
  const saving = savingTo(table)
  const streams = numbered(100)
  for (const stream of streams) saving.note(stream)
  await saving.now()
  const rows = table.all()
  const { value: first } = rows.next()
  // What was returned may be saved again, also without an end.
  table.put({ save: table.nextSave(), items: [streams[0]!], from: 0, isEnough: () => false })
  saving.remove(streams[99]!)
  await saving.now()
  const ids = [first!.id, ...rows.map(({ id }) => id)]
  expect(ids).toEqual(
    streams
      .slice(0, 99)
      .map(({ id }) => id)
      .toSorted(),
  )
})

it('saves a stream that was deleted and created again, and one that changed during a save', async () => {
  const saving = savingTo(table)
  const old = streamOf('a')
  saving.note(old)
  await saving.now()
  saving.remove(old)
  const created = { ...streamOf('a'), record: { ...newRecord(), equalValues: 3 } }
  saving.note(created)
  const done = saving.now()
  created.record.equalValues = 4
  saving.note(created)
  await done
  await saving.now()
  expect([...saved()]).toEqual([['a', 4]])
  saving.remove(created)
  await saving.now()
  expect(saved().size).toBe(0)
})

/** A process that counts the observations of a log, which names a stream each, until it is killed. */
async function countUntilKilled(log: readonly number[], saveEvery: number, restsLeft: number): Promise<void> {
  let rests = 0
  const killed = Promise.withResolvers<void>()
  const rest = async (): Promise<void> => {
    if (rests++ < restsLeft) return turn()
    killed.resolve()
    return new Promise(() => undefined)
  }
  const streams = new Map<string, FaultStream>(
    table.all().map((stored) => [stored.id, { ...streamOf(stored.id), ...stored, detector: undefined }]),
  )
  let cursor = table.cursor() ?? { position: 0, committed: 0 }
  const saving = createSaving({
    table: { ...table, rest },
    cursor: () => cursor,
    clock,
    fail: () => undefined,
  })
  const count = async (): Promise<void> => {
    while (cursor.position < log.length) {
      for (let busy = saving.inProgress(); busy !== undefined; busy = saving.inProgress()) await busy
      const id = `stream-${log[cursor.position]!}`
      const stream = streams.get(id) ?? streamOf(id)
      streams.set(id, stream)
      stream.record.equalValues++
      saving.note(stream)
      cursor = { position: cursor.position + 1, committed: 0 }
      if (cursor.position % saveEvery === 0) saving.next()
      if (cursor.position % 3 === 0) await turn()
    }
    await saving.now()
  }
  await Promise.race([count(), killed.promise])
  saving.close()
}

it('counts each observation once, whenever the process is killed', async () => {
  const log = fc.array(fc.nat(9), { minLength: 20, maxLength: 80 })
  const kills = fc.array(fc.nat(12), { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(log, fc.integer({ min: 1, max: 15 }), kills, async (names, saveEvery, restsLeft) => {
      table = createWatchStatements(createPluginDatabase([...tables, ...saveTables]))
      for (const rests of restsLeft) await countUntilKilled(names, saveEvery, rests)
      await countUntilKilled(names, saveEvery, Number.POSITIVE_INFINITY)
      const expected = Map.groupBy(names, (name) => `stream-${name}`)
      expect(saved()).toEqual(new Map([...expected].map(([id, all]) => [id, all.length])))
    }),
    { numRuns: runs(60) },
  )
})

it('saves all that is unsaved after the disk failed', async () => {
  let isFailing = true
  const end: WatchStatements['end'] = (...given) => {
    if (isFailing) throw new Error('the disk is full')
    table.end(...given)
  }
  const saving = savingTo({ ...table, end })
  const streams = numbered(10)
  for (const stream of streams) saving.note(stream)
  await expect(saving.now()).rejects.toThrow('the disk is full')
  expect(saving.inProgress()).toBeUndefined()
  expect(saved().size).toBe(0)
  isFailing = false
  saving.remove(streams[3]!)
  await saving.now()
  expect([...saved().keys()]).toEqual(streams.filter((_, i) => i !== 3).map(({ id }) => id))
})
