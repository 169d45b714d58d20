/**
 * The rights of clients: another broker is asked before a request is answered without it. Changes: a broker that
 * refuses them gets the whole subscription again.
 */
import { describe, expect, it } from 'vitest'
import type { BrokerPort } from '#contract'
import { createSubscribedBroker } from './subscribed-broker.ts'

const subscription = { id: 'urn:s:1', tenant: '' }
const of = (token: string) => ({ authorization: `Bearer ${token}` })

/** A broker that accepts one token, and may be away. */
function createSite({ hasRights }: { readonly hasRights: boolean }) {
  let time = 0
  let asked = 0
  let isAway = false
  const port = {
    address: 'http://broker',
    async exchange({ headers }) {
      asked++
      if (isAway) return { failure: 'unreachable', reason: 'connection refused' }
      return { status: headers?.['authorization'] === 'Bearer good' ? 200 : 401, headers: {}, text: '{}' }
    },
  } as BrokerPort
  return {
    broker: createSubscribedBroker(port, { hasRights, monotonic: () => time }),
    asked: () => asked,
    wait(ms: number) {
      time += ms
    },
    away() {
      isAway = true
    },
  }
}

describe('rights of a client at another broker', () => {
  it('are those that the broker grants, and are asked once a minute', async () => {
    const { broker, asked, wait } = createSite({ hasRights: true })
    await expect(broker.checkRights(subscription, of('forged'))).rejects.toThrow('401')
    await expect(broker.checkRights(subscription, {})).rejects.toThrow('401')
    await broker.checkRights(subscription, of('good'))
    wait(59_000)
    await broker.checkRights(subscription, of('good'))
    expect(asked()).toBe(3)
    wait(2000)
    await broker.checkRights(subscription, of('good'))
    expect(asked()).toBe(4)
    await expect(broker.checkRights({ ...subscription, id: 'urn:s:2' }, of('forged'))).rejects.toThrow('401')
  })

  it('stay while the broker is away, and only those that it granted before', async () => {
    const { broker, wait, away } = createSite({ hasRights: true })
    await broker.checkRights(subscription, of('good'))
    wait(3_600_000)
    away()
    await broker.checkRights(subscription, of('good'))
    await expect(broker.checkRights(subscription, of('forged'))).rejects.toThrow('connection refused')
  })

  it('are not asked of a broker within the gateway, whose listener checks them', async () => {
    const { broker, asked } = createSite({ hasRights: false })
    await broker.checkRights(subscription, {})
    expect(asked()).toBe(0)
  })
})

it.each([
  ['accepts a change', 204, ['PATCH']],
  ['refuses changes', 405, ['PATCH', 'DELETE', 'POST']],
])('a subscription at a broker that %s', async (_, patched, expected) => {
  const requests: string[] = []
  const statuses: Readonly<Record<string, number>> = { PATCH: patched, DELETE: 204, POST: 201 }
  const port = {
    address: 'http://broker',
    async exchange({ method, body }) {
      requests.push(method)
      if (body !== undefined)
        expect(JSON.parse(body.toString())).toMatchObject({ entities: [{ id: 'urn:a' }] })
      return { status: statuses[method], headers: {}, text: '' }
    },
  } as BrokerPort
  const broker = createSubscribedBroker(port, { hasRights: true, monotonic: () => 0 })
  await broker.change(subscription, { type: 'Subscription', entities: [{ id: 'urn:a', type: 'A' }] })
  expect(requests).toEqual(expected)
})
