/**
 * Gateways with uplinks to each other: all hold the same data and nothing circulates. Traffic ends by itself,
 * equal values are not sent on, and no older value replaces a newer one.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const entities = '/ngsi-ld/v1/entities'
const at = (n: number): string => new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')
const withinMs = { interval: 100 }

describe('gateways with uplinks to each other', () => {
  let folders: string
  let ring: GatewayInside[]

  const send = async (to: GatewayInside, method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await to.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const feed = (from: GatewayInside, to: GatewayInside, id: string): Promise<void> =>
    send(from, 'POST', '/ngsi-ld/v1/subscriptions', {
      id,
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: {
          uri: `http://127.0.0.1:${to.httpPort}/ngsi-ld/v1`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })
  const tanks = async (of: GatewayInside): Promise<readonly { id: string }[]> => {
    const all: { id: string }[] = (await of.get(`${entities}?type=Tank&limit=1000`)).json()
    return all.toSorted((a, b) => a.id.localeCompare(b.id))
  }
  const history = async (of: GatewayInside): Promise<unknown> =>
    (await of.get('/ngsi-ld/v1/temporal/entities/urn:tank:1?attrs=level&options=temporalValues')).json()
  /** Requests handled so far, by the counter of the gateway. */
  const requests = async (of: GatewayInside): Promise<number> => {
    const { text } = await of.get('/metrics')
    return Number(/^selvedge_http_requests_total (\d+)/m.exec(text)?.[1])
  }
  const expectSame = (): Promise<void> =>
    vi.waitFor(async () => {
      const [first] = ring
      for (const other of ring.slice(1)) {
        expect(await tanks(other)).toEqual(await tanks(first!))
        expect(await history(other)).toEqual(await history(first!))
      }
    }, withinMs)
  /** No requests for a second, except for this test's. */
  const expectQuiet = (): Promise<void> =>
    vi.waitFor(async () => {
      const before = await Promise.all(ring.map(requests))
      await new Promise((resolve) => setTimeout(resolve, 1000))
      const after = await Promise.all(ring.map(requests))
      expect(after.map((n, i) => n - before[i]!)).toEqual(ring.map(() => 1))
    }, withinMs)
  const level = (value: number): object => ({ type: 'Property', value, observedAt: at(value) })
  const start = async (count: number): Promise<void> => {
    ring = await Promise.all(
      Array.from({ length: count }, (_, i) => startGatewayInside(join(folders, String(i)))),
    )
    for (const [i, one] of ring.entries()) await feed(one, ring[(i + 1) % count]!, `urn:up:${i}`)
  }

  beforeEach(() => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-loops-'))
  })
  afterEach(async () => {
    await Promise.all(ring.map((one) => one.close()))
    rmSync(folders, { recursive: true })
  })

  it.each([2, 3])('exchange everything and then are quiet: %i gateways', async (count) => {
    await start(count)
    const [first, second] = ring as [GatewayInside, GatewayInside]
    const name = { type: 'Property', value: 'main' }
    await send(first, 'POST', entities, { id: 'urn:tank:1', type: 'Tank', level: level(1), name })
    await send(second, 'POST', entities, { id: 'urn:tank:2', type: 'Tank', name })
    await expectSame()
    // Written as fast as possible: values that return meanwhile are older than the local ones.
    for (let n = 2; n <= 60; n++)
      await send(first, 'PATCH', `${entities}/urn:tank:1/attrs`, { level: level(n) })
    for (let n = 1; n <= 10; n++)
      await send(first, 'PATCH', `${entities}/urn:tank:1/attrs`, { name: { type: 'Property', value: n } })
    await expectSame()
    await expectQuiet()
    expect((await first.get(`${entities}/urn:tank:1`)).json()).toMatchObject({
      level: level(60),
      name: { value: 10 },
    })

    // Equal values, written at another gateway than their origin.
    const equal = [
      { id: 'urn:tank:1', type: 'Tank', level: level(60), name: { type: 'Property', value: 10 } },
    ]
    await send(second, 'POST', '/ngsi-ld/v1/entityOperations/upsert?options=update', equal)
    await send(second, 'PATCH', `${entities}/urn:tank:1/attrs`, {
      name: { type: 'Property', value: 'other' },
    })
    await send(first, 'DELETE', `${entities}/urn:tank:1/attrs/level`)
    await send(second, 'DELETE', `${entities}/urn:tank:2`)
    await expectSame()
    await expectQuiet()
    expect(await tanks(first)).toEqual([
      { id: 'urn:tank:1', type: 'Tank', name: { type: 'Property', value: 'other' } },
    ])
  })

  it('refuse a change that returns to its origin', async () => {
    await start(1)
    const [one] = ring as [GatewayInside]
    const { contextSourceAlias } = (await one.get('/ngsi-ld/v1/info/sourceIdentity')).json() as {
      contextSourceAlias: string
    }
    const via = { via: `1.1 elsewhere, 1.1 ${contextSourceAlias}` }
    const answer = await one.send('POST', entities, { id: 'urn:tank:1', type: 'Tank' }, via)
    expect(answer.status).toBe(508)
    expect((await one.get(`${entities}/urn:tank:1`)).status).toBe(404)
  })
})

/** A broker that accepts everything, and does not detect repeated requests. */
async function createEasyBroker(alias: string) {
  let told = ''
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { method, url = '' } = request
      if (method === 'GET') {
        const isAsked = url.endsWith('/info/sourceIdentity')
        const isList = url.includes('/entities?')
        response.writeHead(isAsked || isList ? 200 : 404, { 'content-type': 'application/json' })
        response.end(isList ? '[]' : JSON.stringify(isAsked ? { contextSourceAlias: alias } : {}))
        return
      }
      const bytes = Buffer.concat(parts)
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
      told += `${method} ${decodeURIComponent(url)} ${body.toString()}\n`
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    httpPort: (server.address() as AddressInfo).port,
    told: () => told,
    close() {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

describe('data that came from a broker', () => {
  let folder: string
  let gateway: GatewayInside
  let centre: Awaited<ReturnType<typeof createEasyBroker>>
  const via = { via: '1.1 centre' }
  const send = async (method: string, path: string, body?: unknown, headers = {}): Promise<void> => {
    const answer = await gateway.send(method, path, body, headers)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const level = (value: number): object => ({ type: 'Property', value, observedAt: at(value) })
  const label = (value: string): object => ({ type: 'Property', value })
  /** Later in the log than everything before, so it is sent last. */
  const marked = async (n: number): Promise<void> => {
    await send('PATCH', `${entities}/urn:tank:ours/attrs`, { mark: label(`mark ${n}`) })
    await vi.waitFor(() => expect(centre.told()).toContain(`mark ${n}`), withinMs)
  }
  const subscribe = (): Promise<void> =>
    send('POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: {
          uri: `http://127.0.0.1:${centre.httpPort}/ngsi-ld/v1`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-origin-'))
    gateway = await startGatewayInside(folder)
    centre = await createEasyBroker('centre')
    await send('POST', entities, { id: 'urn:tank:ours', type: 'Tank', mark: label('none') })
  })
  afterEach(async () => {
    await Promise.all([gateway.close(), centre.close()])
    rmSync(folder, { recursive: true })
  })

  it('is not sent back, though the broker would not refuse it', async () => {
    await subscribe()
    await marked(1)
    await send(
      'POST',
      entities,
      { id: 'urn:tank:theirs', type: 'Tank', level: level(1), label: label('a') },
      via,
    )
    await send('PATCH', `${entities}/urn:tank:theirs/attrs`, { level: level(2) }, via)
    await send('PATCH', `${entities}/urn:tank:theirs/attrs`, { label: label('b') }, via)
    await send('DELETE', `${entities}/urn:tank:theirs/attrs/label`, undefined, via)
    await send('POST', entities, { id: 'urn:tank:theirs:2', type: 'Tank', level: level(1) }, via)
    await send('DELETE', `${entities}/urn:tank:theirs:2`, undefined, via)
    await marked(2)
    expect(centre.told()).not.toContain('urn:tank:theirs')
    // Its local changes are sent, and nothing else of it.
    await send('PATCH', `${entities}/urn:tank:theirs/attrs`, { level: level(3) })
    await marked(3)
    expect(centre.told()).toContain('urn:tank:theirs')
    expect(centre.told()).toContain(at(3))
    expect(centre.told()).not.toMatch(new RegExp(`${at(1)}|${at(2)}|label`))
  })

  it('is not sent back with the changes of an outage', async () => {
    await send(
      'POST',
      entities,
      { id: 'urn:tank:theirs', type: 'Tank', level: level(1), label: label('a') },
      via,
    )
    await send('PATCH', `${entities}/urn:tank:theirs/attrs`, { label: label('b') }, via)
    await subscribe()
    await vi.waitFor(async () => {
      const { text } = await gateway.get('/selvedge/v1/uplinks/urn:up')
      expect(JSON.parse(text)).toMatchObject({ state: 'live' })
    }, withinMs)
    await marked(1)
    expect(centre.told()).not.toContain('urn:tank:theirs')
  })
})
