/**
 * What a notification says (GS CIM 009, 5.8.6 and 5.3.1), rendered when it is sent, long after its match: an
 * observation with the value that matched, a change as it was made, and what was deleted as deleted.
 */
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import type { Contexts } from '#broker/contexts.ts'
import { renderNotification } from '#broker/notify.ts'
import { coreContext } from '#ngsi-ld/context.ts'
import { msToDateTime } from '#ngsi-ld/datetime.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity.ts'
import { type NotificationParameters, notificationTriggers } from '#ngsi-ld/subscription.ts'
import { immortalWriter, type OpenBroker, observe, openBroker, temporaryFolder } from '#test/kit/broker.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000
const contexts = { core: coreContext, resolve: () => coreContext } as unknown as Contexts

let temporary: ReturnType<typeof temporaryFolder>
let open: OpenBroker
beforeEach(async () => {
  temporary = temporaryFolder()
  open = await openBroker(temporary.folder, { writer, synchronous: 'NORMAL' })
})
afterEach(async () => {
  await open.close()
  temporary.remove()
})

const property = (value: unknown, s?: number) => ({
  type: 'Property',
  value,
  ...(s === undefined ? {} : { observedAt: msToDateTime(at(s)) }),
})
const room = (attributes: object): Entity => ({ id, type: 'Room', ...attributes })
const subscribe = (notification: Partial<NotificationParameters> = {}): Promise<void> =>
  open.broker.subscriptions.create({
    id: 'urn:x:s',
    notificationTrigger: [...notificationTriggers],
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' }, ...notification },
    context: [],
  })
const drop = (name: string): Promise<void> =>
  open.broker.deleteAttribute(id, name, { deleteAll: true, by: 'http' })

/** The data of everything owed, as it would be sent now. */
function told(): unknown[] {
  const ports = { tenant: open.inside, contexts, clock: open.clock, newId: () => 'n' }
  return open.owed.map((delivery) => {
    const rendered = renderNotification(ports, delivery)
    const body = JSON.parse(rendered?.body ?? '{"data":[]}') as { data: unknown[] }
    return body.data[0]
  })
}

it('tells each observation with the value that matched, whatever came since', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe()
  for (const s of [1, 2]) await observe(open, id, 't', at(s), s)
  expect(told()).toEqual([1, 2].map((s) => room({ t: property(s, s), name: property('a') })))
})

it('tells an observation although its attribute, or its entity, is gone', async () => {
  const unit = { unitCode: 'CEL' }
  await open.broker.create(room({ t: { ...property(0, 0), ...unit }, name: property('a') }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 1)
  const [observed] = told()
  await drop('t')
  expect(told()[0]).toEqual(observed)
  await open.broker.remove(id, 'http')
  expect(told()[0]).toEqual(observed)
})

it('tells an observation of one of several instances', async () => {
  const a = { datasetId: 'urn:x:a' }
  await open.broker.create(room({ t: [property(0, 0), { ...property(5, 0), ...a }] }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 6, { dataset: a.datasetId })
  const expected = room({ t: [property(0, 0), { ...property(6, 1), ...a }] })
  expect(told()).toEqual([expected])
  await open.broker.deleteAttribute(id, 't', { ...a, deleteAll: false, by: 'http' })
  expect(told()[0]).toEqual(expected)
})

it('tells a change as it was made, and deleted attributes as null', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe()
  const fragment = { name: property('b') } as Fragment
  await open.broker.update(id, fragment, { appendMissing: true, by: 'http' })
  await drop('name')
  expect(told()).toEqual([
    room({ t: property(0, 0), name: property('b') }),
    room({ t: property(0, 0), name: 'urn:ngsi-ld:null' }),
  ])
})

it('tells of the attributes asked for, deleted ones among them', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe({ attributes: ['t'], format: 'simplified' })
  await observe(open, id, 't', at(1), 1)
  await drop('name')
  await drop('t')
  expect(told()).toEqual([room({ t: 1 }), room({ t: 1 }), room({ t: 'urn:ngsi-ld:null' })])
})

it('tells of a deleted entity its id, type and time', async () => {
  await open.broker.create(room({ t: property(0, 0) }), 'http')
  await subscribe()
  await open.broker.remove(id, 'http')
  expect(told()).toEqual([{ id, type: 'Room', deletedAt: expect.stringMatching(/Z$/) }])
})

it('tells nothing of a subscription that is gone', async () => {
  await open.broker.create(room({ t: property(0, 0) }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 1)
  await open.broker.subscriptions.delete('urn:x:s')
  expect(told()).toEqual([undefined])
})
