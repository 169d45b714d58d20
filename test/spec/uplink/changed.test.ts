/**
 * An uplink whose subscription is changed: another address or tenant receives everything; a wider selection
 * adds what was not selected before, with its history; nothing else is sent again.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const entities = '/ngsi-ld/v1/entities'
const withinMs = { interval: 100 }
const observed = (value: number): object => ({
  level: { type: 'Property', value, observedAt: new Date(Date.UTC(2026, 0, value)).toISOString() },
})

describe('an uplink that is changed', () => {
  let folders: string
  let gateways: GatewayInside[] = []
  let site: GatewayInside
  let centre: GatewayInside

  const start = async (name: string): Promise<GatewayInside> => {
    const gateway = await startGatewayInside(join(folders, name), { SELVEDGE_HTTP_PORT: '0' })
    gateways.push(gateway)
    return gateway
  }
  const send = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await site.send(method, path, body)
    if (answer.status >= 300) expect.unreachable(`${method} ${path} ${answer.status} ${answer.text}`)
  }
  const endpointAt = (gateway: GatewayInside, tenant?: string): object => ({
    notification: {
      endpoint: {
        uri: `http://127.0.0.1:${gateway.httpPort}/ngsi-ld/v1`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        ...(tenant === undefined ? {} : { receiverInfo: [{ key: 'NGSILD-Tenant', value: tenant }] }),
      },
    },
  })
  const levels = async (of: GatewayInside, id: string, tenant = ''): Promise<unknown> => {
    const path = `/ngsi-ld/v1/temporal/entities/${id}?attrs=level&options=temporalValues`
    const headers = tenant === '' ? {} : { 'ngsild-tenant': tenant }
    return (await of.get(path, headers)).json()
  }
  const expectThere = (of: GatewayInside, ids: readonly string[], tenant?: string): Promise<void> =>
    vi.waitFor(async () => {
      for (const id of ids) {
        const there = await levels(of, id, tenant)
        expect(there).toMatchObject({ level: { values: { length: 3 } } })
        expect(there).toEqual(await levels(site, id))
      }
    }, withinMs)
  /** How much was sent, once nothing is pending. */
  const counts = (): Promise<{ sent: number; histories: number }> =>
    vi.waitFor(async () => {
      const { state, sent, histories } = (await site.get('/selvedge/v1/uplinks/urn:up')).json() as {
        state: string
        sent: number
        histories: number
      }
      expect(state).toBe('live')
      return { sent, histories }
    }, withinMs)

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-changed-'))
    gateways = []
    site = await start('site')
    centre = await start('centre')
    for (const id of ['urn:tank:1', 'urn:pump:1']) {
      const type = id.includes('tank') ? 'Tank' : 'Pump'
      await send('POST', entities, { id, type, ...observed(1) })
      for (const value of [2, 3]) await send('PATCH', `${entities}/${id}/attrs`, observed(value))
    }
    await send('POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      ...endpointAt(centre),
    })
    await expectThere(centre, ['urn:tank:1'])
  })
  afterEach(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()))
    rmSync(folders, { recursive: true })
  })

  it('sends everything to another address, and to another tenant there', async () => {
    const other = await start('other')
    await send('PATCH', '/ngsi-ld/v1/subscriptions/urn:up', endpointAt(other))
    await expectThere(other, ['urn:tank:1'])
    expect(
      (await other.send('POST', entities, { id: 'urn:a', type: 'A' }, { 'ngsild-tenant': 'east' })).status,
    ).toBe(201)
    await send('PATCH', '/ngsi-ld/v1/subscriptions/urn:up', endpointAt(other, 'east'))
    await expectThere(other, ['urn:tank:1'], 'east')
  })

  it('sends what a wider selection adds, also after a restart, and nothing twice', async () => {
    await send('PATCH', '/ngsi-ld/v1/subscriptions/urn:up', {
      entities: [{ type: 'Tank' }, { type: 'Pump' }],
    })
    await site.close()
    gateways = gateways.filter((one) => one !== site)
    site = await start('site')
    await expectThere(centre, ['urn:tank:1', 'urn:pump:1'])

    const before = await counts()
    await site.close()
    gateways = gateways.filter((one) => one !== site)
    site = await start('site')
    await send('POST', entities, { id: 'urn:tank:2', type: 'Tank' })
    await vi.waitFor(
      async () => expect((await centre.get(`${entities}/urn:tank:2`)).status).toBe(200),
      withinMs,
    )
    expect(await counts()).toEqual({ ...before, sent: before.sent + 1 })
  })
})
