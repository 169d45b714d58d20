/**
 * Gateways that feed each other by uplinks: what one has, all have, and nothing goes round. Traffic ends by itself, equal
 * values stay where they are, and no older value comes over a newer one on its way round.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const entities = '/ngsi-ld/v1/entities'
const at = (n: number): string => new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')
const withinMs = { timeout: 10_000, interval: 100 }

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
  /** Requests answered so far, by the counter of the gateway. */
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
  /** Nobody asks anybody for a second, but this test. */
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

  it.each([2, 3])(
    'tell each other all and then are quiet: %i of them',
    async (count) => {
      await start(count)
      const [first, second] = ring as [GatewayInside, GatewayInside]
      const name = { type: 'Property', value: 'main' }
      await send(first, 'POST', entities, { id: 'urn:tank:1', type: 'Tank', level: level(1), name })
      await send(second, 'POST', entities, { id: 'urn:tank:2', type: 'Tank', name })
      await expectSame()
      // As fast as they can be written: what comes round meanwhile is older than what is here.
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

      // Equal values, written where they did not come from.
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
    },
    60_000,
  )

  it('refuse what comes back to where it was', async () => {
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
