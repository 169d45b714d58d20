/** The example client of docs/examples/orchestrator without RabbitMQ: it receives Server-Sent Events. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type ApplicationMessage,
  openNotificationClient,
} from '#examples/orchestrator/notification-client.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freePort } from '#test/kit/ports.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-application-events-'))
const port = await freePort()
const entity = 'urn:ngsi-ld:Tank:1'
let gateway: GatewayInside

const start = () => startGatewayInside(folder, { SELVEDGE_HTTP_PORT: `${port}` })
const write = async (level: number): Promise<void> => {
  const body = { level: { type: 'Property', value: level } }
  expect((await gateway.send('POST', `/ngsi-ld/v1/entities/${entity}/attrs`, body)).status).toBe(204)
}
const waiting = async (): Promise<number> => {
  const plugins = (await gateway.get('/selvedge/v1/plugins')).json() as {
    orchestrator: { notifications: { waiting: number } }
  }
  return plugins.orchestrator.notifications.waiting
}

beforeAll(async () => {
  gateway = await start()
  const level = { type: 'Property', value: 0 }
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id: entity, type: 'Tank', level })
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

it('passes each notification on once, confirms it, and continues after a restart of the gateway', async () => {
  const received: ApplicationMessage[] = []
  let refusals = 0
  const client = openNotificationClient({
    orchestrator: `http://127.0.0.1:${port}/orchestrator`,
    client: 'dashboard',
    subscription: { type: 'Subscription', entities: [{ id: entity, type: 'Tank' }] },
    onNotification(notification) {
      if (levelOf(notification) === 2 && refusals++ === 0) throw new Error('the application is busy')
      received.push(notification)
    },
  })
  const levels = () => received.map(levelOf)
  const id = await client.subscribed
  await write(1)
  await write(2)
  await expect.poll(levels, patience).toEqual([1, 2])
  expect(refusals).toBe(2)
  await expect.poll(waiting, patience).toBe(0)
  await gateway.close()
  gateway = await start()
  await write(3)
  await expect.poll(levels, patience).toEqual([1, 2, 3])
  await client.unsubscribe()
  expect((await gateway.get(`/ngsi-ld/v1/subscriptions/${id}`)).status).toBe(404)
})

/** The level of the tank in a notification. */
function levelOf({ data }: ApplicationMessage): unknown {
  const [tank] = data as Readonly<Record<string, { value?: unknown }>>[]
  return Object.entries(tank!).find(([name]) => name.endsWith('level'))?.[1].value
}
