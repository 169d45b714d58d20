/**
 * Deliveries of the same batch operation or throttling window share a request: one per subscription, each
 * entity once. After a failure that a single entity may have caused, they are sent one by one.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { type Outbox, openOutbox } from '#test/kit/outbox.ts'
import { createReceiver, type Received, type Receiver } from '#test/kit/receiver.ts'

let database: TemporaryDatabase
let outbox: Outbox
let receiver: Receiver

beforeEach(async () => {
  database = temporaryDatabase()
  receiver = await createReceiver()
  outbox = await openOutbox(database.file, { sharing: 4 })
})
afterEach(async () => {
  await outbox.close()
  await receiver.down()
  database.remove()
})

interface Shared {
  readonly sub: number
  readonly entity: string
  readonly entities?: readonly string[]
}
const bodyOf = ({ body }: Received): Shared => JSON.parse(body) as Shared
const entitiesOf = (received: Received): readonly string[] => {
  const { entity, entities = [entity] } = bodyOf(received)
  return entities
}
const pending = (entity: string, more: { sub?: number; batch?: number; value?: number } = {}) => ({
  endpoint: receiver.url(),
  entity,
  ...more,
})
const settled = () => vi.waitFor(() => expect(outbox.dispatcher.stats()).toEqual([]))

it('sends the entities of a batch in one request for each subscription', async () => {
  await outbox.enqueue(
    ['a', 'b', 'c'].flatMap((entity) => [1, 2].map((sub) => pending(entity, { sub, batch: 7 }))),
  )
  await settled()
  expect(receiver.taken().map((one) => [bodyOf(one).sub, entitiesOf(one)])).toEqual([
    [1, ['a', 'b', 'c']],
    [2, ['a', 'b', 'c']],
  ])
})

it('sends the entities of a batch in one request to each of many subscribers', async () => {
  await outbox.close()
  outbox = await openOutbox(database.file, { sharing: 100 })
  const paths = Array.from({ length: 60 }, (_, i) => receiver.url(`/${i}`))
  const entities = Array.from({ length: 10 }, (_, i) => `e${i}`)
  await outbox.enqueue(
    entities.flatMap((entity) => paths.map((endpoint, sub) => ({ endpoint, sub, entity, batch: 7 }))),
  )
  await settled()
  expect(receiver.taken().map(entitiesOf)).toEqual(paths.map(() => entities))
})

it('separates different batches, single changes and changes of the same entity', async () => {
  await outbox.enqueue([
    pending('a', { batch: 7 }),
    pending('b', { batch: 8 }),
    pending('c'),
    pending('a', { batch: 7, value: 1 }),
    pending('d', { batch: 7 }),
  ])
  await settled()
  const sent = receiver.taken().map((one) => entitiesOf(one).join())
  expect(sent.toSorted()).toEqual(['a', 'a,d', 'b', 'c'])
})

it('splits a batch that is larger than one request', async () => {
  await outbox.enqueue(Array.from({ length: 10 }, (_, i) => pending(`e${i}`, { batch: 7 })))
  await settled()
  expect(receiver.taken().map((one) => entitiesOf(one).length)).toEqual([4, 4, 2])
  expect(new Set(receiver.taken().flatMap(entitiesOf)).size).toBe(10)
})

it('sends entities one by one after a 4xx, and only the one rejected again becomes a dead letter', async () => {
  receiver.answer((received) => (entitiesOf(received).includes('bad') ? 400 : 200))
  await outbox.enqueue(['a', 'bad', 'c'].map((entity) => pending(entity, { batch: 7 })))
  await settled()
  expect(receiver.taken().flatMap(entitiesOf).toSorted()).toEqual(['a', 'c'])
  const buried = () => outbox.reads.deadLetters(10).map(({ entity }) => entity)
  await vi.waitFor(() => expect(buried()).toEqual(['bad']))
})

it('sends one entity alone to an endpoint that responded with 500, and the rest of the batch once that succeeds', async () => {
  let isWell = false
  receiver.answer(() => (isWell ? 200 : 500))
  await outbox.enqueue(['a', 'b', 'c'].map((entity) => pending(entity, { batch: 7 })))
  await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(0))
  isWell = true
  await settled()
  expect(receiver.taken().map(entitiesOf)).toEqual([['a'], ['b', 'c']])
})

it.each(['reset', 500] as const)(
  'goes on with the other entities of a batch where one causes %s',
  async (answer) => {
    receiver.answer((received) => (entitiesOf(received).includes('bad') ? answer : 200))
    await outbox.enqueue(['a', 'b', 'bad', 'c'].map((entity) => pending(entity, { batch: 7 })))
    const taken = () => receiver.taken().flatMap(entitiesOf).toSorted()
    await vi.waitFor(() => expect(taken()).toEqual(['a', 'b', 'c']))
    receiver.answer(() => 200)
    await vi.waitFor(() => expect(taken()).toEqual(['a', 'b', 'bad', 'c']))
  },
)

it('sends entities one by one to an endpoint that closes the connection on several', async () => {
  receiver.answer((received) => (entitiesOf(received).length > 1 ? 'reset' : 200))
  await outbox.enqueue(Array.from({ length: 10 }, (_, i) => pending(`e${i}`, { batch: 7 })))
  await settled()
  expect(receiver.taken().flatMap(entitiesOf).length).toBe(10)
})
