/** Available types and attributes [NGSI-LD 5.7.5 to 5.7.10, 6.25 to 6.28]. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { property } from '#test/kit/gateway-of-file.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-discovery-'))
let gateway: HttpGateway
const base = '/ngsi-ld/v1'
const iri = 'https://schema.example/'
const owner = { type: 'Relationship', object: 'urn:ngsi-ld:Person:1' }
const dropped = 'urn:ngsi-ld:Room:3'

const rooms = [
  { id: 'urn:ngsi-ld:Room:1', type: 'Room', temperature: property(20), [`${iri}owner`]: owner },
  { id: 'urn:ngsi-ld:Room:2', type: ['Room', 'Store'], temperature: property(21), owner: property('me') },
  { id: dropped, type: 'Room', humidity: property(0.4) },
  {
    id: 'urn:ngsi-ld:Car:1',
    type: `${iri}Car`,
    temperature: [owner, property(3, { datasetId: 'urn:d:1' })],
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 49] } },
    scope: '/park',
  },
]

beforeAll(async () => {
  gateway = await startHttpGateway({ dataFolder })
  for (const entity of rooms) await gateway.send('POST', `${base}/entities`, entity)
})
afterAll(async () => {
  await gateway.close()
  rmSync(dataFolder, { recursive: true, force: true })
})

const get = async (path: string, headers = {}): Promise<never> =>
  (await gateway.get(`${base}${path}`, headers)).json()

describe('types', () => {
  it('shall be listed by name', async () => {
    const answer = await gateway.get(`${base}/types`)
    expect(answer.headers['link']).toContain('core-context')
    expect(answer.json()).toEqual({
      id: expect.stringMatching(/^urn:ngsi-ld:EntityTypeList:/),
      type: 'EntityTypeList',
      typeList: ['Room', 'Store', `${iri}Car`],
    })
  })

  it('shall have their attributes with details', async () => {
    const details: { typeName: string; attributeNames: string[] }[] = await get('/types?details=true')
    expect(details).toHaveLength(3)
    expect(details[0]).toEqual({
      id: 'https://uri.etsi.org/ngsi-ld/default-context/Room',
      type: 'EntityType',
      typeName: 'Room',
      attributeNames: ['humidity', `${iri}owner`, 'owner', 'temperature'].sort(),
    })
    expect(details[2]).toMatchObject({ id: `${iri}Car`, attributeNames: ['location', 'temperature'] })
  })

  it('shall each return the number of entities and the kinds of their attributes', async () => {
    expect(await get('/types/Room')).toMatchObject({
      type: 'EntityTypeInfo',
      typeName: 'Room',
      entityCount: 3,
      attributeDetails: [
        { attributeName: 'humidity', type: 'Attribute', attributeTypes: ['Property'] },
        { attributeName: `${iri}owner`, attributeTypes: ['Relationship'] },
        { attributeName: 'owner', attributeTypes: ['Property'] },
        { attributeName: 'temperature', attributeTypes: ['Property'] },
      ].sort((a, b) => (a.attributeName < b.attributeName ? -1 : 1)),
    })
  })

  it.each([encodeURIComponent(`${iri}Car`), `${iri}Car`])('shall be found by full IRI, %s', async (name) => {
    expect(await get(`/types/${name}`)).toMatchObject({ typeName: `${iri}Car`, entityCount: 1 })
  })

  it('shall be 404 when no entity has them, 400 when the name is invalid', async () => {
    const unknown = await gateway.get(`${base}/types/Boat`)
    expect(unknown.status).toBe(404)
    expect(unknown.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound')
    expect((await gateway.get(`${base}/types/${encodeURIComponent('a<b')}`)).status).toBe(400)
    expect((await gateway.get(`${base}/types?details=True`)).status).toBe(400)
  })

  it('shall be those of the tenant', async () => {
    const tenant = { 'NGSILD-Tenant': 'other' }
    expect((await gateway.get(`${base}/types`, tenant)).status).toBe(404)
    await gateway.send('POST', `${base}/entities`, { id: 'urn:x:1', type: 'Only' }, tenant)
    expect(await get('/types', tenant)).toHaveProperty('typeList', ['Only'])
  })
})

describe('attributes', () => {
  it('shall be listed, and with details have their types', async () => {
    const list: { attributeList: string[] } = await get('/attributes')
    expect(list.attributeList.toSorted()).toEqual(
      ['humidity', `${iri}owner`, 'location', 'owner', 'temperature'].sort(),
    )
    expect(await get('/attributes?details=true')).toContainEqual({
      id: 'https://uri.etsi.org/ngsi-ld/default-context/temperature',
      type: 'Attribute',
      attributeName: 'temperature',
      typeNames: ['Room', 'Store', `${iri}Car`],
    })
  })

  it('shall each return the number of entities that have them, and all their kinds', async () => {
    expect(await get('/attributes/temperature', { Accept: 'application/ld+json' })).toEqual({
      id: 'https://uri.etsi.org/ngsi-ld/default-context/temperature',
      type: 'Attribute',
      attributeName: 'temperature',
      attributeCount: 3,
      attributeTypes: ['Property', 'Relationship'],
      typeNames: ['Room', 'Store', `${iri}Car`],
      '@context': expect.stringContaining('core-context'),
    })
    expect((await gateway.get(`${base}/attributes/nothing`)).status).toBe(404)
  })
})

it('shall reflect every change of entities', async () => {
  const of = async (): Promise<unknown> => {
    const { attributeList }: { attributeList: string[] } = await get('/attributes')
    return attributeList.includes('humidity')
  }
  await gateway.send('PATCH', `${base}/entities/${dropped}/attrs`, { humidity: property(0.5) })
  expect(await of()).toBe(true)
  await gateway.ask('DELETE', `${base}/entities/${dropped}/attrs/humidity`)
  expect(await of()).toBe(false)
  await gateway.send('POST', `${base}/entities/${dropped}/attrs`, { humidity: owner })
  expect(await get('/attributes/humidity')).toMatchObject({ attributeTypes: ['Relationship'] })
  await gateway.ask('DELETE', `${base}/entities/${dropped}`)
  expect(await of()).toBe(false)
  expect(await get('/types/Room')).toHaveProperty('entityCount', 2)
})
