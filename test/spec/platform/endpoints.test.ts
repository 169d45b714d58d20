/** The endpoints of the metadata repository as the platform's components use them. */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { platformContextPath } from '#broker/contexts/context-resolver.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { prove } from './prove.ts'
import { attributesOf, clientOf, qoi, sensor, sensorType, sosa } from './sensor.ts'

let gateway: GatewayProcess
let mdr: ReturnType<typeof clientOf>

beforeAll(async () => {
  // Platform clients send no Accept header and expect JSON-LD, which is a setting.
  const http = { defaultMediaType: 'application/ld+json' }
  gateway = await startGatewayProcess({
    config: { http, ranking: { backend: 'mdr' } },
    env: { SELVEDGE_QUALITY_ENABLED: 'true', SELVEDGE_FAULTS_ENABLED: 'true' },
  })
  mdr = clientOf(httpClient(gateway.httpUrl))
})
afterAll(() => gateway.stop())

const idOf = (name: string): string => `urn:ngsi-ld:Sensor:${name}`
const isLd = expect.stringMatching(/^application\/ld\+json\b/)
const contexts = expect.stringContaining('ngsi-ld-core-context')

prove('Endpoints', {
  async create() {
    const created = await mdr.create(sensor(idOf('create')))
    expect([created.status, created.text]).toEqual([201, ''])
    expect(created.headers['location']).toBe(`/ngsi-ld/v1/entities/${idOf('create')}`)
    expect((await mdr.create(sensor(idOf('create')))).status).toBe(409)
    expect((await mdr.create({ name: 'no entity' })).status).toBe(400)
  },

  async query() {
    await mdr.create(sensor(idOf('query')))
    const byIri = await mdr.query(sensorType)
    expect([byIri.status, byIri.headers['content-type']]).toEqual([200, isLd])
    const found = (byIri.json() as { id: string }[]).find(({ id }) => id === idOf('query'))
    expect(found).toMatchObject({
      id: idOf('query'),
      type: sensorType,
      [`${sosa}isHostedBy`]: { type: 'Relationship', object: 'urn:ngsi-ld:Platform:1' },
      [`${qoi}updateinterval`]: { type: 'Property', value: 60, [`${qoi}unit`]: { value: 'seconds' } },
      '@context': contexts,
    })
    const { httpUrl } = gateway
    const link = `<${httpUrl}${platformContextPath}>; rel="http://www.w3.org/ns/json-ld#context"`
    const byCode = await mdr.query('Sensor', { Link: link })
    expect((byCode.json() as { id: string }[]).map(({ id }) => id)).toContain(idOf('query'))
    expect((await mdr.query('http://example.org/Nothing')).json()).toEqual([])
  },

  async retrieve() {
    await mdr.create(sensor(idOf('retrieve')))
    const found = await mdr.retrieve(idOf('retrieve'))
    expect([found.status, found.headers['content-type']]).toEqual([200, isLd])
    expect(found.json()).toMatchObject({ id: idOf('retrieve'), type: sensorType, '@context': contexts })
    expect((await mdr.retrieve(idOf('nobody'))).status).toBe(404)
  },

  async update() {
    await mdr.create(sensor(idOf('update')))
    const change = { ...attributesOf(sensor('')), 'qoi:max': { type: 'Property', value: 99 } }
    const updated = await mdr.update(idOf('update'), change)
    expect([updated.status, updated.text]).toEqual([204, ''])
    expect((await mdr.retrieve(idOf('update'))).json()).toMatchObject({
      [`${qoi}max`]: { value: 99 },
      [`${qoi}min`]: { value: -10 },
    })
    expect((await mdr.update(idOf('nobody'), change)).status).toBe(404)
  },

  async append() {
    const first = sensor(idOf('append'))
    await mdr.create(first)
    const second = {
      ...first,
      'sosa:madeObservation': { type: 'Relationship', object: 'urn:ngsi-ld:StreamObservation:1' },
      'qoi:min': { type: 'Property', value: -20 },
    }
    expect((await mdr.create(second)).status).toBe(409)
    expect((await mdr.append(idOf('append'), attributesOf(second))).status).toBe(204)
    expect((await mdr.retrieve(idOf('append'))).json()).toMatchObject({
      [`${sosa}madeObservation`]: { object: 'urn:ngsi-ld:StreamObservation:1' },
      [`${qoi}min`]: { value: -20 },
      [`${qoi}max`]: { value: 40 },
    })
  },

  async delete() {
    await mdr.create(sensor(idOf('delete')))
    const removed = await mdr.remove(idOf('delete'))
    expect([removed.status, removed.text]).toEqual([204, ''])
    expect((await mdr.retrieve(idOf('delete'))).status).toBe(404)
    expect((await mdr.remove(idOf('delete'))).status).toBe(404)
  },

  async ranking() {
    for (const [name, most] of [
      ['low', 10],
      ['high', 90],
    ] as const)
      await mdr.create({ ...sensor(idOf(name)), 'qoi:max': { type: 'Property', value: most } })
    const client = httpClient(`${gateway.httpUrl}/ranking`)
    const weights = encodeURIComponent(`${qoi}max:0.01`)
    const ids = `id=${idOf('low')},${idOf('high')}`
    for (const type of ['sosa:Sensor', encodeURIComponent(sensorType)]) {
      const ranked = await client.get(`/ngsi-ld/v1/entities?type=${type}&weights=${weights}&${ids}`)
      expect(ranked.status).toBe(200)
      expect((ranked.json() as Record<string, unknown>[]).map((one) => [one['id'], one[rankScore]])).toEqual([
        [idOf('high'), { type: 'Property', value: 0.9 }],
        [idOf('low'), { type: 'Property', value: 0.1 }],
      ])
    }
  },

  async indexing() {
    const client = httpClient(`${gateway.httpUrl}/indexing`)
    const id = 'urn:ngsi-ld:Sensor:indexed'
    expect((await mdr.create(sensor(id))).status).toBe(201)
    const answer = await client.get(`/ngsi-ld/v1/entities?type=sosa:Sensor&id=${id}`, {
      'Selvedge-Index-Position': 'latest',
    })
    expect([answer.status, answer.headers['selvedge-answered-by']]).toEqual([200, 'index'])
    expect(answer.json()).toMatchObject([{ id, type: sensorType }])
  },

  async search() {
    const client = httpClient(`${gateway.httpUrl}/search`)
    const answer = await client.send('POST', '/graphql', { query: '{ __typename }' })
    expect(answer.status).toBe(200)
    expect(answer.json()).toMatchObject({ data: { __typename: 'Query' } })
    const page = await client.get('/')
    expect([page.status, page.headers['content-type']]).toEqual([200, expect.stringContaining('text/html')])
  },

  stopFaults: () => switches('stopFaultDetection', 'stopped'),

  restartFaults: () => switches('restartFaultDetection', 'normal'),

  async qualityCallback() {
    const id = 'urn:ngsi-ld:IotStream:sent'
    const answer = await httpClient(`${gateway.httpUrl}/quality`).send('POST', '/callback', {
      type: 'Notification',
      data: [{ id, type: 'http://purl.org/iot/ontology/iot-stream#IotStream' }],
    })
    expect([answer.status, answer.text]).toEqual([200, 'OK'])
    expect((await mdr.retrieve(id)).status).toBe(200)
  },
})

/** A request that names the sensor of a stream has the envelope with that sensor's state. */
async function switches(action: string, state: string): Promise<void> {
  const client = httpClient(`${gateway.httpUrl}/faults`)
  const sensorID = idOf(action)
  expect((await client.get(`/api/${action}?sensorID=${sensorID}`)).status).toBe(404)
  await mdr.create({
    id: `urn:ngsi-ld:IotStream:${action}`,
    type: 'http://purl.org/iot/ontology/iot-stream#IotStream',
    'http://purl.org/iot/ontology/iot-stream#generatedBy': { type: 'Relationship', object: sensorID },
    '@context': 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
  })
  await vi.waitFor(async () => {
    const answer = await client.get(`/api/${action}/?sensorID=${sensorID}`)
    expect(answer.status).toBe(200)
    expect(answer.json()).toMatchObject({ status: 'ok', success: true, data: { sensorID, state } })
  })
}

const rankScore = 'http://iotcrawler.eu/rankScore'
