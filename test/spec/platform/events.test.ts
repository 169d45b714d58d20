/**
 * Events of the metadata repository: a subscriber is notified of created or changed entities that match, and
 * of no others.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { stickFor } from './faulty-sensor.ts'
import { prove } from './prove.ts'
import { attributesOf, clientOf, qoi, sensor, sensorType } from './sensor.ts'

let gateway: GatewayProcess
let client: HttpClient
let receiver: Receiver

beforeAll(async () => {
  gateway = await startGatewayProcess({
    env: { SELVEDGE_QUALITY_ENABLED: 'true', SELVEDGE_FAULTS_ENABLED: 'true' },
  })
  client = httpClient(gateway.httpUrl)
  receiver = await createReceiver()
})
afterAll(async () => {
  await gateway.stop()
  await receiver.down()
})

const iotStream = 'http://purl.org/iot/ontology/iot-stream#'

interface Received {
  readonly subscriptionId: string
  readonly type: string
  readonly data: { readonly id: string; readonly [name: string]: unknown }[]
}

prove('Events', {
  async notification() {
    const mdr = clientOf(client)
    const id = 'urn:ngsi-ld:Sensor:events'
    const subscriptionId = 'urn:ngsi-ld:Subscription:events'
    const subscribed = await client.send('POST', '/ngsi-ld/v1/subscriptions/', {
      id: subscriptionId,
      type: 'Subscription',
      entities: [{ type: sensorType }],
      q: `${qoi}max>30`,
      notification: { endpoint: { uri: receiver.url('/notify'), accept: 'application/json' } },
    })
    expect(subscribed.status).toBe(201)
    const change = (max: number) =>
      mdr.update(id, { ...attributesOf(sensor(id)), 'qoi:max': { type: 'Property', value: max } })
    await mdr.create(sensor(id))
    await mdr.create({ ...sensor('urn:ngsi-ld:Other:events'), type: 'qoi:Other' })
    await change(20)
    await change(50)
    await vi.waitFor(() => expect(receiver.taken()).toHaveLength(2))
    // A notification for an entity that does not match would have arrived by now.
    await new Promise((resolve) => setTimeout(resolve, 300))
    const received = receiver.taken().map(({ body }) => JSON.parse(body) as Received)
    expect(received).toMatchObject([
      { type: 'Notification', subscriptionId, data: [{ id, [`${qoi}max`]: { value: 40 } }] },
      { type: 'Notification', subscriptionId, data: [{ id, [`${qoi}max`]: { value: 50 } }] },
    ])
    expect(receiver.taken().map(({ path }) => path)).toEqual(['/notify', '/notify'])
  },

  async indexed() {
    const other = await startGatewayProcess({
      env: { SELVEDGE_INDEXING_ENABLED: 'false', SELVEDGE_RANKING_ENABLED: 'false' },
    })
    try {
      const answer = await client.send('POST', '/indexing/api/broker', { host: other.httpUrl })
      expect(answer.status).toBe(201)
      const made = (await httpClient(other.httpUrl).get('/ngsi-ld/v1/subscriptions')).json() as {
        readonly entities: readonly { readonly type: string }[]
      }[]
      const types = made.flatMap(({ entities }) => entities.map(({ type }) => type))
      for (const type of [sensorType, `${qoi}Quality`]) expect(types).toContain(type)
      expect(types).toContain('http://purl.org/iot/ontology/iot-stream#IotStream')
      expect(types).toContain('http://www.w3.org/2003/01/geo/wgs84_pos#Point')
    } finally {
      await other.stop()
    }
  },

  async qualitySubscribes() {
    type Made = { id: string; entities: { type: string }[]; notification: { endpoint: { uri: string } } }
    const path = '/ngsi-ld/v1/subscriptions'
    const made = await vi.waitFor(async () => {
      const all = (await client.get(`${path}?options=followers&limit=100`)).json() as Made[]
      const own = all.filter(({ notification }) => notification.endpoint.uri.endsWith('/quality/callback'))
      expect(own.flatMap(({ entities }) => entities.map(({ type }) => type))).toEqual(
        expect.arrayContaining([
          'http://purl.org/iot/ontology/iot-stream#IotStream',
          'http://purl.org/iot/ontology/iot-stream#StreamObservation',
          sensorType,
        ]),
      )
      return own
    })
    // Those of components are not in the plain list, but readable by id.
    const listed = (await client.get(path)).json() as Made[]
    expect(listed.filter(({ id }) => made.some((one) => one.id === id))).toEqual([])
    for (const { id } of made) expect((await client.get(`${path}/${id}`)).status).toBe(200)
  },

  async qualityStored() {
    const stream = 'urn:ngsi-ld:IotStream:events'
    const made = await client.send('POST', '/ngsi-ld/v1/entities', {
      id: stream,
      type: 'http://purl.org/iot/ontology/iot-stream#IotStream',
    })
    expect(made.status).toBe(201)
    const quality = `urn:ngsi-ld:QoI:${stream}`
    await vi.waitFor(async () => {
      expect((await client.get(`/ngsi-ld/v1/entities/${quality}`)).json()).toMatchObject({
        type: `${qoi}Quality`,
      })
      expect((await client.get(`/ngsi-ld/v1/entities/${stream}`)).json()).toMatchObject({
        [`${qoi}hasQuality`]: { type: 'Relationship', object: quality },
      })
    })
  },

  async pattern() {
    const link = (object: string) => ({ type: 'Relationship', object })
    const made = await client.send('POST', '/ngsi-ld/v1/entityOperations/create', [
      {
        id: 'urn:ngsi-ld:IotStream:pattern',
        type: `${iotStream}IotStream`,
        'http://www.w3.org/ns/sosa/observes': link('urn:ngsi-ld:ObservableProperty:pattern'),
        location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [10, 56] } },
      },
      {
        id: 'urn:ngsi-ld:StreamObservation:pattern',
        type: `${iotStream}StreamObservation`,
        [`${iotStream}belongsTo`]: link('urn:ngsi-ld:IotStream:pattern'),
      },
    ])
    expect(made.status).toBe(201)
    const registered = await client.send('POST', '/patterns/api/model', {
      observableProperties: ['urn:ngsi-ld:ObservableProperty:pattern'],
      model: { weights: [1], means: [[1]], covariances: [[[1]]] },
      labels: ['Always'],
    })
    expect(registered.status).toBe(201)
    for (let row = 0; row < 12; row++) {
      const observedAt = new Date(Date.UTC(2026, 0, 1, 0, 5 * row)).toISOString()
      const path = '/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:pattern/attrs'
      const result = { type: 'Property', value: row, observedAt }
      await client.send('POST', path, { 'http://www.w3.org/ns/sosa/hasSimpleResult': result })
    }
    await vi.waitFor(async () => {
      expect((await client.get('/ngsi-ld/v1/entities?type=Event')).json()).toMatchObject([
        {
          [`${iotStream}label`]: { value: 'Always' },
          [`${iotStream}windowStart`]: { value: { '@value': '2026-01-01T00:00:00Z' } },
          [`${iotStream}windowEnd`]: { value: { '@value': '2026-01-01T00:55:00Z' } },
        },
      ])
    })
  },

  async fault() {
    const id = await stickFor(client, 'notified')
    await vi.waitFor(async () => {
      const faults = (
        await client.get(`/ngsi-ld/v1/entities?type=${encodeURIComponent('urn:selvedge:ns:Fault')}`)
      ).json()
      expect(faults).toMatchObject([{ 'urn:selvedge:ns:stream': { object: id } }])
    })
  },
})
