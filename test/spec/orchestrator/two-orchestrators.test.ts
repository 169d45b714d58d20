/** Two orchestrators whose brokers and addresses for notifications are each other: each request ends, with an error. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { freePort } from '#test/kit/ports.ts'
import { patience } from './application-site.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-two-orchestrators-'))
const ports = [await freePort(), await freePort()] as const
const headers = { 'Content-Type': 'application/json' }
const gateways: GatewayInside[] = []

beforeAll(async () => {
  for (const [i, port] of ports.entries()) {
    const other = `http://127.0.0.1:${ports[1 - i]}/orchestrator`
    gateways.push(
      await startGatewayInside(join(folder, `${i}`), {
        SELVEDGE_HTTP_PORT: `${port}`,
        SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
        NGSILD_BROKER_URL: other,
        HTTP_REFERENCE_URL: `${other}/notify`,
      }),
    )
  }
  for (const gateway of gateways)
    await vi.waitFor(async () => {
      expect((await gateway.get('/orchestrator/version')).status).toBe(200)
    }, patience)
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

it.each([
  ['GET', 'entities?type=Tank', undefined],
  ['GET', 'subscriptions', undefined],
  ['POST', 'entities', { id: 'urn:x:1', type: 'Tank' }],
  ['POST', 'subscriptions', { type: 'Subscription', entities: [{ type: 'Tank' }] }],
] as const)('%s %s', async (method, path, body) => {
  for (const gateway of gateways) {
    const more = body === undefined ? {} : { body }
    const answer = await gateway.ask(method, `/orchestrator/ngsi-ld/v1/${path}`, { headers, ...more })
    expect([answer.status, answer.text]).toEqual([508, expect.any(String)])
    const plugins = (await gateway.get('/selvedge/v1/plugins')).json() as {
      orchestrator: { notifications: { subscriptions: number } }
    }
    expect(plugins.orchestrator.notifications.subscriptions).toBe(0)
  }
})
