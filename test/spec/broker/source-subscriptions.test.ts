/**
 * Subscriptions to registrations, decided in one group with the registrations they concern: in either order,
 * each registration is notified once.
 */
import { expect, it } from 'vitest'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import type { SourceSubscription } from '#ngsi-ld/federation/source-subscription.ts'
import { defaultTriggers } from '#ngsi-ld/subscription/subscription.ts'
import { brokerOfFile } from '#test/kit/broker-of-file.ts'

const open = brokerOfFile({ synchronous: 'NORMAL' })

const registration = (id: string): Registration => ({
  id,
  information: [{ entities: [{ types: ['Pump'] }] }],
  endpoint: 'http://source.example',
  context: [],
})
const subscription: SourceSubscription = {
  subscription: {
    id: 'urn:x:s',
    entities: [{ types: { kind: 'type', name: 'Pump' } }],
    notificationTrigger: defaultTriggers,
    notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
    context: [],
  },
}
const reported = (): unknown[] =>
  open.announced.map(({ body }) => {
    const { reason, views } = JSON.parse(body!) as { reason: string; views: { registration: Registration }[] }
    return [reason, views.map((view) => view.registration.id)]
  })

it('a registration after the subscription is notified when it is created', async () => {
  const { sourceSubscriptions, registrations } = open.broker
  await Promise.all([
    sourceSubscriptions.create(subscription),
    registrations.create(registration('urn:x:new')),
    registrations.delete('urn:x:new'),
  ])
  expect(reported()).toEqual([
    ['newlyMatching', ['urn:x:new']],
    ['noLongerMatching', ['urn:x:new']],
  ])
})

it('a registration before the subscription is in its first notification', async () => {
  await Promise.all([
    open.broker.registrations.create(registration('urn:x:r')),
    open.broker.sourceSubscriptions.create(subscription),
  ])
  expect(reported()).toEqual([['newlyMatching', ['urn:x:r']]])
})
