/** Which notifications of a broker are stored. */
import { afterEach, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { createReceipt } from './receipt.ts'

afterEach(restoreLimits)

const subscription = 'urn:ngsi-ld:Subscription:1'
const notification = { id: 'urn:n:1', type: 'Notification', subscriptionId: subscription, data: [] }

function open() {
  const stored: string[] = []
  let received = 0
  const receipt = createReceipt({
    subscriptions: {
      ofSecret: (given) => (given === 'secret' ? ({ id: subscription } as never) : undefined),
    },
    outbox: { append: async (id, body) => void stored.push(`${id} ${body}`) },
    received: () => received++,
  })
  const send = (body: unknown, secret = 'secret') =>
    receipt.receive(secret, async () => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
  return { send, stored, received: () => received }
}

it('stores a notification with the secret of its subscription', async () => {
  const { send, stored, received } = open()
  expect(await send(notification)).toBe('urn:n:1')
  expect(stored).toEqual([`${subscription} ${JSON.stringify(notification)}`])
  expect(received()).toBe(1)
})

it.each([
  ['no JSON', '{', 'ngsi-ld.invalid-request'],
  ['another type', { ...notification, type: 'Subscription' }, 'ngsi-ld.bad-request-data'],
  ['no id', { ...notification, id: undefined }, 'ngsi-ld.bad-request-data'],
  ['no data', { ...notification, data: null }, 'ngsi-ld.bad-request-data'],
  ['another subscription', { ...notification, subscriptionId: 'urn:s:2' }, 'ngsi-ld.not-found'],
])('rejects a body with %s', async (_, body, code) => {
  const { send, stored, received } = open()
  await expect(send(body)).rejects.toMatchObject({ code })
  expect([stored, received()]).toEqual([[], 0])
})

it('rejects another secret, and a body that is too large', async () => {
  const { send, stored } = open()
  await expect(send(notification, 'other')).rejects.toMatchObject({ code: 'http.unauthorized' })
  setLimit('orchestratorNotificationBytes', 50)
  await expect(send(notification)).rejects.toMatchObject({ code: 'http.body-too-large' })
  expect(stored).toEqual([])
})
