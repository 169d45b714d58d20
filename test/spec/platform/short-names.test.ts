/** Names of the platform's vocabulary in requests without @context, in the standard profile. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const stream = 'http://purl.org/iot/ontology/iot-stream#IotStream'
const sosa = 'http://www.w3.org/ns/sosa/'
const place = 'http://www.agtinternational.com/ontologies/devices/locations'
const coreContext = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'

let gateway: HttpGateway
beforeAll(async () => {
  gateway = await startHttpGateway()
  const created = [
    { id: 'urn:n:stream', type: stream },
    { id: 'urn:n:sensor', type: `${sosa}Sensor`, [`${sosa}observes`]: { type: 'Property', value: 'rain' } },
    { id: 'urn:n:event', type: 'http://purl.org/iot/ontology/iot-stream#Event' },
    { id: 'urn:n:concert', type: 'Event' },
    {
      id: 'urn:n:observation',
      type: `${stream.replace('IotStream', 'StreamObservation')}`,
      [`${sosa}hasSimpleResult`]: {
        type: 'Property',
        value: 21,
        observedAt: '2026-11-01T00:00:00Z',
        unit: { type: 'Property', value: 'Cel' },
      },
      [`${sosa}resultTime`]: { type: 'Property', value: '2026-11-01T00:00:00Z' },
      age: { type: 'Property', value: 3, frequency: { type: 'Property', value: 2 } },
      [place]: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 50] } },
    },
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

const near = 'georel=near%3BmaxDistance==1&geometry=Point&coordinates=[8,50]'
const ofOne = '/ngsi-ld/v1/entities/urn:n:observation'
const pastOfOne = '/ngsi-ld/v1/temporal/entities/urn:n:observation'

it.each([
  'type=StreamObservation&q=hasSimpleResult%3E20',
  'type=StreamObservation&q=sosa:hasSimpleResult%3E20%3BresultTime',
  'attrs=hasSimpleResult',
  'type=StreamObservation&pick=id,hasSimpleResult',
  `type=StreamObservation&geoproperty=locations&${near}`,
  'type=StreamObservation&q=age.frequency==2',
])('finds by short names of attributes: %s', async (query) => {
  // Twice, because parsed queries are cached.
  for (const _ of [1, 2]) expect(await idsAt(`${entities}?${query}`)).toEqual([200, ['urn:n:observation']])
  const since = 'timerel=after&timeAt=2020-01-01T00:00:00Z'
  const path = `/ngsi-ld/v1/temporal/entities?${query}&${since}`
  expect(await idsAt(path)).toEqual([200, ['urn:n:observation']])
})

it.each([
  [`${ofOne}?attrs=hasSimpleResult`, ['id', 'type', `${sosa}hasSimpleResult`]],
  [`${ofOne}?pick=hasSimpleResult`, [`${sosa}hasSimpleResult`]],
  [`${ofOne}?omit=hasSimpleResult`, ['id', 'type', `${sosa}resultTime`, 'age', place]],
  [`${pastOfOne}?attrs=hasSimpleResult`, ['id', 'type', `${sosa}hasSimpleResult`]],
])('shows attributes by their short names: %s', async (path, members) => {
  const { status, json } = await gateway.get(path)
  expect([status, Object.keys(json() as object).sort()]).toEqual([200, [...members].sort()])
})

it('orders by a short name, and describes types and attributes by theirs', async () => {
  const { json } = await gateway.get(`${entities}?local=true&orderBy=hasSimpleResult;desc&limit=1`)
  expect(json()).toMatchObject([{ id: 'urn:n:observation' }])
  for (const path of ['types/StreamObservation', 'attributes/hasSimpleResult'])
    expect((await gateway.get(`/ngsi-ld/v1/${path}`)).status).toBe(200)
})

it('uses the default context for a short name once an attribute has that name', async () => {
  const query = `${entities}?type=StreamObservation,Thing&q=label==1&attrs=label`
  expect(await idsAt(query)).toEqual([200, []])
  const thing = { id: 'urn:n:thing', type: 'Thing', label: { type: 'Property', value: 1 } }
  expect((await gateway.send('POST', entities, thing)).status).toBe(201)
  expect(await idsAt(query)).toEqual([200, ['urn:n:thing']])
  expect(await idsAt(query.replaceAll('label', 'rdfs:label'))).toEqual([200, []])
})

it('expands a prefixed name in writes as in queries', async () => {
  const entity = { id: 'urn:n:written', type: 'sosa:Platform', 'sosa:hosts': { type: 'Property', value: 1 } }
  expect((await gateway.send('POST', entities, entity)).status).toBe(201)
  const { json } = await gateway.get(`${entities}/urn:n:written?attrs=sosa:hosts`)
  expect(json()).toMatchObject({ type: `${sosa}Platform`, [`${sosa}hosts`]: { value: 1 } })
})

it('uses the default context for a short name if entities have that type', async () => {
  expect(await idsAt(`${entities}?type=Event`)).toEqual([200, ['urn:n:concert']])
  expect(await idsAt(`${entities}?type=iot-stream:Event`)).toEqual([200, ['urn:n:event']])
  const { json } = await gateway.get(`${entities}/urn:n:concert`)
  expect(json()).toMatchObject({ type: 'Event' })
})

it('uses only the core context if the request names it', async () => {
  const link = `<${coreContext}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
  expect(await idsAt(`${entities}?type=IotStream`, { Link: link })).toEqual([200, []])
  expect(await idsAt(`${entities}?type=sosa:Sensor`, { Link: link })).toEqual([200, []])
})

it('warns of a Link header without rel, and ignores links of other relations', async () => {
  const unnamed = `<${coreContext}>; type="application/ld+json"`
  const warning =
    '199 - "a link without rel is ignored; a link to a @context needs rel=http://www.w3.org/ns/json-ld#context"'
  const body = { id: 'urn:n:linked', type: 'T' }
  const query = { type: 'Query', entities: [{ type: 'Sensor' }] }
  for (const [method, path, sent] of [
    ['GET', `${entities}?type=Sensor`, undefined],
    ['GET', `${entities}/urn:n:sensor`, undefined],
    ['POST', '/ngsi-ld/v1/entityOperations/query', query],
    ['POST', entities, body],
    ['DELETE', `${entities}/urn:n:linked`, undefined],
  ] as const) {
    const json = sent === undefined ? {} : { body: sent }
    const type = sent === undefined ? undefined : { 'Content-Type': 'application/json' }
    const answer = await gateway.ask(method, path, { ...json, headers: { ...type, Link: unnamed } })
    expect([method, answer.status < 300, answer.headers['ngsild-warning']]).toEqual([method, true, warning])
  }
  const other = await gateway.get(`${entities}?type=Sensor`, { Link: `<${coreContext}>; rel="help"` })
  expect([other.status, other.headers['ngsild-warning']]).toEqual([200, undefined])
})

it('warns if no entity is found of a type that exists with another IRI', async () => {
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
