/**
 * A gateway killed right after the first requests of a new uplink does not consider sent data unsent when it
 * restarts.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { createLesserBroker, type LesserBroker } from '#test/kit/lesser-broker.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const v1 = '/ngsi-ld/v1'
const tank = 'urn:tank:1'
const withinMs = { interval: 100 }
const failing: Record<string, 'lost'> = {}
let folder: string
let site: GatewayProcess
let centre: GatewayInside
let broker: LesserBroker

const startSite = () => startGatewayProcess({ dataFolder: join(folder, 'site') })

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-first-'))
  ;[site, centre] = await Promise.all([startSite(), startGatewayInside(join(folder, 'centre'))])
  broker = await createLesserBroker(centre.httpPort!, failing)
})
afterEach(async () => {
  await Promise.all([site.stop(), broker.close(), centre.close()])
  rmSync(folder, { recursive: true })
})

const property = (value: unknown): object => ({ type: 'Property', value })
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await httpClient(site.httpUrl).send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const there = async (): Promise<object> =>
  (await centre.get(`${v1}/entities/${tank}?options=keyValues`)).json()

it('sends a re-created entity without attributes of its earlier life', async () => {
  failing[`${v1}/entityOperations`] = 'lost'
  await send('POST', `${v1}/entities`, { id: tank, type: 'Tank', label: property('old'), level: property(1) })
  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: {
      endpoint: { uri: `${broker.url}${v1}`, notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }] },
    },
  })
  await vi.waitFor(async () => expect(await there()).toMatchObject({ label: 'old' }), withinMs)
  await send('DELETE', `${v1}/entities/${tank}`)
  await send('POST', `${v1}/entities`, { id: tank, type: 'Tank', level: property(2) })
  await site.kill()
  delete failing[`${v1}/entityOperations`]
  site = await startSite()
  await vi.waitFor(async () => expect(await there()).toEqual({ id: tank, type: 'Tank', level: 2 }), withinMs)
})
