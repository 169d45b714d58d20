/**
 * This gateway as a context source of another, both real processes (GS CIM 009, 5.9): the centre returns the
 * edge's data and notifies its subscribers of it; the registration is maintained, re-created when lost, and
 * deleted with its setting.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { freePort } from '#test/kit/ports.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver } from '#test/kit/receiver.ts'

const within = { interval: 50 }
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const entities = '/ngsi-ld/v1/entities'

describe('a gateway that is registered at a centre', () => {
  let folders: string
  let edge: GatewayProcess | undefined
  let centre: GatewayProcess
  let edgePort: number

  const client = (gateway: GatewayProcess): HttpClient => httpClient(gateway.httpUrl)
  const startCentre = (port = 0, folder = 'centre') =>
    startGatewayProcess({
      dataFolder: join(folders, folder),
      env: { SELVEDGE_HTTP_PORT: String(port), SELVEDGE_MQTT_PORT: 'off', ...noPlugins },
    })
  const startEdge = async (settings: object | undefined): Promise<GatewayProcess> => {
    edge = await startGatewayProcess({
      dataFolder: join(folders, 'edge'),
      env: { SELVEDGE_HTTP_PORT: String(edgePort), SELVEDGE_MQTT_PORT: 'off', ...noPlugins },
      config: settings === undefined ? {} : { register: [settings] },
    })
    return edge
  }
  const registered = (more: object = {}) => ({
    url: centre.httpUrl,
    types: ['Tank'],
    endpoint: `http://127.0.0.1:${edgePort}`,
    expirySeconds: 10,
    refreshSeconds: 1,
    ...more,
  })
  const atCentre = async (): Promise<{ id: string; expiresAt: string; mode: string }[]> =>
    (await client(centre).get(`${registrations}?type=Tank`)).json()
  const made = () => vi.waitFor(async () => expect(await atCentre()).toHaveLength(1), within)
  const ok = async (gateway: GatewayProcess, path: string, body: unknown): Promise<void> => {
    const answer = await client(gateway).send('POST', path, body)
    if (answer.status >= 300) expect.unreachable(answer.text)
  }
  const tank = (id: string, level: number): object => ({
    id,
    type: 'Tank',
    level: { type: 'Property', value: level },
  })

  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'selvedge-registered-'))
    edgePort = await freePort()
    centre = await startCentre()
  })
  afterEach(async () => {
    await Promise.all([edge?.stop(), centre.stop()])
    edge = undefined
    rmSync(folders, { recursive: true })
  })

  it('gets queries and subscriptions of the centre, until the setting is removed', async () => {
    const here = await startEdge(registered())
    await made()
    await ok(here, entities, tank('urn:tank:1', 1))
    const found = (await client(centre).get(`${entities}?type=Tank`)).json()
    expect(found).toMatchObject([tank('urn:tank:1', 1)])

    const receiver = await createReceiver()
    await ok(centre, '/ngsi-ld/v1/subscriptions', {
      type: 'Subscription',
      entities: [{ type: 'Tank' }],
      notification: { endpoint: { uri: receiver.url() } },
    })
    await vi.waitFor(async () => {
      const there: unknown[] = (await client(here).get('/ngsi-ld/v1/subscriptions')).json()
      expect(there).toHaveLength(1)
    }, within)
    await ok(here, `${entities}/urn:tank:1/attrs`, { level: { type: 'Property', value: 2 } })
    await vi.waitFor(
      () =>
        expect(
          receiver.taken().flatMap(({ body }) => (JSON.parse(body) as { data: object[] }).data),
        ).toMatchObject([tank('urn:tank:1', 2)]),
      within,
    )
    await receiver.down()
    const status = (await client(here).get('/selvedge/v1/downward')).json()
    expect(status).toMatchObject({
      registrations: [{ state: 'registered', centre: `${centre.httpUrl}/ngsi-ld/v1` }],
    })

    await here.stop()
    await startEdge(undefined)
    await vi.waitFor(async () => expect(await atCentre()).toEqual([]), within)
  })

  it('renews its registration, and re-creates it when the centre lost it or was away', async () => {
    const here = await startEdge(registered())
    await made()
    const [first] = await atCentre()
    await vi.waitFor(async () => {
      const [now] = await atCentre()
      expect(now!.expiresAt > first!.expiresAt).toBe(true)
    }, within)
    await client(centre).ask('DELETE', `${registrations}/${encodeURIComponent(first!.id)}`)
    await made()
    const { httpPort } = centre
    await centre.stop()
    await vi.waitFor(() => expect(here.output()).toContain('registration.failed'), within)
    centre = await startCentre(httpPort, 'another centre')
    await made()
  })

  it('is not misled by a proxy that responds for an absent centre, on creation and deletion', async () => {
    const { httpPort } = centre
    /** Like an ingress without its broker. */
    const ingress = async () => {
      const server = createHttpServer((_, response) => response.writeHead(404).end('<html>404</html>'))
      await once(server.listen(httpPort, '127.0.0.1'), 'listening')
      return () => {
        server.closeAllConnections()
        return new Promise((resolve) => server.close(resolve))
      }
    }
    const settings = registered({ expirySeconds: 3600, refreshSeconds: 1800 })
    await centre.stop()
    let gone = await ingress()
    const here = await startEdge(settings)
    await vi.waitFor(() => expect(here.output()).toContain('registration.failed'), within)
    await gone()
    centre = await startCentre(httpPort)
    await made()

    await here.stop()
    await centre.stop()
    gone = await ingress()
    const without = await startEdge(undefined)
    await vi.waitFor(() => expect(without.output()).toContain('downward.not-undone'), within)
    await gone()
    centre = await startCentre(httpPort)
    await vi.waitFor(async () => expect(await atCentre()).toEqual([]), within)
  })

  it('replaces a registration that the centre cannot update', async () => {
    const refusals = [405, 422, 501]
    const seen: string[] = []
    const vias = new Set<string>()
    const server = createHttpServer((request, response) => {
      const { method = '', headers } = request
      vias.add(headers.via!.replace(/ \S+$/, ''))
      const status =
        {
          POST: 201,
          GET: seen.includes('POST') ? 200 : 404,
          PATCH: refusals[seen.filter((one) => one === 'PATCH').length],
          DELETE: 204,
        }[method] ?? 500
      seen.push(method)
      const problem = JSON.stringify({ type: 'about:blank', title: 'no', status })
      response.writeHead(status, { 'Content-Type': 'application/json' })
      request.resume().on('end', () => response.end(status < 400 ? undefined : problem))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await startEdge(registered({ url: `http://127.0.0.1:${port}` }))
    const replaced = ['GET', 'PATCH', 'DELETE', 'POST']
    const wanted = ['GET', 'POST', ...replaced, ...replaced, ...replaced]
    await vi.waitFor(() => expect(seen.slice(0, wanted.length)).toEqual(wanted), within)
    expect([...vias]).toEqual(['HTTP/1.1'])
    server.closeAllConnections()
    server.close()
  })

  it('updates the registration with its settings, and reports refusals of the centre', async () => {
    await (await startEdge(registered())).stop()
    const here = await startEdge(registered({ mode: 'auxiliary', properties: ['level'] }))
    await vi.waitFor(async () => expect(await atCentre()).toMatchObject([{ mode: 'auxiliary' }]), within)
    await here.stop()
    const wrong = startEdge(registered({ name: 'other', operations: ['fly'] }))
    await expect(wrong).rejects.toThrow('fly is not an operation')
  })
})
