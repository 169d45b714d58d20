/**
 * Copies of a centre's entities in a real gateway: streamed by another Selvedge, polled where the centre has
 * no streams. They survive the centre and a restart, follow deletions, leave local entities alone, and are
 * deleted with their setting.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const within = { interval: 50 }
const entities = '/ngsi-ld/v1/entities'

describe('copies', () => {
  let folders: string
  let centre: GatewayProcess
  let edge: GatewayProcess | undefined

  const client = (gateway: GatewayProcess): HttpClient => httpClient(gateway.httpUrl)
  const startCentre = (port = 0) =>
    startGatewayProcess({
      dataFolder: join(folders, 'centre'),
      env: { SELVEDGE_HTTP_PORT: String(port), SELVEDGE_MQTT_PORT: 'off', ...noPlugins },
    })
  const startEdge = async (...copies: object[]): Promise<GatewayProcess> => {
    edge = await startGatewayProcess({
      dataFolder: join(folders, 'edge'),
      env: { SELVEDGE_MQTT_PORT: 'off', ...noPlugins },
      config: { copies: copies.map((one) => ({ name: 'shared', types: ['Shared'], ...one })) },
    })
    return edge
  }
  const shared = (id: string, label: string, more: object = {}): object => ({
    id,
    type: 'Shared',
    label: { type: 'Property', value: label },
    ...more,
  })
  const ok = async (gateway: GatewayProcess, method: string, path: string, body?: unknown): Promise<void> => {
    const answer = await client(gateway).send(method, path, body)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const labels = async (gateway: GatewayProcess): Promise<Record<string, string>> => {
    const all: { id: string; label?: string }[] = (
      await client(gateway).get(`${entities}?type=Shared&options=keyValues`)
    ).json()
    return Object.fromEntries(all.map(({ id, label }) => [id, label ?? '']))
  }
  const expectLabels = (wanted: Record<string, string>) =>
    vi.waitFor(async () => expect(await labels(edge!)).toEqual(wanted), within)
  const status = async (): Promise<{ copies: { state: string; ours: number }[] }> =>
    (await client(edge!).get('/selvedge/v1/downward')).json()
  const state = (wanted: object) =>
    vi.waitFor(async () => expect((await status()).copies).toMatchObject([wanted]), within)

  beforeEach(() => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-copies-'))
  })
  afterEach(async () => {
    await edge?.stop()
    edge = undefined
    rmSync(folders, { recursive: true })
  })

  it('are streamed, survive the centre and a restart, and are deleted with their setting', async () => {
    centre = await startCentre()
    const setting = { url: centre.httpUrl, q: 'label!="hidden"' }
    await ok(centre, 'POST', entities, shared('urn:s:1', 'one'))
    await ok(centre, 'POST', entities, shared('urn:s:2', 'two'))
    await ok(centre, 'POST', entities, shared('urn:s:3', 'hidden'))
    await ok(centre, 'POST', entities, shared('urn:own', 'of the centre'))
    await startEdge()
    await ok(edge!, 'POST', entities, shared('urn:own', 'mine'))
    await edge!.stop()
    await startEdge(setting)
    await expectLabels({ 'urn:s:1': 'one', 'urn:s:2': 'two', 'urn:own': 'mine' })
    await state({ state: 'notified', ours: 1, copies: 2 })

    await ok(centre, 'PATCH', `${entities}/urn:s:1`, { label: { type: 'Property', value: 'uno' } })
    await ok(centre, 'POST', entities, shared('urn:s:4', 'four', { note: { type: 'Property', value: 'x' } }))
    await ok(centre, 'DELETE', `${entities}/urn:s:2`)
    await expectLabels({ 'urn:s:1': 'uno', 'urn:s:4': 'four', 'urn:own': 'mine' })
    await ok(centre, 'DELETE', `${entities}/urn:s:4/attrs/note`)
    await vi.waitFor(async () => {
      expect((await client(edge!).get(`${entities}/urn:s:4`)).json()).not.toHaveProperty('note')
    }, within)
    const [copy] = (await client(edge!).get(`/ngsi-ld/v1/subscriptions`)).json() as unknown[]
    expect(copy).toBeUndefined()

    const { httpPort } = centre
    await centre.stop()
    await state({ state: 'waiting' })
    await edge!.kill('SIGKILL')
    await startEdge(setting)
    await expectLabels({ 'urn:s:1': 'uno', 'urn:s:4': 'four', 'urn:own': 'mine' })
    centre = await startCentre(httpPort)
    await ok(centre, 'PATCH', `${entities}/urn:s:1`, { label: { type: 'Property', value: 'back' } })
    await expectLabels({ 'urn:s:1': 'back', 'urn:s:4': 'four', 'urn:own': 'mine' })

    await edge!.stop()
    await startEdge()
    await expectLabels({ 'urn:own': 'mine' })
    await vi.waitFor(async () => {
      expect((await client(centre).get('/ngsi-ld/v1/subscriptions')).json()).toEqual([])
    }, within)
    await centre.stop()
  })

  it('are not sent back to their centre', async () => {
    centre = await startCentre()
    await ok(centre, 'POST', entities, shared('urn:s:1', 'one'))
    await startEdge({ url: centre.httpUrl })
    await expectLabels({ 'urn:s:1': 'one' })
    await ok(edge!, 'POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:up',
      type: 'Subscription',
      entities: [{ type: 'Shared' }],
      notification: {
        endpoint: {
          uri: `${centre.httpUrl}/ngsi-ld/v1`,
          notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
        },
      },
    })
    await ok(centre, 'DELETE', `${entities}/urn:s:1`)
    await expectLabels({})
    await ok(edge!, 'POST', entities, shared('urn:s:2', 'mine'))
    await vi.waitFor(async () => expect(await labels(centre)).toEqual({ 'urn:s:2': 'mine' }), within)
    await centre.stop()
  })

  it('are deleted with their entities although the centre queries this gateway too', async () => {
    centre = await startCentre()
    await ok(centre, 'POST', entities, shared('urn:s:1', 'one'))
    edge = await startGatewayProcess({
      dataFolder: join(folders, 'edge'),
      env: { SELVEDGE_MQTT_PORT: 'off', ...noPlugins },
      config: {
        copies: [{ name: 'shared', url: centre.httpUrl, types: ['Shared'], everySeconds: 1 }],
        tunnels: [{ url: centre.httpUrl }],
        register: [{ url: centre.httpUrl, tunnel: true, types: ['Shared'] }],
      },
    })
    await expectLabels({ 'urn:s:1': 'one' })
    await ok(edge, 'POST', entities, shared('urn:s:2', 'mine'))
    await vi.waitFor(
      async () => expect(await labels(centre)).toEqual({ 'urn:s:1': 'one', 'urn:s:2': 'mine' }),
      within,
    )
    await ok(centre, 'DELETE', `${entities}/urn:s:1?local=true`)
    await expectLabels({ 'urn:s:2': 'mine' })
    expect(await labels(centre)).toEqual({ 'urn:s:2': 'mine' })
    await centre.stop()
  })

  it('are polled where the centre has no streams', async () => {
    const there = await startForeign([shared('urn:s:1', 'one'), shared('urn:s:2', 'two')])
    await startEdge({ url: there.url, everySeconds: 1 })
    await expectLabels({ 'urn:s:1': 'one', 'urn:s:2': 'two' })
    await state({ state: 'polled' })
    there.entities = [shared('urn:s:2', 'deux')]
    await expectLabels({ 'urn:s:2': 'deux' })
    there.fails = true
    await state({ state: 'waiting', reason: 'answered 503' })
    expect(await labels(edge!)).toEqual({ 'urn:s:2': 'deux' })
    there.server.closeAllConnections()
    there.server.close()
  })
})

/** A broker that only lists entities. */
async function startForeign(entitiesThere: object[]) {
  const there = { url: '', entities: entitiesThere, fails: false, server: undefined as unknown as Server }
  there.server = createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://localhost')
    const isList = pathname === entities
    const status = there.fails ? 503 : isList ? 200 : 404
    const from = Number(searchParams.get('offset'))
    const page = there.entities.slice(from, from + Number(searchParams.get('limit')))
    response.writeHead(status, { 'ngsild-results-count': String(there.entities.length) })
    response.end(status === 200 ? JSON.stringify(page) : '')
  })
  await new Promise<void>((resolve) => there.server.listen(0, '127.0.0.1', resolve))
  there.url = `http://127.0.0.1:${(there.server.address() as AddressInfo).port}`
  return there
}
