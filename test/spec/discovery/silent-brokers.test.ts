/** A registered broker that answers but cannot notify: it refuses to send to loopback addresses. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { iri, stream } from './site.ts'

setLimit('followCheckMs', 1000)
setLimit('followMissedMs', 2000)
const folder = mkdtempSync(join(tmpdir(), 'selvedge-silent-'))
const patience = { interval: 200 }
const address = ({ httpPort }: GatewayInside): string => `http://127.0.0.1:${httpPort}`
const startBroker = (port: string, allowsLoopback: boolean): Promise<GatewayInside> =>
  startGatewayInside(join(folder, 'broker'), {
    SELVEDGE_HTTP_PORT: port,
    SELVEDGE_INDEXING_ENABLED: 'false',
    SELVEDGE_RANKING_ENABLED: 'false',
    SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: String(allowsLoopback),
  })
let index: GatewayInside
let broker: GatewayInside
beforeAll(async () => {
  ;[index, broker] = await Promise.all([startGatewayInside(join(folder, 'index')), startBroker('0', false)])
})
afterAll(async () => {
  await Promise.all([index.close(), broker.close()])
  rmSync(folder, { recursive: true, force: true })
})

const registration = async (): Promise<Record<string, unknown> | undefined> =>
  ((await index.get('/indexing/api/broker')).json() as { result: Record<string, unknown>[] }).result.find(
    ({ host }) => host === address(broker),
  )
const query = `/indexing/ngsi-ld/v1/entities?type=${encodeURIComponent(iri.IotStream)}`
const warning = async (): Promise<unknown> => (await index.get(query)).headers['ngsild-warning']
const degraded = async (): Promise<string> => (await index.get('/health/ready')).text

it('is reported with the setting to change, and its entries count as stale', async () => {
  await vi.waitFor(async () => {
    const made = await index.send('POST', '/indexing/api/broker', { host: address(broker) })
    expect([201, 409]).toContain(made.status)
  }, patience)
  await vi.waitFor(
    async () => expect(await registration()).toMatchObject({ state: 'following', isAged: false }),
    patience,
  )
  expect(await warning()).toBeUndefined()
  expect((await broker.send('POST', '/ngsi-ld/v1/entities', stream(1))).status).toBe(201)
  await vi.waitFor(async () => expect(await registration()).toMatchObject({ isAged: true }), patience)
  const reason = `it cannot notify this gateway at ${address(index)}/indexing; set indexing.callbackUrl`
  const { heardAt, ...rest } = (await registration())!
  expect(rest).toMatchObject({
    state: 'following',
    reason,
    notifications: 0,
    undeliveredAt: expect.any(String),
  })
  expect(await warning()).toMatch(
    /^110 127\.0\.0\.1:\d+ ".* is silent: it cannot notify .*its entries are as of /,
  )
  expect(await degraded()).toContain(reason)
  // The time of its last known state does not advance.
  await new Promise((resolve) => setTimeout(resolve, 2500))
  expect((await registration())!['heardAt']).toBe(heardAt)
})

it('recovers when a notification arrives', async () => {
  const port = String(broker.httpPort)
  await broker.close()
  broker = await startBroker(port, true)
  await broker.send('POST', '/ngsi-ld/v1/entities', stream(2))
  await vi.waitFor(async () => {
    const now = await registration()
    expect(now).toMatchObject({ state: 'following', isAged: false })
    expect(now).not.toHaveProperty('reason')
    expect(now).not.toHaveProperty('undeliveredAt')
  }, patience)
  expect(await warning()).toBeUndefined()
  expect(await degraded()).not.toContain('callbackUrl')
  expect((await index.get(query)).json()).toHaveLength(2)
})
