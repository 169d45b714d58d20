/**
 * A gateway behind NAT that holds a tunnel open to a centre, both real processes: the centre sends requests
 * and gets notifications through it, as far as allowed; a tunnel that dies silently is noticed and reopened;
 * two with one name displace each other, and both sides report it.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { readTunnelNames, releaseTunnelName, tunnelNamesFile } from '#federation/tunnel-names.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver } from '#test/kit/receiver.ts'

const within = { interval: 50 }
const entities = '/ngsi-ld/v1/entities'

describe('a tunnel', () => {
  let folders: string
  let centre: GatewayProcess
  const edges: GatewayProcess[] = []

  const client = (gateway: GatewayProcess): HttpClient => httpClient(gateway.httpUrl)
  const startEdge = async (url: string, more: object = {}, folder = 'edge'): Promise<GatewayProcess> => {
    const edge = await startGatewayProcess({
      dataFolder: join(folders, folder),
      env: { SELVEDGE_MQTT_PORT: 'off' },
      config: {
        tunnels: [{ url, keepAliveSeconds: 1, ...more }],
        register: [{ url, tunnel: true, types: ['Tank'], operations: ['federationOps', 'mergeEntity'] }],
      },
    })
    edges.push(edge)
    return edge
  }
  const ok = async (gateway: GatewayProcess, path: string, body: unknown, method = 'POST'): Promise<void> => {
    const answer = await client(gateway).send(method, path, body)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const tank = (id: string, level: number): object => ({
    id,
    type: 'Tank',
    level: { type: 'Property', value: level },
  })
  const tanks = async (): Promise<object[]> => (await client(centre).get(`${entities}?type=Tank`)).json()
  const reached = (...wanted: object[]) =>
    vi.waitFor(async () => expect(await tanks()).toMatchObject(wanted), within)
  const status = async (gateway: GatewayProcess) =>
    (await client(gateway).get('/selvedge/v1/downward')).json() as {
      tunnels: { state: string }[]
      connected: { alias: string }[]
    }

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-tunnel-'))
    centre = await startGatewayProcess({
      dataFolder: join(folders, 'centre'),
      env: { SELVEDGE_MQTT_PORT: 'off' },
    })
  })
  afterEach(async () => {
    await Promise.all([...edges.splice(0), centre].map((gateway) => gateway.stop()))
    rmSync(folders, { recursive: true })
  })

  it('carries requests to the edge and notifications back, as far as allowed', async () => {
    const edge = await startEdge(centre.httpUrl)
    await ok(edge, entities, tank('urn:tank:1', 1))
    await reached(tank('urn:tank:1', 1))

    const receiver = await createReceiver()
    await ok(centre, '/ngsi-ld/v1/subscriptions', {
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: { endpoint: { uri: receiver.url() } },
    })
    await vi.waitFor(async () => {
      const there: { notification: { endpoint: { uri: string } } }[] = (
        await client(edge).get('/ngsi-ld/v1/subscriptions')
      ).json()
      // Components of the gateway have subscriptions of their own.
      const uris = there.map(({ notification }) => notification.endpoint.uri)
      expect(uris.filter((uri) => uri.startsWith('urn:selvedge:tunnel:'))).toEqual([
        expect.stringMatching(/^urn:selvedge:tunnel:selvedge-\w+\/selvedge\/v1\/source-notifications\//),
      ])
    }, within)
    await ok(edge, `${entities}/urn:tank:1/attrs`, { level: { type: 'Property', value: 2 } })
    await vi.waitFor(
      () =>
        expect(
          receiver.taken().flatMap(({ body }) => (JSON.parse(body) as { data: object[] }).data),
        ).toMatchObject([tank('urn:tank:1', 2)]),
      within,
    )
    await receiver.down()

    const written = await client(centre).send('PATCH', `${entities}/urn:tank:1`, {
      level: { type: 'Property', value: 3 },
    })
    expect(written.status).not.toBe(204)
    await reached(tank('urn:tank:1', 2))
    expect((await status(centre)).connected).toMatchObject([{ alias: expect.stringMatching(/^selvedge-/) }])
    expect((await status(edge)).tunnels).toMatchObject([{ state: 'open' }])
  })

  it('lets the centre write where that is allowed', async () => {
    const edge = await startEdge(centre.httpUrl, { allow: ['read', 'write'] })
    await ok(edge, entities, tank('urn:tank:1', 1))
    await reached(tank('urn:tank:1', 1))
    await ok(centre, `${entities}/urn:tank:1`, { level: { type: 'Property', value: 3 } }, 'PATCH')
    expect((await client(edge).get(`${entities}/urn:tank:1`)).json()).toMatchObject(tank('urn:tank:1', 3))

    // More than one page of entities.
    const many = [...Array(60).keys()].map((n) => tank(`urn:many:${n}`, n))
    await ok(edge, '/ngsi-ld/v1/entityOperations/create', many)
    expect((await client(centre).get(`${entities}?type=Tank&limit=1000`)).json()).toHaveLength(61)
  })

  it('is reopened when it died silently', async () => {
    const proxy: FaultProxy = await createFaultProxy({
      target: { host: '127.0.0.1', port: centre.httpPort },
    })
    const edge = await startEdge(proxy.url)
    await ok(edge, entities, tank('urn:tank:1', 1))
    await reached(tank('urn:tank:1', 1))
    await proxy.set('blackhole')
    await edge.event('tunnel.down')
    await proxy.set('none')
    await vi.waitFor(
      async () => expect((await status(edge)).tunnels).toMatchObject([{ state: 'open' }]),
      within,
    )
    await reached(tank('urn:tank:1', 1))
    // The centre recognized the new tunnel as the same gateway.
    expect(centre.output()).not.toContain('tunnel.taken-over')
    // A black-holed connection does not keep the gateway from stopping.
    await proxy.set('blackhole')
    const passed = calmTime()
    await edge.stop()
    expect(passed()).toBeLessThan(6000)
    await proxy.close()
  })

  it('is taken over by another process with the same name, and both sides report it', async () => {
    const edge = await startEdge(centre.httpUrl)
    await reached()
    await vi.waitFor(async () => expect((await status(centre)).connected).toHaveLength(1), within)
    for (const file of ['gateway-id', 'gateway-secret'])
      cpSync(join(folders, 'edge', file), join(folders, 'twin', file))
    await startEdge(centre.httpUrl, {}, 'twin')
    await centre.event('tunnel.taken-over')
    await edge.event('tunnel.displaced')
  })

  it('is refused to another gateway with the same name, until that name is released', async () => {
    const edge = await startEdge(centre.httpUrl)
    await vi.waitFor(async () => expect((await status(centre)).connected).toHaveLength(1), within)
    const [{ alias }] = (await status(centre)).connected as [{ alias: string }]
    await edge.stop()
    // Also if its owner is away and the centre restarted.
    const { dataFolder } = centre
    await centre.kill()
    centre = await startGatewayProcess({ dataFolder, env: { SELVEDGE_MQTT_PORT: 'off' } })
    cpSync(join(folders, 'edge', 'gateway-id'), join(folders, 'other', 'gateway-id'))
    const other = await startEdge(centre.httpUrl, {}, 'other')
    expect(await centre.event('tunnel.refused')).toMatchObject({ alias, from: '127.0.0.1' })
    const { reason } = await other.event('tunnel.down')
    expect(reason).toMatch(
      new RegExp(`^answered 403: the name ${alias} has belonged to another gateway since 20`),
    )
    expect((await status(centre)).connected).toEqual([])
    const first = await startEdge(centre.httpUrl)
    await centre.event('tunnel.up')
    await first.stop()

    expect(readTunnelNames(tunnelNamesFile(dataFolder))).toMatchObject([{ alias, from: '127.0.0.1' }])
    expect(releaseTunnelName(tunnelNamesFile(dataFolder), alias)).toBe(true)
    await vi.waitFor(async () => expect((await status(centre)).connected).toMatchObject([{ alias }]), within)
    await startEdge(centre.httpUrl)
    await vi.waitFor(() => expect(centre.output().split('tunnel.refused').length).toBeGreaterThan(2), within)
    expect((await status(other)).tunnels).toMatchObject([{ state: 'open' }])
  })

  it('is refused without the token, without a name, and without a secret', async () => {
    const address = `ws://127.0.0.1:${centre.httpPort}/selvedge/v1/tunnel`
    const nameless = new WebSocket(address)
    const refusal = await new Promise((resolve) => nameless.on('error', ({ message }) => resolve(message)))
    expect(refusal).toContain('400')
    const bare = new WebSocket(address, { headers: { 'selvedge-alias': 'selvedge-1' } })
    expect(await new Promise((resolve) => bare.on('error', ({ message }) => resolve(message)))).toContain(
      '400',
    )
    expect((await client(centre).get('/selvedge/v1/tunnel')).status).toBe(406)

    const closed = await startGatewayProcess({ env: { SELVEDGE_HOST: '0.0.0.0', SELVEDGE_MQTT_PORT: 'off' } })
    edges.push(closed)
    const edge = await startEdge(closed.httpUrl)
    expect(await edge.event('tunnel.down')).toMatchObject({
      reason: expect.stringContaining('answered 401: a token is required'),
    })
    await edge.stop()
    const token = join(folders, 'token')
    cpSync(join(closed.dataFolder, 'http-token'), token)
    await startEdge(closed.httpUrl, { tokenFile: token })
    await closed.event('tunnel.up')
  })
})
