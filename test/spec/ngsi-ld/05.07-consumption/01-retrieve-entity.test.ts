/** Retrieve Entity [NGSI-LD 5.7.1, 6.5.3.1] and its representations [4.5]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const id = 'urn:ngsi-ld:Room:1'
const path = `/ngsi-ld/v1/entities/${id}`
const stored = {
  id,
  type: 'Room',
  temperature: property(21.5, { unitCode: 'CEL', observedAt: '2025-06-30T12:00:00Z' }),
  'https://schema.example/name': property('kitchen'),
  inside: { type: 'Relationship', object: 'urn:ngsi-ld:House:1' },
  names: { type: 'LanguageProperty', languageMap: { en: 'kitchen', de: 'Küche' } },
  many: [property(1), property(2, { datasetId: 'urn:d:1' })],
}

beforeAll(() => gateway.send('POST', '/ngsi-ld/v1/entities', stored))

it('shall return the entity in normalized representation', async () => {
  const answer = await gateway.get(path)
  expect(answer.status).toBe(200)
  expect(answer.json()).toEqual(stored)
})

it('shall be 404 for an unknown entity and 400 for an id that is not a URI', async () => {
  const unknown = await gateway.get('/ngsi-ld/v1/entities/urn:ngsi-ld:Room:none')
  expect(unknown.status).toBe(404)
  expect(unknown.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound')
  expect((await gateway.get('/ngsi-ld/v1/entities/room')).status).toBe(400)
})

describe('representations', () => {
  it.each([
    'options=keyValues',
    'options=simplified',
    'format=simplified',
    'options=normalized&format=keyValues',
  ])('shall be simplified with %s', async (query) => {
    expect((await gateway.get(`${path}?${query}`)).json()).toEqual({
      id,
      type: 'Room',
      temperature: 21.5,
      'https://schema.example/name': 'kitchen',
      inside: 'urn:ngsi-ld:House:1',
      names: { languageMap: { en: 'kitchen', de: 'Küche' } },
      many: { dataset: { '@none': 1, 'urn:d:1': 2 } },
    })
  })

  it('shall be concise with options=concise', async () => {
    const concise = (await gateway.get(`${path}?options=concise&attrs=temperature,inside`)).json()
    expect(concise).toEqual({
      id,
      type: 'Room',
      temperature: { value: 21.5, unitCode: 'CEL', observedAt: '2025-06-30T12:00:00Z' },
      inside: { object: 'urn:ngsi-ld:House:1' },
    })
  })

  it('shall represent the targets of a ListRelationship as plain URIs when concise or simplified', async () => {
    const route = { type: 'ListRelationship', objectList: [{ object: 'urn:x:1' }, { object: 'urn:x:2' }] }
    await gateway.send('POST', '/ngsi-ld/v1/entities', { id: 'urn:x:route', type: 'Route', route })
    const routeAs = async (format: string): Promise<unknown> =>
      (await gateway.get(`/ngsi-ld/v1/entities/urn:x:route?format=${format}&pick=route`)).json()
    expect(await routeAs('normalized')).toEqual({ route })
    expect(await routeAs('concise')).toEqual({ route: { objectList: ['urn:x:1', 'urn:x:2'] } })
    expect(await routeAs('simplified')).toEqual({ route: ['urn:x:1', 'urn:x:2'] })
  })

  it('shall have times of creation and modification only with sysAttrs', async () => {
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
    const entity = (await gateway.get(`${path}?options=sysAttrs`)).json()
    expect(entity).toMatchObject({
      createdAt: time,
      modifiedAt: time,
      temperature: { createdAt: time, modifiedAt: time },
    })
  })

  it('shall be in one language with lang', async () => {
    expect((await gateway.get(`${path}?lang=de&options=keyValues&pick=names`)).json()).toEqual({
      names: 'Küche',
    })
  })

  it('shall be rejected with 400 when unknown or contradictory', async () => {
    for (const query of [
      'options=pretty',
      'format=xml',
      'options=concise,keyValues',
      'format=sysAttrs',
      'pick=',
      'pick=a&attrs=b',
      'pick=a%20b',
      'local=perhaps',
      'datasetId=none',
      'lang=',
      'lang=e%20n',
      'lang=en;q=2',
    ]) {
      expect([query, (await gateway.get(`${path}?${query}`)).status]).toEqual([query, 400])
    }
  })
})

describe('projections', () => {
  it.each([
    ['attrs=temperature', ['id', 'type', 'temperature']],
    ['attrs=temperature,nothing', ['id', 'type', 'temperature']],
    ['attrs=https://schema.example/name', ['id', 'type', 'https://schema.example/name']],
    ['pick=id,temperature', ['id', 'temperature']],
    ['pick=id|temperature', ['id', 'temperature']],
    ['omit=type,many,names,inside,temperature', ['id', 'https://schema.example/name']],
  ])('%s shall show %j', async (query, members) => {
    expect(Object.keys((await gateway.get(`${path}?${query}`)).json())).toEqual(members)
  })

  it.each(['attrs=nothing', 'pick=nothing', 'pick=nothing&options=sysAttrs'])(
    '%s shall be 404',
    async (query) => {
      expect((await gateway.get(`${path}?${query}`)).status).toBe(404)
    },
  )

  it('shall show the instances of a datasetId', async () => {
    const only = (query: string) => gateway.get(`${path}?attrs=many&options=keyValues&${query}`)
    expect((await only('datasetId=urn:d:1')).json()).toHaveProperty('many', { dataset: { 'urn:d:1': 2 } })
    expect((await only('datasetId=@none')).json()).toHaveProperty('many', 1)
  })
})
