/**
 * Subscriptions of applications: shared by clients that ask for the same, stored through restarts, and restored at
 * a broker that lost them. Notifications for them are checked before they are stored.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-orchestrator-'))
const env = { SELVEDGE_ORCHESTRATOR_PORT: '0' }
const path = '/orchestrator/ngsi-ld/v1/subscriptions'
const watched = {
  type: 'Subscription',
  entities: [{ id: 'urn:ngsi-ld:StreamObservation:a', type: 'StreamObservation' }],
  watchedAttributes: ['hasSimpleResult'],
}
let gateway: GatewayInside

/** Starts the gateway, and waits for the orchestrator. */
async function start(): Promise<void> {
  gateway = await startGatewayInside(folder, env)
  await vi.waitFor(async () => {
    expect((await gateway.get('/orchestrator/version')).status).toBe(200)
  }, patience)
}

const as = (client: string) => ({ 'Selvedge-Client': client })
const post = (body: object, headers: Readonly<Record<string, string>> = as('a')) =>
  gateway.ask('POST', path, { body, headers: { 'Content-Type': 'application/json', ...headers } })
const end = async (id: string, client = 'a') =>
  (await gateway.ask('DELETE', `${path}/${id}`, { headers: as(client) })).status
/** The subscription at the broker. */
const atBroker = (id: string) => gateway.get(`/ngsi-ld/v1/subscriptions/${id}`)
const addressOf = async (id: string): Promise<string> => {
  const { notification } = (await atBroker(id)).json() as { notification: { endpoint: { uri: string } } }
  return notification.endpoint.uri
}
const notify = async (address: string, body: unknown) => {
  const url = new URL(address)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return gateway.ask('POST', `/orchestrator${url.pathname}`, {
    body: text,
    headers: { 'Content-Type': 'application/json' },
  })
}
const waiting = async (): Promise<number> => {
  const plugins = (await gateway.get('/selvedge/v1/plugins')).json() as {
    orchestrator: { notifications: { waiting: number } }
  }
  return plugins.orchestrator.notifications.waiting
}

beforeAll(async () => {
  setLimit('orchestratorCheckMs', 200)
  await start()
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

it.each(['application/json', 'application/ld+json'])(
  'answers 200 with the bare id, without @context as %s',
  async (type) => {
    const [first, again] = [await post(watched, { ...as('a'), 'Content-Type': type }), await post(watched)]
    const id = first.text
    expect([first.status, first.headers['content-type'], again.status, again.text]).toEqual([
      200,
      expect.stringMatching(/^text\/plain/),
      200,
      id,
    ])
    expect((await gateway.get(`${path}/${id}/`)).status).toBe(200)
    expect((await atBroker(id)).json()).toMatchObject({
      entities: [{ type: expect.stringMatching(/StreamObservation$/) }],
    })
    expect(await end(id)).toBe(204)
    expect((await gateway.get(`${path}/${id}/`)).status).toBe(404)
  },
)

it('is shared by clients that ask for the same; the last one deletes it', async () => {
  const { text: id } = await post(watched)
  expect([(await post(watched)).text, (await post(watched, as('b'))).text]).toEqual([id, id])
  expect((await post({ ...watched, q: 'hasSimpleResult>1' }, as('b'))).text).not.toBe(id)
  expect(await end(id, 'c')).toBe(404)
  expect([await end(id), await end(id)]).toEqual([204, 404])
  expect((await atBroker(id)).status).toBe(200)
  expect(await end(id, 'b')).toBe(204)
  expect((await atBroker(id)).status).toBe(404)
})

it('passes a subscription with an address unchanged', async () => {
  const endpoint = { uri: 'http://127.0.0.1:9/received', accept: 'application/json' }
  const made = await post({ ...watched, notification: { endpoint } })
  expect([made.status, made.headers['location']]).toEqual([201, expect.stringContaining('/subscriptions/')])
  const id = made.headers['location']!.split('/').at(-1)!
  expect((await atBroker(id)).json()).toMatchObject({ notification: { endpoint } })
  expect(await end(id)).toBe(204)
})

it('passes on what the broker rejects, and keeps nothing of it', async () => {
  const rejected = await post({ ...watched, timeInterval: -1 })
  expect([rejected.status, rejected.json()]).toEqual([
    400,
    expect.objectContaining({ detail: expect.stringContaining('timeInterval') }),
  ])
  expect((await post({ ...watched, id: 'not a uri' })).status).toBe(400)
  expect((await post({ ...watched, id: `urn:${'x'.repeat(300)}` })).json()).toMatchObject({
    detail: expect.stringContaining('200 bytes'),
  })
})

it('restores a subscription that the broker lost, and has it after a restart', async () => {
  const { text: id } = await post(watched)
  await gateway.ask('DELETE', `/ngsi-ld/v1/subscriptions/${id}`)
  await expect.poll(async () => (await atBroker(id)).status, patience).toBe(200)
  await gateway.close()
  await start()
  expect((await post(watched, as('b'))).text).toBe(id)
  expect([await end(id), await end(id, 'b')]).toEqual([204, 204])
})

it('acknowledges a notification that is stored, and explains what it rejects', async () => {
  const { text: id } = await post(watched)
  const address = await addressOf(id)
  const notification = { id: 'urn:n:1', type: 'Notification', subscriptionId: id, data: [{ id: 'urn:a' }] }
  const before = await waiting()
  const taken = await notify(address, notification)
  expect([taken.status, taken.text]).toEqual([200, 'Received: urn:n:1'])
  expect(await waiting()).toBe(before + 1)
  const statuses: number[] = []
  for (const [to, body] of [
    [`${address}x`, notification],
    [address.replace(/\/[^/]*$/, ''), notification],
    [address, 'not JSON'],
    [address, { type: 'Vehicle', id: 'urn:v' }],
    [address, { ...notification, data: 'x' }],
    [address, { ...notification, subscriptionId: 'urn:other' }],
    [address, { ...notification, data: ['x'.repeat(3_000_000)] }],
  ] as const)
    statuses.push((await notify(to, body)).status)
  expect(statuses).toEqual([401, 401, 400, 400, 400, 404, 413])
  expect(await waiting()).toBe(before + 1)
  await end(id)
  expect(await waiting()).toBe(before)
  expect((await notify(address, notification)).status).toBe(401)
})
