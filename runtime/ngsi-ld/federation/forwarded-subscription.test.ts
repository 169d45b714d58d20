/** Subscriptions forwarded to a source, and parsing of the source's notifications. */
import { expect, it } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { defaultTriggers, type Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { forwardedSubscription, parseNotifiedEntity } from './forwarded-subscription.ts'
import type { Registration } from './registration.ts'

const endpoint = { uri: 'http://here/notify' }
const base: Subscription = {
  id: 'urn:s:1',
  entities: [{ types: { kind: 'type', name: 'Pump' } }],
  notificationTrigger: defaultTriggers,
  notification: { endpoint },
  context: [],
  asked: { origin: 'http://here' },
}
const source = (
  information: Registration['information'],
  more: Partial<Registration> = {},
): Registration => ({
  id: 'urn:r:1',
  information,
  endpoint: 'http://there',
  context: [],
  ...more,
})
const pumps = [{ entities: [{ types: ['Pump'] }] }]

const inMode = (value: string): Subscription => ({
  ...base,
  notification: { endpoint: { ...endpoint, notifierInfo: [{ key: 'selvedge:mode', value }] } },
})
const region = (name: string) => ({ properties: { region: name } })
const northern = parseQuery('region=="north"', coreContext.expand)

it.each([
  ['filtered out', { ...base, csf: northern }, source(pumps, region('south'))],
  ['another type', base, source([{ entities: [{ types: ['Valve'] }] }])],
  [
    'other attributes',
    { ...base, watchedAttributes: ['flow'] },
    source([{ ...pumps[0]!, propertyNames: ['heat'] }]),
  ],
  ['not offered', base, source(pumps, { operations: ['retrieveOps'] })],
  ['localOnly', { ...base, localOnly: true }, source(pumps)],
  ['paused', { ...base, isActive: false }, source(pumps)],
  ['expired', { ...base, expiresAt: 999 }, source(pumps)],
  ['watched by a component', inMode('follower'), source(pumps)],
  ['an uplink', inMode('uplink'), source(pumps)],
] as const)('is not forwarded: %s', (_, subscription, registration) => {
  expect(forwardedSubscription(subscription, registration, 1000)).toBeUndefined()
})

it('is forwarded if it passes the source filter, without that filter', () => {
  const passed = forwardedSubscription({ ...base, csf: northern }, source(pumps, region('north')), 0)
  expect([passed === undefined, passed?.csf]).toEqual([false, undefined])
})

it('selects the entities that are requested and claimed', () => {
  const ids = (subscription: Subscription, registration: Registration) =>
    forwardedSubscription(subscription, registration, 0)?.entities
  const type = { types: { kind: 'type', name: 'Pump' } }
  expect(ids(base, source(pumps))).toEqual([type])
  expect(ids(base, source([{ entities: [{ types: ['Pump'], id: 'urn:p:1' }] }]))).toEqual([
    { ...type, ids: ['urn:p:1'] },
  ])
  const one = { ...base, entities: [{ ...type, ids: ['urn:p:2'] }] } as Subscription
  expect(ids(one, source([{ entities: [{ types: ['Pump'], idPattern: '^urn:p' }] }]))).toEqual([
    { ...type, ids: ['urn:p:2'] },
  ])
  const { entities: _, ...every } = { ...base, watchedAttributes: ['flow'] }
  expect(ids(every, source(pumps))).toEqual([type])
  expect(ids(every, source([{ propertyNames: ['flow'] }]))).toBeUndefined()
  expect(forwardedSubscription(every, source([{ propertyNames: ['flow'] }]), 0)?.watchedAttributes).toEqual([
    'flow',
  ])
})

it('omits conditions that the source cannot evaluate, and requests the attributes they use', () => {
  const q = { kind: 'exists', path: { names: ['heat'] } } as unknown as NonNullable<Subscription['q']>
  const subscription = { ...base, q, notification: { endpoint, attributes: ['flow'] } }
  const blind = forwardedSubscription(subscription, source([{ ...pumps[0]!, propertyNames: ['flow'] }]), 0)
  expect([blind?.q, blind?.notification.attributes]).toEqual([undefined, ['flow']])
  const seeing = forwardedSubscription(subscription, source(pumps), 0)
  expect([seeing?.q, seeing?.notification.attributes]).toEqual([q, ['flow', 'heat']])
})

it('forwards scopes, but not if several sources may hold parts of an entity', () => {
  const subscription = { ...base, scopeQ: parseScopeQuery('/north') }
  expect(forwardedSubscription(subscription, source(pumps), 0)?.scopeQ).toEqual(subscription.scopeQ)
  const split = forwardedSubscription({ ...subscription, splitEntities: true }, source(pumps), 0)
  expect([split?.entities, split?.scopeQ]).toEqual([base.entities, undefined])
})

it('parses new values, previous values and deletions', () => {
  const notified = parseNotifiedEntity(
    {
      id: 'urn:p:1',
      type: 'Pump',
      modifiedAt: '2024-01-01T00:00:00Z',
      flow: { type: 'Property', value: 2, previousValue: 1 },
      heat: [
        { type: 'Property', value: 'urn:ngsi-ld:null', datasetId: 'urn:d:1', previousValue: 7 },
        { type: 'Property', value: 3 },
      ],
      name: 'urn:ngsi-ld:null',
    },
    coreContext,
    5,
  )
  expect(notified.entity).toEqual({
    id: 'urn:p:1',
    type: 'Pump',
    flow: { type: 'Property', value: 2 },
    heat: { type: 'Property', value: 3 },
  })
  expect(notified.changes).toEqual([
    { name: 'flow', isDeleted: false, before: { type: 'Property', value: 1 } },
    { name: 'heat', isDeleted: true, before: { type: 'Property', value: 7, datasetId: 'urn:d:1' } },
    { name: 'name', isDeleted: true, before: { type: 'Property', value: null } },
  ])
  expect(
    parseNotifiedEntity({ id: 'urn:p:1', type: 'Pump', deletedAt: '2024-01-01T00:00:00Z' }, coreContext, 5),
  ).toEqual({
    entity: { id: 'urn:p:1', type: 'Pump' },
    times: { created: 0, modified: 0, attributes: {} },
    at: 5,
    isDeleted: true,
  })
})
