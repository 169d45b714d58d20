/**
 * No statement of the index scans a table that grows. Checks the query plan of each statement, including
 * dynamic ones.
 */
import { afterAll, expect, it } from 'vitest'
import type { PluginDatabase } from '#contract'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { conditionOf } from './conditions.ts'
import { prepareBrokerStatements, prepareQueryStatements, prepareStatements } from './statements.ts'
import { tables } from './tables.ts'

const database = createPluginDatabase(tables)
afterAll(() => database.close())

const prepared: string[] = []
const recording: PluginDatabase = {
  ...database,
  prepare(sql) {
    prepared.push(sql)
    return database.prepare(sql)
  },
}

/** The broker table is small, and a virtual table is scanned through its own index. */
const walks = (sql: string): string[] =>
  (
    database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...Array.from(sql.matchAll(/\?/g), () => null)) as {
      detail: string
    }[]
  )
    .map(({ detail }) => detail)
    .filter((detail) => /^SCAN /.test(detail))
    .filter(
      (detail) =>
        !/^SCAN (slice|spot|word) VIRTUAL TABLE|^SCAN node VIRTUAL TABLE INDEX 2:|^SCAN (broker|CONSTANT ROW|\(subquery)|^SCAN stale/.test(
          detail,
        ),
    )

it('scans no table', () => {
  prepareStatements(recording)
  prepareBrokerStatements(recording)
  const queries = prepareQueryStatements(recording, () => [1, 2, 3])
  queries.walk(3, 0, 10)
  queries.observations('[]')
  const numbers = { nameOf: () => 1, nodeOf: () => 1, isValued: () => true }
  for (const q of [
    'a>1',
    'a=="x"',
    'a.b.c=="urn:x"',
    '!a.b',
    'a.b',
    '(a==1|b==2);c<"z"',
    'a==true',
    'a=="p".."q"',
  ]) {
    const condition = conditionOf(
      parseQuery(q, (name) => name),
      numbers,
    )!
    queries.narrowed([condition])([])
    queries.spots([condition])([0, 1, 0, 1, 1, 1])
    if (condition.drive !== undefined) queries.driven(condition.drive, 10)
  }
  expect(prepared.length).toBeGreaterThan(60)
  expect(prepared.flatMap((sql) => walks(sql).map((walk) => `${walk}: ${sql}`))).toEqual([])
})
