/**
 * The contents of a notification (GS CIM 009, 5.8.6 and 5.3.1), rendered when it is sent, long after its
 * match: an observation with the value that matched, a change as it was made, and deleted parts as deleted.
 */
import { expect, it } from 'vitest'
import type { Contexts } from '#broker/contexts/context-resolver.ts'
import { renderNotification } from '#broker/subscriptions/notification.ts'
import { createRenderedItems } from '#broker/subscriptions/rendered-items.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import {
  type NotificationParameters,
  notificationTriggers,
  type Subscription,
} from '#ngsi-ld/subscription/subscription.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { observe } from '#test/kit/broker.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const id = 'urn:x:room'
const at = (second: number): number => Date.UTC(2026, 0, 1) + second * 1000
const contexts = { core: coreContext, resolveAtOnce: () => coreContext } as unknown as Contexts

const open = brokerOfFile({ synchronous: 'NORMAL' })

const property = (value: unknown, s?: number) => ({
  type: 'Property',
  value,
  ...(s === undefined ? {} : { observedAt: msToDateTime(at(s)) }),
})
const room = (attributes: object): Entity => ({ id, type: 'Room', ...attributes })
const subscribe = (
  notification: Partial<NotificationParameters> = {},
  members: Partial<Subscription> = {},
): Promise<void> =>
  open.broker.subscriptions.create({
    id: 'urn:x:s',
    notificationTrigger: [...notificationTriggers],
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' }, ...notification },
    context: [],
    ...members,
  })
const drop = (name: string): Promise<void> =>
  open.broker.deleteAttribute(id, name, { deleteAll: true, by: 'http' })

const notifying = () => ({
  tenant: open.inside,
  contexts,
  items: createRenderedItems(),
  clock: open.clock,
  newId: () => 'n',
})

/** The data of all pending deliveries, as it would be sent now. */
function reported(): unknown[] {
  const ports = notifying()
  return open.announced.map((delivery) => {
    const rendered = renderNotification(ports, [delivery])
    const body = JSON.parse(rendered?.body ?? '{"data":[]}') as { data: unknown[] }
    return body.data[0]
  })
}

it('reports each observation with the value that matched, whatever was written since', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe()
  for (const s of [1, 2]) await observe(open, id, 't', at(s), s)
  expect(reported()).toEqual([1, 2].map((s) => room({ t: property(s, s), name: property('a') })))
})

it('reports an observation although its attribute or entity was deleted since', async () => {
  const unit = { unitCode: 'CEL' }
  await open.broker.create(room({ t: { ...property(0, 0), ...unit }, name: property('a') }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 1)
  const [observed] = reported()
  await drop('t')
  expect(reported()[0]).toEqual(observed)
  await open.broker.remove(id, 'http')
  expect(reported()[0]).toEqual(observed)
})

it('reports an observation of one of several instances', async () => {
  const a = { datasetId: 'urn:x:a' }
  await open.broker.create(room({ t: [property(0, 0), { ...property(5, 0), ...a }] }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 6, { dataset: a.datasetId })
  const expected = room({ t: [property(0, 0), { ...property(6, 1), ...a }] })
  expect(reported()).toEqual([expected])
  await open.broker.deleteAttribute(id, 't', { ...a, deleteAll: false, by: 'http' })
  expect(reported()[0]).toEqual(expected)
})

it('reports a change as it was made, and deleted attributes as null', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe()
  const fragment = { name: property('b') } as Fragment
  await open.broker.update(id, fragment, { appendMissing: true, by: 'http' })
  await drop('name')
  expect(reported()).toEqual([
    room({ t: property(0, 0), name: property('b') }),
    room({ t: property(0, 0), name: property('urn:ngsi-ld:null') }),
  ])
})

it('reports the selected attributes, including deleted ones', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe({ attributes: ['t'], format: 'simplified' })
  await observe(open, id, 't', at(1), 1)
  await drop('name')
  await drop('t')
  expect(reported()).toEqual([room({ t: 1 }), room({ t: 1 }), room({ t: 'urn:ngsi-ld:null' })])
})

it('reports a deleted entity with its id, type and time', async () => {
  await open.broker.create(room({ t: property(0, 0) }), 'http')
  await subscribe({}, { notificationTrigger: ['entityDeleted'] })
  await open.broker.remove(id, 'http')
  expect(reported()).toEqual([{ id, type: 'Room', deletedAt: expect.stringMatching(/Z$/) }])
})

it('reports the watched attributes of a deleted entity, if their deletion is a trigger', async () => {
  await open.broker.create(room({ t: property(0, 0), name: property('a') }), 'http')
  await subscribe(
    { sysAttrs: true },
    { notificationTrigger: ['attributeDeleted'], watchedAttributes: ['name'] },
  )
  await open.broker.remove(id, 'http')
  const time = expect.stringMatching(/Z$/)
  const stamps = { createdAt: time, modifiedAt: time, deletedAt: time }
  expect(reported()).toEqual([
    { id, type: 'Room', ...stamps, name: { ...property('urn:ngsi-ld:null'), ...stamps } },
  ])
})

it('reports one deleted instance among remaining ones', async () => {
  const french = { datasetId: 'urn:x:fr' }
  const both = [property('a'), { ...property('b'), ...french }]
  await open.broker.create(room({ name: both }), 'http')
  await subscribe({}, { notificationTrigger: ['attributeDeleted'] })
  await subscribe({ format: 'simplified' }, { id: 'urn:x:s2', notificationTrigger: ['attributeDeleted'] })
  await open.broker.deleteAttribute(id, 'name', { ...french, deleteAll: false, by: 'http' })
  expect(reported()).toEqual([
    room({ name: [property('a'), { ...property('urn:ngsi-ld:null'), ...french }] }),
    room({ name: { dataset: { '@none': 'a', 'urn:x:fr': 'urn:ngsi-ld:null' } } }),
  ])
})

it('reports previous values of observations, changes and deletions', async () => {
  const language = (languageMap: object) => ({ type: 'LanguageProperty', languageMap })
  await open.broker.create(room({ t: property(0, 0), name: language({ en: 'a' }) }), 'http')
  await subscribe({ showChanges: true })
  await observe(open, id, 't', at(1), 1)
  await observe(open, id, 't', at(2), 2)
  const fragment = { name: language({ en: 'b' }) } as Fragment
  await open.broker.update(id, fragment, { appendMissing: true, by: 'http' })
  await open.broker.update(id, { more: property(1) } as Fragment, { appendMissing: true, by: 'http' })
  await drop('more')
  await open.broker.remove(id, 'http')
  const name = language({ en: 'a' })
  const renamed = language({ en: 'b' })
  const nothing = 'urn:ngsi-ld:null'
  expect(reported()).toEqual([
    room({ t: { ...property(1, 1), previousValue: 0 }, name: renamed }),
    room({ t: { ...property(2, 2), previousValue: 1 }, name: renamed }),
    room({ t: property(2, 2), name: { ...renamed, previousLanguageMap: name.languageMap } }),
    room({ t: property(2, 2), name: renamed, more: property(1) }),
    room({ t: property(2, 2), name: renamed, more: { ...property(nothing), previousValue: 1 } }),
    room({
      t: { ...property(nothing), previousValue: 2 },
      name: { ...language({ '@none': nothing }), previousLanguageMap: renamed.languageMap },
      deletedAt: expect.any(String),
    }),
  ])
})

it('reports picked and not omitted members, of the requested dataset and language', async () => {
  const name = { type: 'LanguageProperty', languageMap: { en: 'a', de: 'b' } }
  await open.broker.create(room({ t: [property(0), { ...property(1), datasetId: 'urn:x:d' }], name }), 'http')
  await subscribe({ pick: ['id', 'name'] }, { lang: 'de' })
  await subscribe({ omit: ['type', 'name'] }, { id: 'urn:x:s2', datasetId: ['urn:x:d'] })
  await open.broker.update(id, { t: property(5) } as Fragment, { appendMissing: true, by: 'http' })
  expect(reported()).toEqual([
    { id, name: { type: 'Property', value: 'b', lang: 'de' } },
    { id, t: { ...property(1), datasetId: 'urn:x:d' } },
  ])
})

it('includes linked entities, flat or inline', async () => {
  const site = {
    id: 'urn:x:site',
    type: 'Site',
    name: { type: 'Property', value: 's' },
    size: { type: 'Property', value: 3 },
  }
  const link = { type: 'Relationship', object: site.id }
  await open.broker.create(site, 'http')
  await open.broker.create(room({ in: link }), 'http')
  await subscribe({ join: 'flat', attributes: ['in'] })
  await subscribe({ join: 'inline', pick: ['id', 'in{name}'] }, { id: 'urn:x:s2' })
  await open.broker.update(id, { t: property(1) } as Fragment, { appendMissing: true, by: 'http' })
  const ports = notifying()
  const data = open.announced.map((delivery) => JSON.parse(renderNotification(ports, [delivery])!.body).data)
  expect(data).toEqual([[room({ in: link }), site], [{ id, in: { ...link, entity: { name: site.name } } }]])
})

it('shares the rendering of a change only among subscriptions of the same form', async () => {
  const parameters: Partial<NotificationParameters>[] = [{}, {}, { format: 'simplified' }, { pick: ['id'] }]
  for (const [n, one] of parameters.entries()) await subscribe(one, { id: `urn:x:s${n}` })
  await open.broker.create(room({ t: property(1) }), 'http')
  await open.broker.update(id, { t: property(2) } as Fragment, { appendMissing: true, by: 'http' })
  const rooms = [1, 2].map((value) => room({ t: property(value) }))
  expect(reported()).toEqual([1, 2].flatMap((value, i) => [rooms[i], rooms[i], room({ t: value }), { id }]))
})

it('sends GeoJSON with the context in the body, or in a header if preferred', async () => {
  const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 2] } }
  await open.broker.create(room({ location }), 'http')
  const endpoint = { uri: 'http://127.0.0.1:9/', accept: 'application/geo+json' } as const
  await subscribe({ endpoint })
  const receiverInfo = [{ key: 'Prefer', value: 'body=json' }]
  await subscribe({ endpoint: { ...endpoint, receiverInfo } }, { id: 'urn:x:s2' })
  await open.broker.update(id, { t: property(1) } as Fragment, { appendMissing: true, by: 'http' })
  const ports = notifying()
  const [inBody, inHeader] = open.announced.map((delivery) => renderNotification(ports, [delivery])!)
  const properties = { type: 'Room', location, t: property(1) }
  const feature = { id, type: 'Feature', geometry: location.value, properties }
  const collection = { type: 'FeatureCollection', features: [feature] }
  expect(JSON.parse(inBody!.body).data).toEqual({ ...collection, '@context': coreContext.address })
  expect(inBody!.headers).toMatchObject({ 'Content-Type': 'application/geo+json' })
  expect(inBody!.headers).not.toHaveProperty('Link')
  expect(JSON.parse(inHeader!.body).data).toEqual(collection)
  expect(inHeader!.headers).toMatchObject({
    Link: expect.stringContaining('json-ld#context'),
    Prefer: 'body=json',
  })
})

it('sends nothing for a deleted subscription', async () => {
  await open.broker.create(room({ t: property(0, 0) }), 'http')
  await subscribe()
  await observe(open, id, 't', at(1), 1)
  await open.broker.subscriptions.delete('urn:x:s')
  expect(reported()).toEqual([undefined])
})
