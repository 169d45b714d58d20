/** A gateway in the profile `platform` with the requests of the original components. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { httpClient, type Reply } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver, type Receiver } from '#test/kit/receiver.ts'

const entities = '/ngsi-ld/v1/entities'
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'
const sosa = 'http://www.w3.org/ns/sosa/'
const isLd = expect.stringMatching(/^application\/ld\+json\b/)

let gateway: GatewayProcess
let receiver: Receiver
let client: ReturnType<typeof httpClient>
beforeAll(async () => {
  receiver = await createReceiver()
  const config = { conformance: { profile: 'platform' }, outbound: { allowLoopback: true } }
  gateway = await startGatewayProcess({ config })
  client = httpClient(gateway.httpUrl)
})
afterAll(async () => {
  await gateway.stop()
  await receiver.down()
})

const send = (method: string, path: string, body: unknown, type = 'application/ld+json'): Promise<Reply> =>
  client.ask(method, path, { body, headers: { 'Content-Type': type } })
const property = (value: unknown) => ({ type: 'Property', value })
const idsIn = ({ json }: Reply): readonly string[] => (json() as { id: string }[]).map(({ id }) => id)

it.each(['application/json', 'application/ld+json'])(
  'accepts entities without @context as %s',
  async (type) => {
    const id = `urn:ngsi-ld:Sensor:${type.slice(12)}`
    const body = { id, type: 'sosa:Sensor', 'sosa:observes': property('rain'), isHostedBy: property('p') }
    expect((await send('POST', `${entities}/`, body, type)).status).toBe(201)
    const { headers, json } = await client.get(`${entities}/${id}`)
    expect(headers['content-type']).toEqual(isLd)
    expect(json()).toEqual({
      id,
      type: `${sosa}Sensor`,
      [`${sosa}observes`]: property('rain'),
      [`${sosa}isHostedBy`]: property('p'),
      '@context': [core],
    })
    expect(
      (await send('PATCH', `${entities}/${id}/attrs`, { 'sosa:observes': property('snow') }, type)).status,
    ).toBe(204)
    for (const name of ['sosa:Sensor', 'Sensor', `${encodeURIComponent(sosa)}Sensor`])
      expect(
        idsIn(await client.get(`${entities}?type=${name}&q=sosa:observes==%22snow%22&attrs=isHostedBy`)),
      ).toContain(id)
    const batch = [{ id: `${id}:2`, type: 'Sensor', 'sosa:observes': property('fog') }]
    expect((await send('POST', '/ngsi-ld/v1/entityOperations/upsert', batch, type)).status).toBe(201)
    expect(idsIn(await client.get(`${entities}?type=${sosa}Sensor&q=sosa:observes==%22fog%22`))).toContain(
      `${id}:2`,
    )
  },
)

it('answers in JSON-LD for any media type, and in JSON on request', async () => {
  const any = await client.get(`${entities}?type=Sensor`, { Accept: '*/*' })
  expect(any.headers['content-type']).toEqual(isLd)
  const json = await client.get(`${entities}?type=Sensor`, { Accept: 'application/json' })
  expect(json.headers['content-type']).toMatch(/^application\/json\b/)
})

it('closes open polygon rings in entities, queries and subscriptions', async () => {
  const open = [
    [
      [0, 0],
      [2, 0],
      [2, 2],
      [0, 2],
    ],
  ]
  const place = (value: unknown) => ({ type: 'GeoProperty', value })
  const area = { id: 'urn:area', type: 'Area', location: place({ type: 'Polygon', coordinates: open }) }
  expect((await send('POST', entities, area)).status).toBe(201)
  const point = { id: 'urn:point', type: 'Area', location: place({ type: 'Point', coordinates: [1, 1] }) }
  expect((await send('POST', entities, point)).status).toBe(201)
  // Equivalent to the geometry as text (GS CIM 009, 4.7.1).
  const text = place(JSON.stringify({ type: 'Polygon', coordinates: open }))
  expect((await send('POST', entities, { ...area, id: 'urn:text', location: text })).status).toBe(201)
  const closed = [[...open[0]!, [0, 0]]]
  for (const id of ['urn:area', 'urn:text']) {
    const stored = (await client.get(`${entities}/${id}`)).json()
    expect(stored).toMatchObject({ location: { value: { coordinates: closed } } })
  }
  const within = `georel=within&geometry=Polygon&coordinates=${encodeURIComponent(JSON.stringify(open))}`
  expect(idsIn(await client.get(`${entities}?type=Area&${within}`))).toContain('urn:point')
  const geoQ = { georel: 'within', geometry: 'Polygon', coordinates: JSON.stringify(open) }
  const notification = { endpoint: { uri: receiver.url('/area') } }
  const subscription = { type: 'Subscription', entities: [{ type: 'Area' }], geoQ, notification }
  expect((await send('POST', '/ngsi-ld/v1/subscriptions', subscription)).status).toBe(201)
})

it.each(['application/json', 'application/ld+json'])(
  'notifies a subscription in keyValues, made without @context as %s, as normalized with full names',
  async (type) => {
    const path = `/${type}`
    const subscription = {
      id: `urn:ngsi-ld:Subscription:SE_${type.slice(12)}`,
      type: 'Subscription',
      entities: [{ type: 'iot-stream:StreamObservation' }],
      notification: {
        format: 'keyValues',
        endpoint: { uri: receiver.url(path), accept: 'application/ld+json' },
      },
    }
    expect((await send('POST', '/ngsi-ld/v1/subscriptions/', subscription, type)).status).toBe(201)
    const { json } = await client.get(`/ngsi-ld/v1/subscriptions/${subscription.id}`)
    expect(json()).toMatchObject({ notification: { format: 'keyValues' }, '@context': [core] })
    const id = `urn:ngsi-ld:StreamObservation:${type.slice(12)}`
    const body = { id, type: 'StreamObservation', 'sosa:hasSimpleResult': property(21.5) }
    expect((await send('POST', entities, body)).status).toBe(201)
    const received = () => receiver.taken().find((one) => one.path === path)
    await expect.poll(received).toBeDefined()
    expect(JSON.parse(received()!.body)).toMatchObject({
      data: [
        {
          id,
          type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation',
          [`${sosa}hasSimpleResult`]: property(21.5),
          '@context': [core],
        },
      ],
    })
  },
)
