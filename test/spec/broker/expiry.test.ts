/** Expiry of entities and attributes [NGSI-LD 5.2.4 and 5.2.5, expiresAt]: expired ones are deleted. */
import { expect, it } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'

const open = brokerOfFile()

const inSeconds = (seconds: number): string => msToDateTime(open.clock.now() + seconds * 1000)
const property = (value: number, expiresAt?: string) => ({
  type: 'Property',
  value,
  ...(expiresAt === undefined ? {} : { expiresAt }),
})
const create = (id: string, members: object): Promise<void> =>
  open.broker.create({ id, type: 'T', ...members } as Entity, 'http')
const read = (id: string): Entity | undefined => open.broker.retrieve(id)?.entity()

it('deletes an entity at its expiry time and not before, also across a restart', async () => {
  await create('urn:x:1', { expiresAt: inSeconds(60), a: property(1) })
  await create('urn:x:2', { a: property(1) })
  await open.upkeep(30_000)
  expect(read('urn:x:1')).toBeDefined()
  await open.restart()
  await open.upkeep(31_000)
  expect(read('urn:x:1')).toBeUndefined()
  expect(read('urn:x:2')).toBeDefined()
  await create('urn:x:1', { a: property(2) })
  await open.upkeep(3_600_000)
  expect(read('urn:x:1')).toHaveProperty('a', property(2))
})

it('hides expired entities and attributes that are not deleted yet', async () => {
  await create('urn:x:1', { expiresAt: inSeconds(60), a: property(1) })
  await create('urn:x:2', { a: property(1, inSeconds(60)), b: property(2) })
  await create('urn:x:3', { a: property(1, inSeconds(120)) })
  open.clock.jump(60_000)
  const all = { selection: undefined, limit: 10, offset: 0, count: false }
  const found = open.broker.queryAtOnce(all).entities.map((view) => view.entity())
  expect([read('urn:x:1'), read('urn:x:2'), found.map(({ id }) => id)]).toEqual([
    undefined,
    { id: 'urn:x:2', type: 'T', b: property(2) },
    ['urn:x:2', 'urn:x:3'],
  ])
})

it('deletes each attribute instance at its own expiry time, and keeps the others', async () => {
  const other = { ...property(2, inSeconds(120)), datasetId: 'urn:d:1' }
  await create('urn:x:1', { a: [property(1, inSeconds(60)), other], b: property(3) })
  await open.upkeep(61_000)
  expect(read('urn:x:1')).toEqual({ id: 'urn:x:1', type: 'T', a: other, b: property(3) })
  await open.upkeep(60_000)
  expect(read('urn:x:1')).toEqual({ id: 'urn:x:1', type: 'T', b: property(3) })
})

it('applies the latest expiresAt: later, earlier, or none', async () => {
  const merge = (id: string, fragment: object) =>
    open.broker.merge(id, fragment as never, { by: 'http', merge: {} })
  for (const id of ['urn:x:1', 'urn:x:2', 'urn:x:3']) await create(id, { expiresAt: inSeconds(60) })
  await merge('urn:x:1', { expiresAt: inSeconds(600) })
  await merge('urn:x:2', { expiresAt: inSeconds(10) })
  await merge('urn:x:3', { expiresAt: 'urn:ngsi-ld:null' })
  await open.upkeep(11_000)
  expect([1, 2, 3].map((n) => read(`urn:x:${n}`) !== undefined)).toEqual([true, false, true])
  await open.upkeep(60_000)
  expect([1, 2, 3].map((n) => read(`urn:x:${n}`) !== undefined)).toEqual([true, false, true])
  await open.upkeep(600_000)
  expect([1, 2, 3].map((n) => read(`urn:x:${n}`) !== undefined)).toEqual([false, false, true])
  expect(read('urn:x:3')).toEqual({ id: 'urn:x:3', type: 'T' })
})

it('deletes an observed attribute with its stream, and notifies once', async () => {
  await create('urn:x:1', { a: property(1, inSeconds(60)) })
  await observe(open, 'urn:x:1', 'a', open.clock.now(), 5)
  await open.upkeep(61_000)
  expect(read('urn:x:1')).toEqual({ id: 'urn:x:1', type: 'T' })
  const version = open.broker.retrieve('urn:x:1')!.version()
  await open.upkeep(61_000)
  expect(open.broker.retrieve('urn:x:1')!.version()).toBe(version)
})

it('deletes more expired entities than fit one group', async () => {
  const expiresAt = inSeconds(5)
  const ids = Array.from({ length: 300 }, (_, n) => `urn:x:${n}`)
  const entities = ids.map((id) => ({ id, type: 'T', expiresAt }))
  await open.broker.batchCreate(entities, 'http')
  for (let i = 0; i < 3; i++) await open.upkeep(6000)
  expect(ids.filter((id) => read(id) !== undefined)).toEqual([])
})

it('deletes expired attributes also when the name table is full, without blocking other work', async () => {
  await create('urn:x:1', { a: property(1, inSeconds(60)), b: property(2), c: property(3) })
  await create('urn:x:2', { t: property(0) })
  setLimit('namesMax', 5)
  await open.upkeep(61_000)
  expect(read('urn:x:1')).toEqual({ id: 'urn:x:1', type: 'T', b: property(2), c: property(3) })
  const rows = open.main.database.prepare<[], number>('SELECT count(*) FROM expiry').pluck()
  expect(rows.get()).toBe(0)

  await create('urn:x:3', { b: property(1, inSeconds(60)), c: property(2) })
  // No space even for the names that a deletion needs.
  setLimit('namesMax', 1)
  await open.upkeep(61_000)
  await observe(open, 'urn:x:2', 't', open.clock.now(), 1)
  const chunks = open.main.database.prepare<[], number>('SELECT count(*) FROM chunk').pluck()
  expect([rows.get(), chunks.get()]).toEqual([1, 0])
  await open.upkeep()
  await open.upkeep(11_000)
  expect([rows.get(), chunks.get()]).toEqual([1, 1])
  restoreLimits()
  await open.upkeep()
  expect(rows.get()).toBe(0)
})
