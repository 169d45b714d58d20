/**
 * The orchestrator in front of another Selvedge: subscriptions of a tenant, restored when that broker lost them, and
 * subscriptions that lead back to the orchestrator.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type ApplicationMessage,
  openNotificationClient,
} from '#examples/orchestrator/notification-client.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freePort } from '#test/kit/ports.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-remote-broker-'))
const subscriptions = '/ngsi-ld/v1/subscriptions'
const city = { 'NGSILD-Tenant': 'city' }
let broker: GatewayInside
let front: GatewayInside

const frontOf = (name: string, url: string, env: Readonly<Record<string, string>> = {}) =>
  startGatewayInside(join(folder, name), { ...noPlugins, NGSILD_BROKER_URL: url, ...env })
const write = async (level: number, headers: Readonly<Record<string, string>>): Promise<void> => {
  const body = { id: 'urn:x:tank', type: 'Tank', level: { type: 'Property', value: level } }
  const answer = await front.send('POST', '/orchestrator/ngsi-ld/v1/entityOperations/upsert', [body], headers)
  expect([201, 204]).toContain(answer.status)
}
const subscribe = (to: GatewayInside, headers: Readonly<Record<string, string>> = {}, endpoint?: object) =>
  to.send(
    'POST',
    `/orchestrator${subscriptions}`,
    {
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      ...(endpoint === undefined ? {} : { notification: { endpoint } }),
    },
    headers,
  )
const subscriptionsOf = async (of: GatewayInside) => {
  const plugins = (await of.get('/selvedge/v1/plugins')).json() as {
    orchestrator: { notifications: { subscriptions: number; waiting: number } }
  }
  return plugins.orchestrator.notifications
}

beforeAll(async () => {
  setLimit('orchestratorCheckMs', 200)
  broker = await startGatewayInside(join(folder, 'broker'), {
    ...noPlugins,
    SELVEDGE_ORCHESTRATOR_ENABLED: 'false',
  })
  front = await frontOf('front', `http://127.0.0.1:${broker.httpPort}`)
})
afterAll(async () => {
  await front?.close()
  await broker?.close()
  rmSync(folder, { recursive: true, force: true })
})

it('serves a tenant of another broker, and restores a subscription that this broker lost', async () => {
  const received: ApplicationMessage[] = []
  const client = openNotificationClient({
    orchestrator: `http://127.0.0.1:${front.httpPort}/orchestrator`,
    client: 'app',
    tenant: 'city',
    subscription: { type: 'Subscription', entities: [{ type: 'Tank' }] },
    onNotification: (notification) => void received.push(notification),
  })
  const levels = () => received.map(({ data }) => levelOf(data))
  const id = await client.subscribed
  expect((await subscribe(front, { 'Selvedge-Client': 'app' })).text).not.toBe(id)
  await write(1, {})
  await write(2, city)
  await expect.poll(levels, patience).toEqual([2])
  const atBroker = async () => (await broker.get(`${subscriptions}/${id}`, city)).status
  expect((await broker.ask('DELETE', `${subscriptions}/${id}`, { headers: city })).status).toBe(204)
  await expect.poll(atBroker, patience).toBe(200)
  await write(3, city)
  await expect.poll(levels, patience).toEqual([2, 3])
  const elsewhere = await front.ask('DELETE', `/orchestrator${subscriptions}/${id}`, {
    headers: { 'Selvedge-Client': 'app' },
  })
  expect(elsewhere.status).toBe(404)
  await client.unsubscribe()
  expect(await atBroker()).toBe(404)
})

it('rejects notifications of a subscription that names the address of another one', async () => {
  const own = { ...city, 'Selvedge-Client': 'b' }
  const { text: id } = await subscribe(front, own)
  const { notification } = (await broker.get(`${subscriptions}/${id}`, city)).json() as {
    notification: { endpoint: { uri: string } }
  }
  const other = await subscribe(front, own, { uri: notification.endpoint.uri })
  expect(other.status).toBe(201)
  const location = `${subscriptions}/${other.headers['location']!.split('/').at(-1)}`
  const { waiting } = await subscriptionsOf(front)
  await write(4, city)
  const failures = async () => {
    const shown = (await broker.get(location, city)).json() as { notification: { timesFailed?: number } }
    return shown.notification.timesFailed ?? 0
  }
  await expect.poll(failures, patience).toBeGreaterThan(0)
  await expect.poll(async () => (await subscriptionsOf(front)).waiting, patience).toBe(waiting + 1)
  expect((await broker.ask('DELETE', location, { headers: city })).status).toBe(204)
  expect((await front.ask('DELETE', `/orchestrator${subscriptions}/${id}`, { headers: own })).status).toBe(
    204,
  )
})

it('refuses subscriptions while its broker is the orchestrator itself, and keeps nothing', async () => {
  const port = await freePort()
  const loop = await frontOf('loop', `http://127.0.0.1:${port}`, { SELVEDGE_ORCHESTRATOR_PORT: `${port}` })
  try {
    const answer = await subscribe(loop)
    expect([answer.status, answer.json()]).toMatchObject([508, { title: 'Loop Detected' }])
    expect((await subscriptionsOf(loop)).subscriptions).toBe(0)
  } finally {
    await loop.close()
  }
})

function levelOf(data: unknown): unknown {
  const [tank] = data as Readonly<Record<string, { value?: unknown }>>[]
  return Object.entries(tank!).find(([name]) => name.endsWith('level'))?.[1].value
}
