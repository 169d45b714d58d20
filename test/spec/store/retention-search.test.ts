/**
 * Retention with more streams than a search remembers: all expired parts are removed, in order of time, a few
 * parts per group, and no group searches more than its share. The test applies rows to SQLite as the writer
 * would.
 */
import BetterSqlite3 from 'better-sqlite3'
import { afterAll, expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createGroup, type Group } from '#broker/commit/stage.ts'
import { createRetention } from '#broker/upkeep/retention-policy.ts'
import { createRetentionSurvey } from '#broker/upkeep/retention-survey.ts'
import type { SqlValue } from '#store/chunks/sql-value.ts'
import { migrations } from '#store/file/database-schema.ts'
import { createHistory } from '#store/history/history-rows.ts'
import { createRemovableParts, type RemovablePart } from '#store/history/oldest-parts.ts'
import { createRecords } from '#store/tables/records.ts'
import { type WriteRow, type WriteStatement, writeStatements } from '#store/writer/write-statements.ts'
import { rollUpParts } from '#test/kit/history-site.ts'

const dayMs = 86_400_000
const streams = limits.evictionCandidatesMax.value * 2 + 5000
const database = openDatabase()
const retained = createRemovableParts(database)
afterAll(() => database.close())

/** Two chunks of ten instances per stream: one from the first 90 days, one from the last ten. */
function openDatabase() {
  const opened = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) opened.exec(sql)
  const stream = opened.prepare(
    `INSERT INTO stream (s, rid, name, dataset, shape) VALUES (?, ?, 1, '', '{}')`,
  )
  const chunk = opened.prepare<SqlValue[]>(writeStatements['chunk.insert'])
  opened.transaction(() => {
    for (let s = 1; s <= streams; s++) {
      stream.run(s, s)
      for (const [slot, from, days] of [
        [1, 0, 90],
        [2, 90, 10],
      ] as const) {
        const t1 = Math.floor((from + (((s * 7919) % streams) / streams) * days) * dayMs)
        chunk.run(s, slot, t1, t1, 10, 0, 0, 0, 0, 1, '["{}"]', Buffer.alloc(8), t1, t1)
      }
    }
  })()
  return opened
}

const prepared = new Map<WriteStatement, BetterSqlite3.Statement<SqlValue[]>>()

function run([name, ...parameters]: WriteRow): void {
  const statement = prepared.get(name) ?? database.prepare<SqlValue[]>(writeStatements[name])
  prepared.set(name, statement)
  statement.run(...parameters)
}

/** Writes a group and returns the number of removed parts. */
function apply(group: Group): number {
  const { rows } = group.message()
  database.transaction(() => rows.forEach(run))()
  group.publish()
  return rows.filter(([name]) => name === 'chunk.delete').length
}

test('a search reads a few series at a time and returns the oldest parts, in order', () => {
  const survey = createRetentionSurvey(retained.partIndexes, Number.POSITIVE_INFINITY)
  let steps = 1
  while (!survey.search()) steps++
  expect(steps).toBeGreaterThanOrEqual(streams / limits.evictionSearchesPerGroup.value)
  expect(survey.isCut()).toBe(true)
  let taken = 0
  let before = Number.NEGATIVE_INFINITY
  for (let part = survey.oldest(); part !== undefined; part = survey.oldest()) {
    expect(part.t1).toBeGreaterThanOrEqual(before)
    before = part.t1
    taken++
    survey.pass(true)
  }
  const older = database
    .prepare<[number], number>('SELECT count(*) FROM chunk WHERE t1 <= ?')
    .pluck()
    .get(before)
  expect(taken).toBe(older)
  expect(taken).toBeGreaterThanOrEqual(limits.evictionCandidatesMax.value)
})

test('a search within a bound keeps only parts that end before it', () => {
  const survey = createRetentionSurvey(retained.partIndexes, 10 * dayMs)
  while (!survey.search());
  expect(survey.isCut()).toBe(false)
  const ends: number[] = []
  for (let part = survey.oldest(); part !== undefined; part = survey.oldest()) {
    ends.push(part.t1)
    survey.pass(true)
  }
  const all = database.prepare<[number], number>('SELECT t1 FROM chunk WHERE t1 < ? ORDER BY t1').pluck()
  expect(ends).toEqual(all.all(10 * dayMs))
})

test('a part that grew since it was found has its current age and size, and a removed one is skipped', () => {
  const survey = createRetentionSurvey(retained.partIndexes, 10 * dayMs)
  while (!survey.search());
  const oldest = database
    .prepare<[], { s: number }>('SELECT k >> 41 AS s FROM chunk ORDER BY t1 LIMIT 5')
    .all()
  const [more, younger, outOfBounds, gone, next] = oldest.map(({ s }) => s) as [
    number,
    number,
    number,
    number,
    number,
  ]
  const first = (s: number): RemovablePart => retained.partIndexes.chunk.seriesAfter(s - 1)!
  const grow = database.prepare('UPDATE chunk SET count = ?, t1 = ? WHERE k = (? << 41) | 1')
  database.exec('SAVEPOINT grown')
  grow.run(12, first(more).t1, more)
  grow.run(11, first(next).t1 + 1, younger)
  grow.run(11, 20 * dayMs, outOfBounds)
  database.prepare('DELETE FROM chunk WHERE k = (? << 41) | 1').run(gone)
  const told: [series: number, count: number][] = []
  for (let i = 0; i < 4; i++) {
    const { series, count } = survey.oldest()!
    told.push([series, count])
    survey.pass(true)
  }
  expect(told.slice(0, 3)).toEqual([
    [more, 12],
    [next, 10],
    [younger, 11],
  ])
  expect(told[3]![1]).toBe(10)
  database.exec('ROLLBACK TO grown; RELEASE grown')
})

test('an eviction searches again for parts it could not remember, and stops at the bound', () => {
  const events: string[] = []
  const log = createLog({ level: 'info', clock: systemClock, write: (line) => events.push(line) })
  const metrics = createMetrics()
  const ports = { tenant: '', clock: systemClock, log, metrics }
  const retention = createRetention(
    {
      ...ports,
      ...rollUpParts(database),
      retained,
      history: createHistory(database),
      records: createRecords(database),
    },
    { maxBytes: 2 ** 40, maxAgeDays: 1 },
  )
  let steps = 0
  let largest = 0
  while (retention.isDue(0)) {
    const group = createGroup({ at: 91 * dayMs, number: 0 })
    retention.attach(group, 0)
    largest = Math.max(largest, apply(group))
    steps++
  }
  expect(largest).toBe(limits.evictionPartsPerGroup.value)
  expect(steps).toBeLessThan((streams / limits.evictionPartsPerGroup.value) * 5)
  const left = database
    .prepare<[], { count: number; first: number }>('SELECT count(*) AS count, min(t1) AS first FROM chunk')
    .get()
  expect(left).toEqual({ count: streams, first: 90 * dayMs })
  const gaps = database.prepare<[], number>('SELECT sum(count) FROM gap').pluck().get()
  expect(gaps).toBe(streams * 10)
  expect(metrics.counter('selvedge_history_evicted_total').value).toBe(streams * 10)
  expect(events.map((line) => JSON.parse(line))).toMatchObject([
    { event: 'history.evicted', parts: streams, age: streams * 10, size: 0 },
  ])
})
