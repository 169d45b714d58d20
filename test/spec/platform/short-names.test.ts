/** Names of the platform's vocabulary in requests that name no @context, in the standard profile. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const stream = 'http://purl.org/iot/ontology/iot-stream#IotStream'
const sosa = 'http://www.w3.org/ns/sosa/'
const coreContext = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'

let gateway: HttpGateway
beforeAll(async () => {
  gateway = await startHttpGateway()
  const created = [
    { id: 'urn:n:stream', type: stream },
    { id: 'urn:n:sensor', type: `${sosa}Sensor`, [`${sosa}observes`]: { type: 'Property', value: 'rain' } },
    { id: 'urn:n:event', type: 'http://purl.org/iot/ontology/iot-stream#Event' },
    { id: 'urn:n:concert', type: 'Event' },
    { id: 'urn:n:house', type: 'https://example.org/model#House' },
  ]
  for (const one of created) expect((await gateway.send('POST', entities, one)).status).toBe(201)
})
afterAll(() => gateway.close())

const idsAt = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> => {
  const { status, json } = await gateway.get(path, headers)
  return [status, (json() as { id: string }[]).map(({ id }) => id)]
}

it.each([
  ['type=IotStream', 'urn:n:stream'],
  ['type=IoTStream', 'urn:n:stream'],
  ['type=iot-stream:IotStream', 'urn:n:stream'],
  ['type=sosa:Sensor', 'urn:n:sensor'],
  ['type=Sensor', 'urn:n:sensor'],
  ['type=Shed,Sensor', 'urn:n:sensor'],
  ['attrs=sosa:observes', 'urn:n:sensor'],
  ['type=sosa:Sensor&q=sosa:observes==%22rain%22', 'urn:n:sensor'],
])('finds by %s', async (query, id) => {
  expect(await idsAt(`${entities}?${query}`)).toEqual([200, [id]])
})

it('finds by short names in the body of a query, and in histories', async () => {
  const query = { type: 'Query', entities: [{ type: 'Sensor' }, { type: 'IotStream' }] }
  const found = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/query', query)
  expect((found.json() as { id: string }[]).map(({ id }) => id)).toEqual(['urn:n:stream', 'urn:n:sensor'])
  const since = 'timerel=after&timeAt=2020-01-01T00:00:00Z&timeproperty=modifiedAt'
  expect(await idsAt(`/ngsi-ld/v1/temporal/entities?type=sosa:Sensor&${since}`)).toEqual([
    200,
    ['urn:n:sensor'],
  ])
  expect(await idsAt(`/ngsi-ld/v1/temporal/entities?type=Sensor&${since}`)).toEqual([200, ['urn:n:sensor']])
})

it('reads a prefixed name in what is written as in what is asked for', async () => {
  const entity = { id: 'urn:n:written', type: 'sosa:Platform', 'sosa:hosts': { type: 'Property', value: 1 } }
  expect((await gateway.send('POST', entities, entity)).status).toBe(201)
  const { json } = await gateway.get(`${entities}/urn:n:written?attrs=sosa:hosts`)
  expect(json()).toMatchObject({ type: `${sosa}Platform`, [`${sosa}hosts`]: { value: 1 } })
})

it('leaves a short name to those who have entities of that type in the default context', async () => {
  expect(await idsAt(`${entities}?type=Event`)).toEqual([200, ['urn:n:concert']])
  expect(await idsAt(`${entities}?type=iot-stream:Event`)).toEqual([200, ['urn:n:event']])
  const { json } = await gateway.get(`${entities}/urn:n:concert`)
  expect(json()).toMatchObject({ type: 'Event' })
})

it('takes names by the core alone where a request names it', async () => {
  const link = `<${coreContext}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  expect(await idsAt(`${entities}?type=IotStream`, { Link: link })).toEqual([200, []])
  expect(await idsAt(`${entities}?type=sosa:Sensor`, { Link: link })).toEqual([200, []])
})

it('warns where nothing is found of a type that is known under another IRI', async () => {
  const times = 'timerel=before&timeAt=2999-01-01T00:00:00Z'
  for (const path of [`${entities}?type=House`, `/ngsi-ld/v1/temporal/entities?type=House&${times}`]) {
    const { status, headers, json } = await gateway.get(path)
    expect([status, json()]).toEqual([200, []])
    expect(headers['ngsild-warning']).toBe(
      '199 - "no entity of type House found; type https://example.org/model#House exists: send a Link header with the @context that defines it"',
    )
  }
  expect((await gateway.get(`${entities}?type=Castle`)).headers['ngsild-warning']).toBeUndefined()
  expect((await gateway.get(`${entities}?type=Sensor`)).headers['ngsild-warning']).toBeUndefined()
})
