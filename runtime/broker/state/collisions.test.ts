/** Two origins that write the same attribute are recorded as a pair, within bounds. */
import { afterEach, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createCollisions } from './collisions.ts'

afterEach(restoreLimits)

function open() {
  const lines: { event: string; origins: string }[] = []
  const noted = createMetrics().counter('selvedge_two_origins_total')
  let now = 0
  const clock = { now: () => now, monotonic: () => now }
  const log = createLog({ level: 'warn', clock, write: (line) => lines.push(JSON.parse(line)) })
  const collisions = createCollisions({ idOf: (rid) => `urn:x:${rid}`, clock, noted, log })
  return { lines, noted, collisions, pass: (ms: number) => (now += ms) }
}

it('records a value that replaces one of another origin, and logs the pair once', () => {
  const { lines, noted, collisions } = open()
  collisions.note(1, 'one', 'two,between')
  collisions.note(2, 'two', 'one')
  expect(collisions.of('one')).toEqual([{ origins: ['one', 'two'], entities: 2, entity: 'urn:x:2' }])
  expect(collisions.of('two')).toEqual(collisions.of('one'))
  expect(collisions.of('between')).toEqual([])
  expect([noted.value, lines]).toMatchObject([2, [{ event: 'entity.two-origins', origins: 'one two' }]])
})

it('removes a pair without recent collisions, and records a new one in its place', () => {
  setLimit('collisionPairsMax', 1)
  const { lines, collisions, pass } = open()
  collisions.note(1, 'one', 'two')
  pass(limits.collisionKeptMs.value)
  collisions.note(2, 'one', 'two')
  pass(limits.collisionKeptMs.value)
  expect(collisions.of('one')).toMatchObject([{ entities: 2 }])
  pass(1)
  expect(collisions.of('one')).toEqual([])
  collisions.note(1, 'three', 'four')
  expect(collisions.of('four')).toMatchObject([{ entities: 1 }])
  expect(lines).toHaveLength(2)
  // This pair is reported again once its record has expired, although somebody has read the record.
  pass(limits.collisionKeptMs.value + 1)
  collisions.note(2, 'three', 'four')
  expect(collisions.of('four')).toMatchObject([{ entities: 1, entity: 'urn:x:2' }])
  expect(lines).toHaveLength(3)
})

it('records no collision of one origin over two paths, and none of local writes', () => {
  const { noted, collisions } = open()
  collisions.note(1, 'one', 'one,between')
  collisions.note(1, undefined, 'one')
  collisions.note(1, 'one', undefined)
  expect([noted.value, collisions.of('one')]).toEqual([0, []])
})

it('keeps pairs and their entities up to their limits, and counts all collisions', () => {
  setLimit('collisionPairsMax', 1)
  setLimit('collisionEntitiesMax', 2)
  const { noted, collisions } = open()
  for (const rid of [1, 2, 3]) collisions.note(rid, 'one', 'two')
  collisions.note(1, 'one', 'three')
  expect(collisions.of('one')).toEqual([{ origins: ['one', 'two'], entities: 2, entity: 'urn:x:3' }])
  expect(noted.value).toBe(4)
})
