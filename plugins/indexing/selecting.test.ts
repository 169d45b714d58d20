/**
 * A query of the index ends when nobody waits for it, and when it takes too long; over tables that the catalogue wrote.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { limits } from '#base/limits.ts'
import { createPluginDatabase } from '#test/kit/plugin-database.ts'
import { kinds } from './kinds.ts'
import type { Question } from './question.ts'
import { createSeen } from './seen.ts'
import { createSelecting } from './selecting.ts'
import { prepareQueryStatements, prepareStatements } from './statements.ts'
import { tables } from './tables.ts'

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

const nothing: Omit<Question, 'words'> = {
  ...{ selection: undefined, kinds: kinds.sensor, ids: undefined, q: undefined, scope: undefined },
  ...{ geo: undefined, window: undefined, attrs: undefined },
}
const page = { limit: 10, offset: 0, count: true }

/** Each look at the clock lasts so long. */
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

it.each([undefined, '"sensor"', '"numb"*'])('counts all without trouble: %s', async (words) => {
  expect((await selectingWith(1).select({ ...nothing, words }, page, idle)).count).toBe(entities)
})

it('ends soon when nobody waits any more', async () => {
  const gone = new AbortController()
  const found = selectingWith(limits.indexTurnMs.value).select(
    { ...nothing, words: undefined },
    page,
    gone.signal,
  )
  gone.abort()
  await expect(found).rejects.toMatchObject({ code: 'http.busy' })
})

it('ends when it takes too long', async () => {
  const slow = selectingWith(limits.indexQueryMs.value / 8)
  await expect(slow.select({ ...nothing, words: undefined }, page, idle)).rejects.toMatchObject({
    code: 'ngsi-ld.too-complex',
  })
})
