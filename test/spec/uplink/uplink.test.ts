/**
 * An uplink between two real gateways: the centre ends up with the data of the gateway, live, after the
 * centre was away, and after the gateway was killed meanwhile; including deletions, removed attributes and
 * re-created entities.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const entities = '/ngsi-ld/v1/entities'
const seconds = (n: number): string =>
  new Date(1_767_225_600_000 + n * 1000).toISOString().replace('.000', '')
const observed = (value: number): object => ({ type: 'Property', value, observedAt: seconds(value) })
const withinMs = { interval: 100 }

describe('an uplink', () => {
  let folders: string
  let site: GatewayProcess
  let centre: GatewayProcess

  const at = (name: string): string => join(folders, name)
  const client = (gateway: GatewayProcess): HttpClient => httpClient(gateway.httpUrl)
  const startSite = () => startGatewayProcess({ dataFolder: at('site') })
  const startCentre = (port = 0) =>
    startGatewayProcess({ dataFolder: at('centre'), env: { SELVEDGE_HTTP_PORT: String(port) } })
  const send = async (method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await client(site).send(method, path, body)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const subscribe = (more: object = {}): Promise<void> =>
    send('POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: {
        endpoint: {
          uri: `${centre.httpUrl}/ngsi-ld/v1`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
      ...more,
    })
  const tanks = async (gateway: GatewayProcess): Promise<readonly object[]> => {
    const all: { id: string }[] = (await client(gateway).get(`${entities}?type=Tank&limit=1000`)).json()
    return all.toSorted((a, b) => a.id.localeCompare(b.id))
  }
  const levels = async (gateway: GatewayProcess, id: string): Promise<unknown> => {
    const path = `/ngsi-ld/v1/temporal/entities/${id}?attrs=level&options=temporalValues`
    return (await client(gateway).get(path)).json()
  }
  /** The centre holds what the site holds, current state and observations. */
  const expectSame = async (ids: readonly string[]): Promise<void> => {
    await vi.waitFor(async () => {
      expect(await tanks(centre)).toEqual(await tanks(site))
      for (const id of ids) expect(await levels(centre, id)).toEqual(await levels(site, id))
    }, withinMs)
  }
  const create = (id: string, level: number): Promise<void> =>
    send('POST', entities, {
      id,
      type: 'Tank',
      level: observed(level),
      name: { type: 'Property', value: id },
    })
  const observe = (id: string, level: number): Promise<void> =>
    send('PATCH', `${entities}/${id}/attrs`, { level: observed(level) })

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-uplink-'))
    ;[site, centre] = await Promise.all([startSite(), startCentre()])
  })
  afterEach(async () => {
    await Promise.all([site.stop(), centre.stop()])
    rmSync(folders, { recursive: true })
  })

  it('sends existing entities with their history, and then every change', async () => {
    await create('urn:tank:1', 1)
    for (const level of [2, 3, 4]) await observe('urn:tank:1', level)
    await send('POST', entities, { id: 'urn:other:1', type: 'Other', level: observed(1) })
    await subscribe()
    await expectSame(['urn:tank:1'])

    await create('urn:tank:2', 5)
    for (const level of [6, 7, 8]) await observe('urn:tank:2', level)
    await send('DELETE', `${entities}/urn:tank:1/attrs/name`)
    await expectSame(['urn:tank:1', 'urn:tank:2'])
    await send('DELETE', `${entities}/urn:tank:2`)
    await vi.waitFor(async () => expect(await tanks(centre)).toHaveLength(1), withinMs)
    expect((await client(centre).get(`${entities}/urn:other:1`)).status).toBe(404)
  })

  it('sends the expiry of attributes, and the deletion of an expired entity', async () => {
    const far = '2099-01-01T00:00:00Z'
    const name = (expiresAt: string) => ({ type: 'Property', value: 'n', expiresAt })
    await subscribe()
    await send('POST', entities, { id: 'urn:tank:1', type: 'Tank', expiresAt: far, name: name(far) })
    await vi.waitFor(async () => {
      const path = `${entities}/urn:tank:1?options=sysAttrs`
      expect((await client(centre).get(path)).json()).toMatchObject({ name: name(far) })
    }, withinMs)
    const soon = new Date(Date.now() + 300).toISOString()
    await send('PATCH', `${entities}/urn:tank:1`, { expiresAt: soon })
    await vi.waitFor(async () => expect(await tanks(centre)).toEqual([]), withinMs)
    expect(await tanks(site)).toEqual([])
  })

  it('sends no history that its q does not select', async () => {
    await send('POST', entities, {
      id: 'urn:secret:1',
      type: 'Secret',
      pin: { type: 'Property', value: 1234 },
      level: observed(1),
    })
    await send('PATCH', `${entities}/urn:secret:1/attrs`, { pin: { type: 'Property', value: 4321 } })
    await create('urn:tank:0', 0)
    await create('urn:tank:1', 1)
    await subscribe({ q: 'level>0' })
    await vi.waitFor(async () => {
      const path = '/ngsi-ld/v1/temporal/entities/urn:tank:1?attrs=name&timeproperty=modifiedAt'
      expect((await client(centre).get(path)).json()).toMatchObject({ name: expect.anything() })
      expect(await tanks(centre)).toMatchObject([{ id: 'urn:tank:1' }])
    }, withinMs)
    await create('urn:tank:2', 2)
    await vi.waitFor(async () => expect(await tanks(centre)).toHaveLength(2), withinMs)
    for (const id of ['urn:secret:1', 'urn:tank:0'])
      for (const path of [`${entities}/${id}`, `/ngsi-ld/v1/temporal/entities/${id}`])
        expect((await client(centre).get(path)).status).toBe(404)
  })

  it('catches up after an outage in which the gateway was killed', async () => {
    await create('urn:tank:1', 1)
    await create('urn:tank:2', 1)
    await create('urn:tank:3', 1)
    await subscribe()
    await expectSame(['urn:tank:1', 'urn:tank:2', 'urn:tank:3'])
    const { httpPort } = centre
    await centre.stop()
    for (let level = 2; level < 40; level++) await observe('urn:tank:1', level)
    await send('DELETE', `${entities}/urn:tank:2`)
    await send('DELETE', `${entities}/urn:tank:3`)
    await send('POST', entities, {
      id: 'urn:tank:3',
      type: 'Tank',
      colour: { type: 'Property', value: 'red' },
    })
    await send('DELETE', `${entities}/urn:tank:1/attrs/name`)
    await create('urn:tank:4', 3)
    // Longer than the live lane replays.
    await new Promise((resolve) => setTimeout(resolve, 6000))
    await observe('urn:tank:4', 4)
    await site.kill('SIGKILL')
    site = await startSite()
    await observe('urn:tank:4', 5)

    centre = await startCentre(httpPort)
    await expectSame(['urn:tank:1', 'urn:tank:4'])
    await vi.waitFor(() => expect(site.output()).toContain('uplink.catching-up'))
    await observe('urn:tank:1', 50)
    await expectSame(['urn:tank:1'])
  })
})
