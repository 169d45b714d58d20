/**
 * Events of the metadata repository: a subscriber is notified of created or changed entities that match, and
 * of no others.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'
import { prove } from './prove.ts'
import { attributesOf, clientOf, qoi, sensor, sensorType } from './sensor.ts'

let gateway: GatewayProcess
let client: HttpClient
let receiver: Receiver

beforeAll(async () => {
  gateway = await startGatewayProcess({ env: { SELVEDGE_QUALITY_ENABLED: 'true' } })
  client = httpClient(gateway.httpUrl)
  receiver = await createReceiver()
})
afterAll(async () => {
  await gateway.stop()
  await receiver.down()
})

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
})
