/**
 * An index query ends when its client disconnects or when it takes too long. Uses tables that the catalogue
 * wrote.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { PluginStatement } from '#contract'
import { kinds } from '#plugins/indexing/entries/entity-kinds.ts'
import { createSeen } from '#plugins/indexing/entries/seen.ts'
import { prepareQueryStatements, prepareStatements } from '#plugins/indexing/entries/statements.ts'
import { tables } from '#plugins/indexing/entries/tables.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import type { IndexCriteria } from './index-query.ts'
import { createSelecting } from './selecting.ts'
import { matchOf } from './words.ts'

const database = createPluginDatabase(tables)
const entities = 2000
beforeAll(() => {
  const sql = prepareStatements(database)
  database.transaction(() => {
    for (let n = 1; n <= entities; n++) {
      sql.addNode.run(`urn:${n}`)
      sql.speak.run(1, kinds.sensor, n)
      sql.addKind.run(kinds.sensor, n)
      sql.addWords.run(n, `sensor number${n}`)
    }
  })()
})
afterAll(() => database.close())

const nothing: Omit<IndexCriteria, 'words'> = {
  selection: undefined,
  kinds: kinds.sensor,
  ids: undefined,
  q: undefined,
  scope: undefined,
  geo: undefined,
  window: undefined,
  attrs: undefined,
  isLocal: false,
}
const near = { ...nothing, ids: ['urn:7', 'urn:1999'], words: '"numb"*' }
const page = { limit: 10, offset: 0, count: true }

/** Each clock reading advances by this many ms. */
function selectingWith(ms: number) {
  let now = 0
  const monotonic = (): number => (now += ms)
  const sql = prepareQueryStatements(database, () => [0, 0, 0])
  return createSelecting({
    nameOf: () => undefined,
    nodeOf: () => undefined,
    sql,
    seen: createSeen(),
    monotonic,
  })
}
const idle = new AbortController().signal

it.each([undefined, '"sensor"', '"numb"*'])('counts all matches: %s', async (words) => {
  expect((await selectingWith(1).select({ ...nothing, words }, page, idle)).count).toBe(entities)
})

it('limits the number of prefix searches per query', async () => {
  const prepared = prepareQueryStatements(database, () => [0, 0, 0])
  let looks = 0
  const counted = (statement: PluginStatement): PluginStatement =>
    ({
      all: (...given: unknown[]) => {
        looks++
        return statement.all(...given)
      },
    }) as PluginStatement
  const sql = {
    ...prepared,
    matching: counted(prepared.matching),
    matchingWithin: counted(prepared.matchingWithin),
  }
  const nodeOf = (id: string): number => Number(id.slice(4))
  const ports = { nameOf: () => undefined, nodeOf, sql, seen: createSeen(), monotonic: () => 0 }
  const { select } = createSelecting(ports)
  expect((await select({ ...nothing, words: '"numb"*' }, page, idle)).count).toBe(entities)
  expect(looks).toBe(3)
  expect((await select(near, page, idle)).count).toBe(2)
  expect((await select({ ...near, words: '"number7"' }, page, idle)).count).toBe(1)
  expect(looks).toBe(5)
})

it('finds by prefix what was written before the prefix index existed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-words-'))
  const old = createPluginDatabase(tables.slice(0, 1), join(folder, 'a.db'))
  old.prepare("INSERT INTO derived VALUES (5, 'Temperature', '[]', 1)").run()
  old.prepare("INSERT INTO word (rowid, text) VALUES (5, 'Temperature')").run()
  old.close()
  const now = createPluginDatabase(tables, join(folder, 'a.db'))
  expect(prepareQueryStatements(now, () => [0, 0, 0]).matching.all('"te"*', 0, 9)).toEqual([5])
  now.close()
  rmSync(folder, { recursive: true })
})

it('limits the number of word prefixes', () => {
  const most = limits.indexSearchPrefixes.value
  expect(matchOf('ab* '.repeat(most))).toContain('"ab"* AND')
  expect(() => matchOf('ab* '.repeat(most + 1))).toThrow('prefixes')
})

it('ends soon after the client disconnects', async () => {
  const disconnected = new AbortController()
  const found = selectingWith(limits.indexTurnMs.value).select(
    { ...nothing, words: undefined },
    page,
    disconnected.signal,
  )
  disconnected.abort()
  await expect(found).rejects.toMatchObject({ code: 'http.busy' })
})

it('ends at the time limit', async () => {
  const slow = selectingWith(limits.indexQueryMs.value / 8)
  await expect(slow.select({ ...nothing, words: undefined }, page, idle)).rejects.toMatchObject({
    code: 'ngsi-ld.too-complex',
  })
})
