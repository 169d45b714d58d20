/**
 * No statement walks a table that grows: every write and every read is asked for its plan, on the real schema. What
 * reads a whole table does so on purpose, and says why here.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import { createEntities } from '#store/entities/entity-rows.ts'
import { createShapes } from '#store/entities/entity-shape.ts'
import { createKnownColumns } from '#store/entities/known-columns.ts'
import type { Database } from '#store/file/database.ts'
import { migrations } from '#store/file/database-schema.ts'
import { createHistoryEdits } from '#store/history/history-edits.ts'
import { createHistory } from '#store/history/history-rows.ts'
import { createHistorySpans } from '#store/history/history-spans.ts'
import { createRemovableParts } from '#store/history/oldest-parts.ts'
import { createRollUps } from '#store/history/roll-ups.ts'
import { createRecords } from '#store/tables/records.ts'
import { writeStatements } from '#store/writer/write-statements.ts'
import { createWholeQuery } from '#test/kit/whole-query.ts'

/** Everything that reads tables, by name: `create...(database)` of every file in store/tables. */
const folder = join(import.meta.dirname, '../../runtime/store/tables')
const tables: (readonly [string, unknown])[] = []
for (const name of readdirSync(folder).filter((one) => !one.endsWith('.test.ts')))
  tables.push(...Object.entries((await import(join(folder, name))) as object))

/** Whole tables that are read once, at start; a table that is not here is not read whole by anything. */
const readAtStart: Readonly<Record<string, string>> = {
  'SELECT id, doc, stats FROM csource ORDER BY r': 'registrations live in memory',
  'SELECT i, id, doc, stats FROM csource_subscription ORDER BY i DESC': 'the same',
  'SELECT key, source, at, answer FROM source_copy ORDER BY at': 'a few cached responses live in memory',
  'SELECT id, doc FROM passed_subscription ORDER BY id': 'at most forwardedSubscriptionsMax live in memory',
  'SELECT id FROM uplink': 'a few rows',
  'SELECT key, doc FROM downward_note ORDER BY key': 'a few rows',
  'SELECT id, source FROM entity_copy ORDER BY id': 'at most copiesMax for each setting live in memory',
  'SELECT n, at, kind, rid, body, via FROM log WHERE kind > 4 ORDER BY n LIMIT ?':
    'an index of nothing else; empty once the clock is set',
  'SELECT count(*) AS count FROM log WHERE kind > 4': 'the same',
  'SELECT i, text FROM name ORDER BY i': 'interned names live in memory',
  'SELECT sum(length(body)) AS bytes FROM log': 'the log is bounded; lengths alone read no body',
  'SELECT i, id, doc, stats FROM subscription ORDER BY i': 'the matcher holds all subscriptions',
  'SELECT url, kind, fetched, expires, length(body) AS bytes FROM context ORDER BY fetched':
    'some hundred contexts',
  'SELECT q, length(payload) AS size FROM quarantine ORDER BY q': 'a thousand frames at most',
  'SELECT count(*) AS c FROM entity': 'counted once, along the smallest index',
  'SELECT DISTINCT endpoint FROM delivery': 'goes along the index, once per start',
  'SELECT s, client, seen, sent, expiry FROM session ORDER BY s': 'sessions live in memory',
  'SELECT s, filter, qos, options, identifier FROM session_filter': 'filters live in memory',
  'SELECT s, message_id FROM incoming': 'receipts live in memory',
  'SELECT topic, qos, payload, properties, expires FROM retained': 'retained messages live in memory',
  'SELECT client, topic, qos, retain, payload, properties, expiry, delay, due FROM will':
    'wills live in memory',
}

function openSchema(): { database: Database; texts: string[]; recording: Database } {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  const texts: string[] = []
  const recording = new Proxy(database, {
    get(target, member) {
      if (member !== 'prepare') {
        const value = Reflect.get(target, member) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      }
      return (sql: string) => {
        texts.push(sql)
        return target.prepare(sql)
      }
    },
  })
  return { database, texts, recording }
}

/** Lines of the plan that go through a whole table. */
function scans(database: Database, sql: string): string[] {
  const lines = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
  const parameters = Array.from({ length: sql.split('?').length - 1 }, () => 0)
  return (
    lines
      .all(...parameters)
      .map(({ detail }) => detail)
      .filter((detail) => detail.startsWith('SCAN'))
      // Virtual tables with an index, and what a part of the statement has selected already.
      .filter((detail) => !/VIRTUAL TABLE INDEX|CONSTANT ROW|^SCAN \(subquery-/.test(detail))
  )
}

describe('every statement', () => {
  it('that writes finds its rows by an index', () => {
    const { database } = openSchema()
    const found = Object.entries(writeStatements).flatMap(([name, sql]) =>
      scans(database, sql).map((line) => `${name}: ${line}`),
    )
    expect(found).toEqual([
      // Skips what stays, along the key; the table has a ceiling.
      'dead_letter.trim: SCAN dead_letter',
    ])
  })

  it('that reads finds its rows by an index, or is read at start', () => {
    const { database, texts, recording } = openSchema()
    createEntities(recording)
    createShapes(recording)
    createHistory(recording)
    createHistorySpans(recording)
    createHistoryEdits(recording)
    createRollUps(recording)
    createRemovableParts(recording)
    createRecords(recording).quarantineLast()
    for (const [name, create] of tables.filter(([one]) => one.startsWith('create'))) {
      const before = texts.length
      ;(create as (database: Database) => unknown)(recording)
      expect(texts.length, `statements of ${name}`).toBeGreaterThan(before)
    }
    expect(texts.length).toBeGreaterThan(30)
    const walking = texts.filter((sql) => scans(database, sql).length > 0)
    expect(walking.filter((sql) => !Object.hasOwn(readAtStart, sql))).toEqual([])
    expect(Object.keys(readAtStart).filter((sql) => !walking.includes(sql))).toEqual([])
  })
})

describe('a search', () => {
  const term = (name: string): string => name
  const q = (text: string) => ({ q: parseQuery(text, term) })
  const geo = parseGeoQuery(
    { georel: 'near;maxDistance==1000', geometry: 'Point', coordinates: '[0,0]', geoproperty: 'place' },
    term,
  )
  const numbers: Readonly<Record<string, number>> = { T: 1, a: 2, place: 3 }
  const searches = {
    type: { selection: { kind: 'type', name: 'T' } },
    id: { ids: ['urn:x:1'] },
    pattern: { idPattern: compilePattern('urn:x:.*') },
    attrs: { attrs: ['a'] },
    equality: q('a==1'),
    range: q('a>1'),
    match: q('a~="x.*"'),
    either: q('a==1|a>5'),
    absence: q('!a'),
    geo: { geo },
    all: { selection: { kind: 'type', name: 'T' }, ...q('a>1'), geo },
  } as const

  it.each(Object.entries(searches))('by %s never walks anything but entities in order', (_, search) => {
    const { database, texts, recording } = openSchema()
    const columns = createKnownColumns(database, { bytesMax: 0, rowsPerSearch: 1, cooldown: Infinity })
    const query = createWholeQuery({
      database: recording,
      entities: { ...createEntities(database), columns, lastRid: () => 1 },
      nameOf: (text) => numbers[text],
      view: (row) => ({
        entity: () => JSON.parse(row.doc) as Entity,
        times: () => ({ created: 0, modified: 0, attributes: {} }),
      }),
    })
    query.page(search, { limit: 10, offset: 0 })
    query.count(search)
    expect(texts.length).toBeGreaterThan(0)
    // In the order of creation until the page is full.
    const isWalk = (sql: string, line: string): boolean => line === 'SCAN d' && sql.includes('FROM entity d')
    const found = texts.flatMap((sql) => scans(database, sql).filter((line) => !isWalk(sql, line)))
    expect(found).toEqual([])
  })
})
