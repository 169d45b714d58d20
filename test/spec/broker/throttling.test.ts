/**
 * Throttling (GS CIM 009, 5.2.12): the first match of a window is notified at once, the last value of each
 * entity at its end, and the entities of one batch together.
 */
import { expect, it } from 'vitest'
import { nothingObserved } from '#broker/subscriptions/delivery-outbox.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Fragment } from '#ngsi-ld/entity/entity.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import type { EntityReport } from '#ngsi-ld/subscription/notification-data.ts'
import { defaultTriggers, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000

const open = brokerOfFile({ synchronous: 'NORMAL' })

const subscribe = (members: Partial<Subscription>): Promise<void> =>
  open.broker.subscriptions.create({
    id: 'urn:x:s',
    notificationTrigger: defaultTriggers,
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
    context: [],
    ...members,
  })
const create = (): Promise<void> => {
  const t = { type: 'Property', value: 0, observedAt: new Date(at(0)).toISOString() }
  return open.broker.create({ id, type: 'Room', t, name: { type: 'Property', value: 'a' } }, 'http')
}
const seen = (s: number) => observe(open, id, 't', at(s), s)

const deliveries = (): Delivery[] =>
  open.main.database.prepare<[], Delivery>('SELECT * FROM delivery ORDER BY d').all()
const deliveryCount = (): number => deliveries().length

/** Notifications that were due at the end of a window: the value they report, and the attributes deleted. */
const released = () =>
  deliveries().flatMap(({ body }) => {
    if (body === null) return []
    const { entity, changes = [] } = JSON.parse(body) as EntityReport
    return [[(entity['t'] as { value: Json }).value, ...changes.map(({ name }) => name)]]
  })

/** The window of every subscription ends. */
const endWindow = async () => {
  open.clock.pass(61_000)
  const { door, matcher } = open.inside
  await door.commit((stage) => {
    for (const registered of matcher.all()) matcher.release(stage, registered)
  })
}

it('sends the last match of a window at its end, once per entity', async () => {
  await create()
  await subscribe({ throttling: 60 })
  for (const s of [1, 2, 3]) await seen(s)
  expect(deliveryCount()).toBe(1)
  await endWindow()
  expect(released()).toEqual([[3]])
  // The notification at the end begins the next window.
  await seen(4)
  expect(deliveryCount()).toBe(2)
  await endWindow()
  expect(released()).toEqual([[3], [4]])
})

it('ends a window by a timer', async () => {
  await create()
  await subscribe({ throttling: 0.05 })
  for (const s of [1, 2, 3]) await seen(s)
  open.clock.pass(60)
  const last = () => released().at(-1)?.[0] ?? 0
  await expect.poll(() => Math.max(Number(last()), Number(deliveries().at(-1)?.value))).toBe(3)
})

it('reports deletions at the end of a window, and nothing that no longer matches', async () => {
  await create()
  await subscribe({ throttling: 60, notificationTrigger: [...defaultTriggers, 'attributeDeleted'] })
  await subscribe({ id: 'urn:x:q', throttling: 60, q: parseQuery('t>1', (term) => term) })
  await seen(2)
  await open.broker.deleteAttribute(id, 'name', { deleteAll: true, by: 'http' })
  await seen(3)
  const t = { type: 'Property', value: 1, observedAt: new Date(at(4)).toISOString() }
  await open.broker.update(id, { t } as Fragment, { appendMissing: true, by: 'http' })
  expect(deliveryCount()).toBe(2)
  await endWindow()
  expect(released()).toEqual([[1, 'name']])
})

it('lets all entities of one batch through together', async () => {
  await subscribe({ throttling: 60, notificationTrigger: ['entityCreated'] })
  const batch = [1, 2, 3].map((n) => ({ id: `urn:x:${n}`, type: 'Room' }))
  await open.broker.batchCreate(batch, 'http')
  expect(deliveryCount()).toBe(3)
  const marks = new Set(deliveries().map((one) => one.batch))
  expect(marks.size).toBe(1)
  expect(marks).not.toContain(null)
})

it('dates deliveries in the order of their numbers, also for a batch that continues later', async () => {
  await subscribe({ notificationTrigger: ['entityCreated'] })
  const { door, matcher } = open.inside
  const deliver = (batchAt?: number) =>
    door.commit((given) => {
      const stage = batchAt === undefined ? given : given.ofBatch(batchAt)
      const [registered] = [...matcher.all()]
      matcher.deliver(stage, registered!, { ...nothingObserved, entity: id, body: '{}' })
      return stage.at
    })
  const first = await deliver()
  open.clock.pass(1000)
  const later = await deliver()
  await deliver(first)
  const [before, between, after] = deliveries()
  expect([before!.at, between!.at, after!.at]).toEqual([first, later, later])
  expect([before!.batch, between!.batch, after!.batch]).toEqual([null, null, first])
})

it('marks the entities at the end of a window, so that they share a notification', async () => {
  await subscribe({ throttling: 60, notificationTrigger: ['entityUpdated', 'entityCreated'] })
  for (const n of [1, 2, 3]) await open.broker.create({ id: `urn:x:${n}`, type: 'Room' }, 'http')
  expect(deliveryCount()).toBe(1)
  await endWindow()
  const [first, ...held] = deliveries()
  expect(first!.batch).toBeNull()
  expect(held.map((one) => one.batch)).toEqual([held[0]!.at, held[0]!.at])
})
