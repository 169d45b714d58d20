/**
 * A query longer than a time slice yields to other requests (GS CIM 009, 5.7.2), however many attempts to answer it at
 * once precede it. The test counts reads of the clock instead of time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { type OpenBroker, openBroker, settableClock, temporaryFolder } from '#test/kit/broker.ts'

const { folder, remove } = temporaryFolder()
const clock = settableClock()
/** Milliseconds that passed for the broker: one for each look at the clock. */
let passed = 0
let at: OpenBroker

beforeAll(async () => {
  at = await openBroker(folder, { clock: { ...clock, monotonic: () => ++passed } })
  for (let i = 0; i < 200; i++)
    await at.broker.create({ id: `urn:x:${i}`, type: 'T', n: { type: 'Property', value: { x: i } } }, 'http')
})
afterAll(async () => {
  await at.close()
  remove()
})

it('takes one slice in the turn of the request', async () => {
  const q = parseQuery('n[x]!=5', (name) => name)
  const query = { q, limit: 1000, offset: 0, count: true }
  const before = passed
  expect(at.broker.shortQuery(query)).toBeUndefined()
  const asked = [at.broker.query(query), at.broker.query(query)]
  const inTurn = passed - before
  await nextTurn()
  expect(inTurn).toBeLessThan(limits.queryTurnMs.value + 5)
  for (const page of asked) expect((await page).count).toBe(199)
})

it('shares the slice of a turn between short queries, such as the pages that one loop reads', async () => {
  await nextTurn()
  // Each offset is new, so that no page is known.
  const page = (offset: number) => ({ limit: 1, offset, count: false })
  const found = Array.from({ length: 2 * limits.queryTurnMs.value }, (_, i) => at.broker.shortQuery(page(i)))
  expect([found[0], found.at(-1)]).toEqual([expect.anything(), undefined])
  await nextTurn()
  expect(at.broker.shortQuery(page(100))).toBeDefined()
})
