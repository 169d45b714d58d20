/**
 * Refused changes are retried in turns of the live lane: neither overtakes the other, so no older value
 * replaces a newer one. The other broker is a real server with delayed responses.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const v1 = '/ngsi-ld/v1'
const withinMs = { interval: 50 }
const tank = 'urn:tank:1'

let folder: string
let site: GatewayInside
let broker: Server
/** Current values in the order in which they were stored. */
let stood: number[]
let accepts: boolean
let isDown: boolean
/** Delays the response to the next value, which is stored when it is called. */
let hold: ((stand: () => void) => void) | undefined

const levelIn = (body: string): number => (JSON.parse(body) as { level: { value: number } }[])[0]!.level.value

function take(body: string, response: ServerResponse): void {
  const stand = (): void => {
    stood.push(levelIn(body))
    response.writeHead(204).end()
  }
  const keep = hold
  hold = undefined
  if (keep === undefined) stand()
  else keep(stand)
}

beforeEach(async () => {
  // Two changes are sent in two turns.
  setLimit('uplinkRowsPerTurn', 1)
  ;[stood, accepts, isDown, hold] = [[], false, false, undefined]
  folder = mkdtempSync(join(tmpdir(), 'selvedge-retries-'))
  site = await startGatewayInside(folder)
  broker = createServer((incoming, response) => void answer(incoming, response))
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = incoming
    const body = await text(incoming)
    if (isDown) response.writeHead(503).end()
    else if (method === 'GET' && url.includes('/entities?')) response.end('[]')
    else if (!url.includes('/upsert')) response.writeHead(404).end()
    else if (accepts) take(body, response)
    else response.writeHead(400, { 'content-type': 'application/json' }).end('{"title":"not now"}')
  }
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  restoreLimits()
  await site.close()
  broker.closeAllConnections()
  broker.close()
  rmSync(folder, { recursive: true })
})

const level = (value: number): object => ({
  level: { type: 'Property', value, observedAt: `2026-01-01T00:00:0${value}Z` },
})
const send = async (method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await site.send(method, path, body)
  if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
}
const observe = (value: number): Promise<void> => send('PATCH', `${v1}/entities/${tank}/attrs`, level(value))
const queued = async (): Promise<readonly string[]> => {
  const { items }: { items: readonly { id: string }[] } = (await site.get('/selvedge/v1/queue')).json()
  return items.map(({ id }) => id)
}

/** Creates an uplink to the broker, which refuses the first value. Returns the queue then. */
async function refusedFirst(): Promise<string> {
  const { port } = broker.address() as AddressInfo
  const notifierInfo = [{ key: 'selvedge:mode', value: 'uplink' }]
  await send('POST', `${v1}/subscriptions`, {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'Tank' }],
    notification: { endpoint: { uri: `http://127.0.0.1:${port}${v1}`, notifierInfo } },
  })
  // A new uplink sends everything, besides new changes: single values must be sent once.
  await vi.waitFor(async () => {
    expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
  }, withinMs)
  await send('POST', `${v1}/entities`, { id: tank, type: 'Tank', ...level(1) })
  return refusal()
}
const refusal = (): Promise<string> =>
  vi.waitFor(async () => {
    const [found] = await queued()
    expect(found).toBeDefined()
    return found!
  }, withinMs)

it('a retry and live changes wait for each other', async () => {
  const refused = await refusedFirst()
  accepts = true
  await observe(2)
  await vi.waitFor(() => expect(stood).toEqual([2]), withinMs)

  const held = new Promise<() => void>((resolve) => (hold = resolve))
  const retry = site.send('POST', `/selvedge/v1/queue/${refused}/retry`, undefined)
  const stand = await held
  await observe(3)
  // A live change would take a fraction of this.
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(stood).toEqual([2])
  stand()
  expect((await retry).status).toBe(204)
  await vi.waitFor(() => expect(stood).toEqual([2, 2, 3]), withinMs)

  // In the other order the retry sends the current value, which is not sent live again after a newer one.
  accepts = false
  await observe(4)
  const again = await refusal()
  accepts = true
  const heldLive = new Promise<() => void>((resolve) => (hold = resolve))
  await observe(5)
  const standLive = await heldLive
  await observe(6)
  await observe(7)
  const second = site.send('POST', `/selvedge/v1/queue/${again}/retry`, undefined)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(stood).toEqual([2, 2, 3])
  standLive()
  expect((await second).status).toBe(204)
  await vi.waitFor(() => expect(stood.at(-1)).toBe(7), withinMs)
  // The live lane has passed its changes when this is stored.
  await observe(8)
  await vi.waitFor(() => expect(stood.at(-1)).toBe(8), withinMs)
  expect(stood).toEqual(stood.toSorted((a, b) => a - b))
  expect(await queued()).toEqual([])
})

it('a retry fails at once while nothing can be sent', async () => {
  const refused = await refusedFirst()
  accepts = true
  // A live request is in progress when the broker stops.
  const held = new Promise<() => void>((resolve) => (hold = resolve))
  await observe(2)
  await held
  const retry = site.send('POST', `/selvedge/v1/queue/${refused}/retry`, undefined)
  await new Promise<void>((resolve) => setTimeout(resolve, 200))
  broker.close()
  broker.closeAllConnections()
  const answer = await retry
  expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('cannot send now')])
  expect(await queued()).toEqual([refused])
})

it('an abandoned retry sends nothing later', async () => {
  setLimit('uplinkBehindMs', 300)
  const refused = await refusedFirst()
  accepts = true
  const held = new Promise<() => void>((resolve) => (hold = resolve))
  await observe(2)
  const stand = await held
  await observe(3)
  const retry = site.send('POST', `/selvedge/v1/queue/${refused}/retry`, undefined)
  await new Promise((resolve) => setTimeout(resolve, 200))
  isDown = true
  stand()
  expect((await retry).status).toBe(502)
  await send('DELETE', `${v1}/entities/${tank}`)
  await new Promise((resolve) => setTimeout(resolve, 500))
  isDown = false
  await vi.waitFor(async () => {
    expect((await site.get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({ state: 'live' })
  }, withinMs)
  await send('POST', `${v1}/entities`, { id: 'urn:tank:2', type: 'Tank', ...level(9) })
  await vi.waitFor(() => expect(stood.at(-1)).toBe(9), withinMs)
  expect(stood).toEqual([2, 9])
})
