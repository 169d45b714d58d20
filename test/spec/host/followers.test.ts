/**
 * Follower subscriptions show what a component of this gateway follows: visible to all, created only from
 * within, never notified.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { parseSubscription } from '#ngsi-ld/subscription/subscription-parse.ts'
import { openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { startGatewayInside } from '#test/kit/gateway-inside.ts'

const notifierInfo = [{ key: 'selvedge:mode', value: 'follower' }]
const subscription = (id: string, endpoint: object) => ({
  id,
  type: 'Subscription',
  entities: [{ type: 'T' }],
  notification: { endpoint },
})

it('cannot be created from outside, nor by a change of another subscription', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-followers-'))
  const gateway = await startGatewayInside(folder)
  try {
    const path = '/ngsi-ld/v1/subscriptions'
    const uri = 'http://127.0.0.1:9/x'
    const refused = await gateway.send('POST', path, subscription('urn:x:s', { uri, notifierInfo }))
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('notification.endpoint.notifierInfo selvedge:mode')
    expect((await gateway.send('POST', path, subscription('urn:x:s', { uri }))).status).toBe(201)
    const change = { notification: { endpoint: { uri, notifierInfo } } }
    expect((await gateway.send('PATCH', `${path}/urn:x:s`, change)).status).toBe(400)
  } finally {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

it('receives no notifications, while others do', async () => {
  const temporary = temporaryFolder()
  const open = await openBroker(temporary.folder)
  try {
    const { subscriptions } = open.broker
    const made = (id: string, endpoint: object) =>
      subscriptions.create(
        parseSubscription(subscription(id, endpoint), {
          context: coreContext,
          nowMs: Date.now(),
          newId: () => id,
        }),
      )
    await made('urn:x:follower', { uri: 'http://x/1', accept: 'application/json', notifierInfo })
    expect(subscriptions.list({ limit: 10, offset: 0, followers: true }).count).toBe(1)
    await open.broker.create(
      { id: 'urn:x:1', type: 'T', a: { type: 'Property', value: 1 } } as Entity,
      'http',
    )
    expect(open.announced).toEqual([])
    await made('urn:x:notified', { uri: 'http://x/2', accept: 'application/json' })
    await open.broker.create(
      { id: 'urn:x:2', type: 'T', a: { type: 'Property', value: 1 } } as Entity,
      'http',
    )
    expect(open.announced).toHaveLength(1)
  } finally {
    await open.close()
    temporary.remove()
  }
})
