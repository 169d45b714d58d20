/** In which order a component takes what the log reports. */
import { expect, it } from 'vitest'
import type { ChangeBatch, ChangesPort, EntityState, Follower } from '#contract'
import { iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { createStreamLog } from './stream-log.ts'

const stateOf = (id: string, type: string, more: object = {}): EntityState => ({
  rid: 1,
  id,
  types: [type],
  entity: () => ({ id, type, ...more }) as unknown as Entity,
  text: () => '',
  times: () => ({ created: 0, modified: 0, attributes: { [sosa.hasSimpleResult]: [1, 2] } }),
})
const stream = stateOf('s', iotStream.IotStream)
const observation = stateOf('o', iotStream.StreamObservation)
const batchOf = (more: Partial<ChangeBatch>): ChangeBatch => ({
  through: 7,
  at: 9,
  changed: [],
  deleted: [],
  observed: [],
  ...more,
})

/** A log, what a component took of it, and the entities that the broker has. */
async function open() {
  const done: string[] = []
  const entities = new Map<string, EntityState>()
  const placed = new Set<string>()
  let follower: Follower | undefined
  let reads = 0
  const changes = {
    entity(id: string) {
      reads++
      return entities.get(id)
    },
    follow(_: number, given: Follower) {
      follower = given
      return { close() {} }
    },
  } as unknown as ChangesPort
  const log = createStreamLog({
    changes,
    types: new Set([iotStream.IotStream]),
    streams: {
      take: ({ id }) => void done.push(`take ${id}`),
      delete: (id) => void done.push(`delete ${id}`),
      observedBy: (id) => (placed.has(id) ? {} : undefined),
      all: () => [{ id: 's' }, { id: 't' }],
    },
    restore: async () => 5,
    read: async () => 6,
    observed: (id, { value }) => void done.push(`${id} is ${JSON.stringify(value)}`),
    untimed: (id, { committedAt }) => void done.push(`${id} without time at ${committedAt}`),
    taken: ({ through }) => void done.push(`through ${through}`),
    signal: new AbortController().signal,
  })
  await log.start()
  return {
    log,
    done,
    entities,
    placed,
    reads: () => reads,
    take: (batch: ChangeBatch) => follower!.take(batch),
  }
}

it('takes deletions, streams, other entities and observations, in this order', async () => {
  const { done, take } = await open()
  const value = { id: 'o', name: sosa.hasSimpleResult, dataset: '', time: 1, value: 20 }
  const observed = [value, { ...value, name: 'other' }].map((one) => ({
    ...one,
    n: 7,
    committed: 1,
    isLate: false,
    via: undefined,
  }))
  await take(batchOf({ changed: [observation, stream], deleted: ['x'], observed }))
  expect(done).toEqual(['delete x', 'take s', 'take o', 'o is 20', 'through 7'])
})

it('takes a result without observedAt at its commit', async () => {
  const { done, take } = await open()
  const untimed = stateOf('o', iotStream.StreamObservation, {
    [sosa.hasSimpleResult]: { type: 'Property', value: 3 },
    [sosa.resultTime]: { type: 'Property', value: '2026-06-01T00:00:00Z' },
  })
  await take(batchOf({ changed: [untimed] }))
  expect(done).toEqual(['take o', 'o without time at 2', 'through 7'])
})

it('looks an observation entity without a stream up again after a followed entity changed', async () => {
  const { log, entities, reads, take } = await open()
  entities.set('o', observation)
  for (let i = 0; i < 3; i++) expect(log.isPlaced('o')).toBe(false)
  expect(reads()).toBe(1)
  await take(batchOf({ changed: [stateOf('q', qoi.Quality)] }))
  log.isPlaced('o')
  expect(reads()).toBe(1)
  await take(batchOf({ changed: [stream] }))
  log.isPlaced('o')
  expect(reads()).toBe(2)
})

it('deletes the streams that the broker no longer has', async () => {
  const { log, entities, done } = await open()
  entities.set('s', stream)
  log.deleteMissing()
  expect(done).toEqual(['delete t'])
})
