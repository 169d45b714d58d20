/**
 * The callbacks of the analyser and of fault detection: bodies in all forms that brokers and clients send, and
 * who may send them. A body without a secret is a write by its sender, who needs the token of the gateway.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-callbacks-'))
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'
const prefixes = {
  sosa: 'http://www.w3.org/ns/sosa/',
  'iot-stream': 'http://purl.org/iot/ontology/iot-stream#',
}
let gateway: GatewayProcess
let token: string

beforeAll(async () => {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: {
      SELVEDGE_HOST: '0.0.0.0',
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_QUALITY_ENABLED: 'true',
      SELVEDGE_FAULTS_ENABLED: 'true',
    },
  })
  token = readFileSync(join(folder, 'data', 'http-token'), 'utf8').trim()
  for (const path of ['/quality/status', '/faults/monitoring/status'])
    await vi.waitFor(async () => expect((await client().get(path, bearer())).status).toBe(200), {
      interval: 100,
      timeout: 100_000,
    })
})
afterAll(async () => {
  await gateway?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const client = () => httpClient(gateway.httpUrl)
const bearer = () => ({ Authorization: `Bearer ${token}` })
const send = (path: string, body: unknown, headers: Record<string, string> = bearer()) =>
  client().ask('POST', `/quality${path}`, { headers, body })

const stream = (name: string) => ({ id: `urn:ngsi-ld:IotStream:${name}`, type: 'iot-stream:IotStream' })
const observation = (name: string, context: unknown) => ({
  id: `urn:ngsi-ld:StreamObservation:${name}`,
  type: 'iot-stream:StreamObservation',
  'iot-stream:belongsTo': { type: 'Relationship', object: `urn:ngsi-ld:IotStream:${name}` },
  'sosa:hasSimpleResult': { type: 'Property', value: 21, observedAt: '2026-01-02T03:04:05Z' },
  '@context': context,
})

async function count(name: string): Promise<number | undefined> {
  const path = `/quality/api/streams/urn:ngsi-ld:IotStream:${name}`
  const answer = await client().get(path, bearer())
  return (answer.json() as { observations?: number }).observations
}

const notification = (data: unknown, more: object = {}) => ({
  id: 'urn:ngsi-ld:Notification:1',
  type: 'Notification',
  subscriptionId: 'urn:ngsi-ld:Subscription:1',
  notifiedAt: '2026-01-02T03:04:06Z',
  data,
  ...more,
})

describe('the callback', () => {
  it.each([
    ['a bare entity, with a list as context', 'bare', (one: object) => one, [core, prefixes]],
    ['an array, with an address as context', 'array', (one: object) => [one], core],
    ['a notification with a list', 'listed', (one: object) => notification([one]), prefixes],
    [
      'a notification with an object, and a context of its own',
      'object',
      ({ '@context': context, ...one }: { '@context'?: unknown }) =>
        notification(one, { '@context': context }),
      [prefixes, core],
    ],
  ])('takes %s', async (_, name, bodyOf, context) => {
    for (const entity of [{ ...stream(name), '@context': context }, observation(name, context)]) {
      const answer = await send('/callback', bodyOf(entity))
      expect([answer.status, answer.text]).toEqual([200, 'OK'])
    }
    await vi.waitFor(async () => expect(await count(name)).toBe(1))
  })

  it('takes keyValues, with short names of the platform, at the address of the original component', async () => {
    const entities = [
      stream('plain'),
      {
        id: 'urn:ngsi-ld:StreamObservation:plain',
        type: 'StreamObservation',
        belongsTo: 'urn:ngsi-ld:IotStream:plain',
        hasSimpleResult: 'v^^string',
        resultTime: '2026-01-02T03:04:05Z',
      },
    ]
    expect((await send('/semanticenrichment/callback', entities)).status).toBe(200)
    await vi.waitFor(async () => expect(await count('plain')).toBe(1))
    const sent = await client().get(
      '/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:plain?options=keyValues',
      bearer(),
    )
    expect(sent.json()).toMatchObject({
      [`${prefixes['iot-stream']}belongsTo`]: 'urn:ngsi-ld:IotStream:plain',
    })
  })

  it('rejects a sender without the token, a wrong secret, and a body without entities', async () => {
    const body = { ...stream('nobody'), '@context': prefixes }
    expect((await send('/callback', body, {})).status).toBe(401)
    expect((await send('/callback/stream.0123456789', body, {})).status).toBe(401)
    expect((await send('/callback/stream.0123456789', body)).status).toBe(401)
    expect((await send('/callback', notification([]))).status).toBe(400)
    expect((await send('/callback', 'text')).status).toBe(400)
    const found = await client().get('/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:nobody', bearer())
    expect(found.status).toBe(404)
  })

  it.each(['/callback', '/callback/', '/callback//', '/callback/.', '/callback/%2e%2e/callback/'])(
    'refuses a body without a secret from a sender without the token: %s',
    async (path) => {
      const answer = await send(path, { ...stream('foreign'), '@context': [core, prefixes] }, {})
      expect(answer.status).toBe(401)
      const entity = await client().get('/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:foreign', bearer())
      expect(entity.status).toBe(404)
    },
  )

  it('refuses bodies of too many entities, or nested too deep, before reading them', async () => {
    const many = await send(
      '/callback',
      Array.from({ length: 1001 }, () => ({})),
    )
    expect([many.status, many.text]).toEqual([400, expect.stringContaining('at most 1000')])
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    const answer = await client().ask('POST', '/patterns/api/model/train', { headers: bearer(), body: deep })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('nested deeper')])
  })
})

describe('the callbacks of fault detection, by the original paths', () => {
  const post = (path: string, body: unknown, headers: Record<string, string> = bearer()) =>
    client().ask('POST', `/faults/monitoring/callback/${path}`, { headers, body })
  const sensor = (name: string) => ({
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: 'sosa:Sensor',
    '@context': prefixes,
  })
  const status = async (name: string) =>
    (await client().get(`/ngsi-ld/v1/entities/urn:ngsi-ld:Sensor:${name}`, bearer())).status

  it('write what a sender with the token sends without a secret', async () => {
    for (const [path, body] of [
      ['sensor', sensor('bare')],
      ['observation', [sensor('listed')]],
      ['qoi', notification([sensor('notified')])],
    ] as const) {
      const answer = await post(path, body)
      expect([answer.status, answer.text]).toEqual([200, 'OK'])
    }
    for (const name of ['bare', 'listed', 'notified']) expect(await status(name)).toBe(200)
  })

  it('reject a sender without the token, a wrong secret, and a body without entities', async () => {
    expect((await post('sensor', sensor('nobody'), {})).status).toBe(401)
    expect((await post('sensor/0123456789', sensor('nobody'), {})).status).toBe(401)
    expect((await post('sensor/0123456789', sensor('nobody'))).status).toBe(401)
    expect((await post('sensor', notification([]))).status).toBe(400)
    expect(await status('nobody')).toBe(404)
  })
})

describe('the list of subscriptions', () => {
  const list = async () =>
    (await client().get('/quality/api/subscriptions', bearer())).json() as {
      count: number
      result: { id: string; broker: string; types: string[]; status: string }[]
    }

  it('has those of the analyser, and those created here, which can be deleted', async () => {
    await vi.waitFor(async () => expect((await list()).count).toBe(6))
    const made = await send('/api/subscriptions', { types: ['Platform', 'urn:x:Other'] })
    expect(made.status).toBe(201)
    const row = made.json() as { id: string }
    expect(row).toMatchObject({
      types: [`${prefixes.sosa}Platform`, 'urn:x:Other'],
      status: 'active',
      lastNotification: null,
    })
    expect((await list()).result.at(-1)).toEqual(row)
    const path = `/quality/api/subscriptions/${row.id}`
    expect((await client().ask('DELETE', path, { headers: bearer() })).status).toBe(204)
    expect((await client().ask('DELETE', path, { headers: bearer() })).status).toBe(404)
    const { id } = (await list()).result[0]!
    const needed = await client().ask('DELETE', `/quality/api/subscriptions/${id}`, { headers: bearer() })
    expect(needed.status).toBe(409)
    expect((await send('/api/subscriptions', { entities: [] })).status).toBe(400)
  })
})
