/** Digests of a tenant's entities. */
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { immortalWriter, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

let open: OpenBroker
let remove: () => void
beforeEach(async () => {
  const place = temporaryFolder()
  remove = place.remove
  open = await openBroker(place.folder, { writer })
})
afterEach(async () => {
  await open.close()
  remove()
})

// Each reading of a document of 1 MB would make another megabyte of values.
test('a document that a filter by type has read is hashed without reading it again', async () => {
  const { broker } = open
  await broker.create({ id: 'urn:x:1', type: 'T' }, 'http')
  await broker.create({ id: 'urn:x:2', type: 'Other' }, 'http')
  const filtered: Entity[] = []
  const hashed: Entity[] = []
  const buckets = await broker.digests.buckets(
    (view) => filtered.push(view.entity()) > 0 && view.entity().type === 'T',
    (entity) => {
      hashed.push(entity)
      return entity
    },
  )
  expect(filtered.map(({ id }) => id)).toEqual(['urn:x:1', 'urn:x:2'])
  expect(hashed).toHaveLength(1)
  expect(hashed[0]).toBe(filtered[0])
  expect(buckets.reduce((all, [count]) => all + count, 0)).toBe(1)
})
