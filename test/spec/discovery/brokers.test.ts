/**
 * Brokers registered at the index: two real gateways, one of them killed and restarted, and servers that are
 * not brokers.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { indexBuilt } from '#test/kit/index-of-file.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { iri, quality, sensor, stream } from './site.ts'

setLimit('followCheckMs', 1000)
setLimit('clientRequestMs', 3000)
const folder = mkdtempSync(join(tmpdir(), 'selvedge-brokers-'))
let index: GatewayInside
let first: GatewayProcess
let second: GatewayProcess
let odd: Server

type Registration = Readonly<Record<string, never>>
const patience = { interval: 200 }

const clientOf = ({ httpUrl }: GatewayProcess): HttpClient => httpClient(httpUrl)
const startBroker = (name: string, port = '0'): Promise<GatewayProcess> =>
  startGatewayProcess({
    dataFolder: join(folder, name),
    env: {
      SELVEDGE_HTTP_PORT: port,
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_INDEXING_ENABLED: 'false',
      SELVEDGE_RANKING_ENABLED: 'false',
    },
  })

/** Streams, sensors and qualities with numbers in a range. */
const site = (from: number, to: number): object[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i).flatMap((i) => [
    stream(i),
    sensor(i, [8 + i / 100, 50]),
    quality(i, (i % 10) / 10),
  ])

beforeAll(async () => {
  odd = createServer((request, response) => {
    if (request.url!.startsWith('/garbage')) response.end('<html>hello</html>')
    else if (request.url!.startsWith('/list')) response.end('{"no":"list"}')
    else if (request.url!.startsWith('/reader'))
      response.end(request.method === 'GET' ? '[]' : response.writeHead(405) && 'no')
    else if (request.url!.startsWith('/refusing')) response.writeHead(401).end('{"title":"who are you"}')
    // Other requests are never answered.
  })
  await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve))
  ;[index, first, second] = await Promise.all([
    startGatewayInside(join(folder, 'index')),
    startBroker('first'),
    startBroker('second'),
  ])
  for (const [broker, entities] of [
    [clientOf(first), site(1, 250)],
    [clientOf(second), site(300, 310)],
  ] as const) {
    const made = await broker.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    expect(made.status).toBe(201)
  }
  await indexBuilt(index)
})
afterAll(async () => {
  await Promise.all([index.close(), first.stop(), second.stop()])
  odd.closeAllConnections()
  odd.close()
  rmSync(folder, { recursive: true, force: true })
})

const register = (host: string, more = {}) => index.send('POST', '/indexing/api/broker', { host, ...more })
const list = async (): Promise<Registration[]> =>
  ((await index.get('/indexing/api/broker')).json() as { result: Registration[] }).result
const registrationOf = async (host: string): Promise<Registration | undefined> =>
  (await list()).find((one) => one['host'] === host)
const stateOf = async (host: string): Promise<unknown> => (await registrationOf(host))?.['state']
const streams = async (): Promise<string[]> => {
  const query = `type=${encodeURIComponent(iri.IotStream)}&limit=1000`
  const answer = await index.get(`/indexing/ngsi-ld/v1/entities?${query}`, {
    'Selvedge-Index-Position': 'latest',
  })
  expect([answer.status, answer.headers['selvedge-answered-by']]).toEqual([200, 'index'])
  return (answer.json() as { id: string }[]).map(({ id }) => id).toSorted()
}
const warning = async (): Promise<string | undefined> =>
  (await index.get(`/indexing/ngsi-ld/v1/entities?type=Sensor&limit=1`)).headers['ngsild-warning']
const streamIds = (...numbers: number[]): string[] => numbers.map((i) => `urn:ngsi-ld:IotStream:${i}`)
const subscriptionsAt = async (broker: HttpClient): Promise<string[]> =>
  ((await broker.get('/ngsi-ld/v1/subscriptions?limit=100')).json() as { id: string }[]).map(({ id }) => id)

describe('a registered broker', () => {
  it('has subscriptions, which the registration lists', async () => {
    for (const broker of [first, second]) {
      const answer = await register(broker.httpUrl)
      expect(answer.status).toBe(201)
      const body = answer.json() as Registration
      expect(body).toMatchObject({ host: broker.httpUrl, _id: expect.stringMatching(/^[0-9a-f]{24}$/) })
      const { location } = answer.headers
      expect(location).toBe(`/indexing/api/broker/${body['_id']}`)
      expect((await index.get(String(location))).json()).toMatchObject({ _id: body['_id'] })
      const ids = ['stream', 'sensor', 'qoi', 'point', 'property', 'platform'].map(
        (name) => body[`${name}SubscriptionId`],
      )
      expect(new Set(await subscriptionsAt(clientOf(broker)))).toEqual(new Set(ids))
      expect((await index.get(`/indexing/api/broker/${body['_id']}`)).json()).toMatchObject({
        host: broker.httpUrl,
      })
    }
  })

  it('is read in full, beside other brokers', async () => {
    await vi.waitFor(async () => expect(await streams()).toHaveLength(261), patience)
    await vi.waitFor(
      async () =>
        expect([await stateOf(first.httpUrl), await stateOf(second.httpUrl)]).toEqual([
          'following',
          'following',
        ]),
      patience,
    )
    expect(await registrationOf(first.httpUrl)).toMatchObject({
      origin: 'registered',
      isAged: false,
      tellsDeletions: true,
      entities: { stream: 250, sensor: 250, quality: 250 },
      lastCrawl: { read: 750, added: 750, changed: 0, removed: 0, unreadable: 0 },
    })
    const { count } = (await index.get('/indexing/api/broker')).json() as { count: number }
    expect(count).toBe(3)
  })

  it('notifies of created, changed and deleted entities', async () => {
    const broker = clientOf(second)
    await broker.send('POST', '/ngsi-ld/v1/entities', stream(400))
    await broker.send('POST', '/ngsi-ld/v1/entities', sensor(400, [12, 50]))
    const near = `type=${encodeURIComponent(iri.IotStream)}&georel=near;maxDistance==10&geometry=Point`
    const at = async (place: string): Promise<string[]> =>
      (
        (
          await index.get(`/indexing/ngsi-ld/v1/entities?${near}&coordinates=${encodeURIComponent(place)}`)
        ).json() as { id: string }[]
      ).map(({ id }) => id)
    await vi.waitFor(async () => expect(await at('[12,50]')).toEqual(streamIds(400)), patience)
    await broker.send('PATCH', '/ngsi-ld/v1/entities/urn:ngsi-ld:Sensor:400/attrs', {
      location: sensor(400, [13, 50]).location,
    })
    await vi.waitFor(async () => expect(await at('[13,50]')).toEqual(streamIds(400)), patience)
    expect(await at('[12,50]')).toEqual([])
    await broker.ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:400')
    await vi.waitFor(async () => expect(await streams()).toHaveLength(261), patience)
  })

  it('cannot be registered twice, and this gateway cannot register itself', async () => {
    const again = await register(`${first.httpUrl}/ngsi-ld/v1/`)
    expect([again.status, again.json()]).toEqual([
      409,
      { status: 409, message: `${first.httpUrl} is registered already` },
    ])
    for (const own of [`http://127.0.0.1:${index.httpPort}`, `http://localhost:${index.httpPort}/`]) {
      const answer = await register(own)
      expect([answer.status, answer.json()]).toEqual([
        409,
        { status: 409, message: 'the local MDR is registered already' },
      ])
    }
  })

  it('is recognized under every loopback name', async () => {
    const { httpUrl } = first
    const others = ['localhost', '[::1]'].map((name) => httpUrl.replace('127.0.0.1', name))
    const known = await list()
    for (const other of others) {
      const answer = await register(other)
      expect([answer.status, answer.json()]).toEqual([
        409,
        { status: 409, message: `${other} is registered already, as ${httpUrl}` },
      ])
    }
    expect(await list()).toHaveLength(known.length)
    expect(await registrationOf(httpUrl)).toMatchObject({ alsoAt: others })
  })
})

describe('a server that is not a broker', () => {
  const at = (path: string): string => `http://127.0.0.1:${(odd.address() as AddressInfo).port}${path}`
  const known = async (): Promise<number> => (await list()).length

  it.each([
    [{}, 'host'],
    [{ host: 7 }, 'host'],
    [{ host: 'broker' }, 'host'],
    [{ host: 'ftp://broker' }, 'host'],
    [{ host: 'http://user:secret@broker' }, 'credentials'],
    [{ host: 'http://broker/?x=1' }, 'query'],
    [{ host: 'http://broker', token: 'x' }, 'token'],
    [{ host: 'http://broker', tenant: '../x' }, 'tenant'],
    [[], 'object'],
  ])('is rejected for an invalid body: %j', async (body, what) => {
    const answer = await index.send('POST', '/indexing/api/broker', body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ status: 400, message: expect.stringContaining(what) })
  })

  it.each([
    ['/garbage', 502, 'not a list of entities'],
    ['/list', 502, 'not a list of entities'],
    ['/refusing', 502, 'answered with 401'],
    ['/refusing', 502, 'tokenFile'],
    ['/reader', 502, 'answered with 405'],
  ])('is rejected for an unexpected response: %s', async (path, status, what) => {
    const count = await known()
    const answer = await register(at(path))
    expect(answer.json()).toMatchObject({ status, message: expect.stringContaining(what) })
    expect(await known()).toBe(count)
  })

  it('is rejected if it never answers or cannot be reached', async () => {
    const count = await known()
    const silent = await register(at('/silent'))
    expect(silent.json()).toMatchObject({ status: 504, message: expect.stringContaining('no answer within') })
    const nobody = await register('http://127.0.0.1:1')
    expect(nobody.json()).toMatchObject({
      status: 502,
      message: expect.stringContaining('cannot be reached'),
    })
    expect(await known()).toBe(count)
  })
})

describe('a callback', () => {
  const callback = async (): Promise<string> => {
    const id = (await registrationOf(second.httpUrl))!['streamSubscriptionId']
    const body = (await clientOf(second).get(`/ngsi-ld/v1/subscriptions/${id}`)).json() as {
      notification: { endpoint: { uri: string } }
    }
    return new URL(body.notification.endpoint.uri).pathname
  }

  it('accepts lists, single entities and entities without an envelope', async () => {
    const path = await callback()
    const notification = (data: unknown) => ({
      type: 'Notification',
      id: 'urn:n:1',
      notifiedAt: new Date().toISOString(),
      data,
    })
    for (const [i, body] of [notification([stream(501)]), notification(stream(502)), stream(503)].entries()) {
      const answer = await index.send('POST', path, body)
      expect([answer.status, answer.json()]).toEqual([200, {}])
      expect(await streams()).toContain(`urn:ngsi-ld:IotStream:${501 + i}`)
    }
    const ld = {
      ...stream(504),
      '@context': { 'iot-stream': 'http://purl.org/iot/ontology/iot-stream#' },
      type: 'iot-stream:IotStream',
    }
    expect((await index.send('POST', path, ld)).status).toBe(200)
    expect(await streams()).toContain('urn:ngsi-ld:IotStream:504')
  })

  it('rejects a body without a matching entity, and a URL without the secret', async () => {
    const path = await callback()
    for (const body of [{}, { data: [] }, sensor(600), { data: [{ id: 'no uri', type: 'x' }] }]) {
      const answer = await index.send('POST', path, body)
      expect([answer.status, answer.json()]).toEqual([400, { status: 400, message: expect.any(String) }])
    }
    expect((await index.send('POST', '/indexing/api/notification/stream', stream(601))).status).toBe(401)
    expect((await index.send('POST', `${path.slice(0, -1)}x`, stream(601))).status).toBe(401)
    expect((await index.send('POST', path.replace('/stream/', '/sensor/'), sensor(601))).status).toBe(401)
    expect(await streams()).not.toContain('urn:ngsi-ld:IotStream:601')
  })

  it('does not let an older notification overwrite a newer one', async () => {
    const path = await callback()
    const notification = (at: string, room: string) => ({
      type: 'Notification',
      notifiedAt: at,
      data: [{ ...stream(700), name: { type: 'Property', value: room } }],
    })
    await index.send('POST', path, notification('2031-01-01T00:00:01Z', 'new'))
    await index.send('POST', path, notification('2031-01-01T00:00:00.500Z', 'old'))
    const found = (await index.get('/indexing/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:700')).json() as {
      name: object
    }
    expect(found.name).toEqual({ type: 'Property', value: 'new' })
  })
})

describe('a broker that was unreachable', () => {
  it('is down with stale entries, and is read again when it is back', async () => {
    // These tests notified of entities that the broker does not have; the next full read removes them.
    const port = String(first.httpPort)
    await first.kill()
    // A failed request reports the broker as down long before the next check.
    await index.get('/indexing/ngsi-ld/v1/entities?type=Building')
    expect(await warning()).toMatch(/^110 127\.0\.0\.1:\d+ ".* is down: /)
    await vi.waitFor(async () => expect(await stateOf(first.httpUrl)).toBe('down'), patience)
    expect(await registrationOf(first.httpUrl)).toMatchObject({ isAged: true, reason: expect.any(String) })
    expect(await warning()).toMatch(/^110 127\.0\.0\.1:\d+ ".* is down: .*its entries are as of /)
    expect(await streams()).toContain('urn:ngsi-ld:IotStream:1')
    expect((await index.get('/health/ready')).status).toBe(200)
    first = await startBroker('first', port)
    await clientOf(first).send('POST', '/ngsi-ld/v1/entities', stream(260))
    await vi.waitFor(async () => expect(await stateOf(first.httpUrl)).toBe('following'), patience)
    expect(await streams()).toContain('urn:ngsi-ld:IotStream:260')
    expect(await warning()).toBeUndefined()
  })

  it('is read again after its subscriptions were deleted and a deletion was missed', async () => {
    const broker = clientOf(first)
    // All at once: otherwise the index would create subscriptions again and be notified of the deletion.
    const subscriptions = await subscriptionsAt(broker)
    await Promise.all(subscriptions.map((id) => broker.ask('DELETE', `/ngsi-ld/v1/subscriptions/${id}`)))
    await broker.ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:1')
    await vi.waitFor(async () => expect(await streams()).not.toContain('urn:ngsi-ld:IotStream:1'), patience)
    await vi.waitFor(async () => expect(await stateOf(first.httpUrl)).toBe('following'), patience)
    expect(await registrationOf(first.httpUrl)).toMatchObject({
      lastCrawl: { removed: 1, added: 0, changed: 0 },
    })
    expect(await subscriptionsAt(broker)).toHaveLength(6)
  })

  it('is followed again after a restart of the index', async () => {
    await index.close()
    await clientOf(second).ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:300')
    index = await startGatewayInside(join(folder, 'index'), { SELVEDGE_HTTP_PORT: '0' })
    await vi.waitFor(
      async () =>
        expect([await stateOf(first.httpUrl), await stateOf(second.httpUrl)]).toEqual([
          'following',
          'following',
        ]),
      patience,
    )
    const all = await streams()
    expect(all).not.toContain('urn:ngsi-ld:IotStream:300')
    // Entities that only these tests notified of are removed, too.
    expect(all).toHaveLength(250 + 10)
    expect(await subscriptionsAt(clientOf(second))).toHaveLength(6)
    await clientOf(second).send('POST', '/ngsi-ld/v1/entities', stream(300))
    await vi.waitFor(async () => expect(await streams()).toContain('urn:ngsi-ld:IotStream:300'), patience)
  })
})

describe('a removed broker', () => {
  it('loses its subscriptions and its entries', async () => {
    const { _id: key } = (await registrationOf(second.httpUrl))!
    expect((await index.ask('DELETE', `/indexing/api/broker/${key}`)).status).toBe(204)
    expect((await index.get(`/indexing/api/broker/${key}`)).status).toBe(404)
    expect(await streams()).toHaveLength(250)
    await vi.waitFor(async () => expect(await subscriptionsAt(clientOf(second))).toEqual([]), patience)
    expect((await index.ask('DELETE', `/indexing/api/broker/${key}`)).status).toBe(404)
    expect((await index.ask('DELETE', '/indexing/api/broker/xyz')).status).toBe(400)
  })

  it('loses them later if it is unreachable, and can be registered again', async () => {
    const { _id: key } = (await registrationOf(first.httpUrl))!
    const port = String(first.httpPort)
    await first.kill()
    expect((await index.ask('DELETE', `/indexing/api/broker/${key}`)).status).toBe(204)
    expect(await streams()).toEqual([])
    first = await startBroker('first', port)
    await vi.waitFor(async () => expect(await subscriptionsAt(clientOf(first))).toEqual([]), patience)
    expect((await register(first.httpUrl)).status).toBe(201)
    await vi.waitFor(async () => expect(await streams()).toHaveLength(250), patience)
    expect(await subscriptionsAt(clientOf(first))).toHaveLength(6)
  })

  it('cannot be the local MDR', async () => {
    const own = (await list()).find(({ origin }) => origin === ('own' as never))!
    const answer = await index.ask('DELETE', `/indexing/api/broker/${own['_id']}`)
    expect([answer.status, answer.json()]).toEqual([
      409,
      { status: 409, message: expect.stringContaining('local MDR') },
    ])
  })
})
