/** Content that every write rejects [NGSI-LD 4.5, 4.7, 5.2.4, 5.5.4, 5.5.7]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const entities = '/ngsi-ld/v1/entities'
const temporal = '/ngsi-ld/v1/temporal/entities'
const point = { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 49] } }
const aNull = 'urn:ngsi-ld:null'
const badRequestData = 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData'

/** Every write that accepts attributes of an existing entity, with its status for a valid one. */
async function refusals(attributes: Record<string, unknown>): Promise<readonly [string, number][]> {
  const id = freshId()
  await gateway.send('POST', entities, { id, type: 'Room', keep: property(1), location: point })
  const before = (await gateway.get(`${entities}/${id}`)).text
  const whole = { id: freshId(), type: 'Room', ...attributes }
  const answers = [
    ['create', await gateway.send('POST', entities, whole)],
    ['append', await gateway.send('POST', `${entities}/${id}/attrs`, attributes)],
    ['update', await gateway.send('PATCH', `${entities}/${id}/attrs`, attributes)],
    ['merge', await gateway.send('PATCH', `${entities}/${id}`, attributes)],
    ['replace', await gateway.send('PUT', `${entities}/${id}`, { ...whole, id })],
    ['history', await gateway.send('POST', temporal, { ...whole, id })],
  ] as const
  for (const [, answer] of answers)
    if (answer.status !== 201 && answer.status !== 204)
      expect(answer.json()).toMatchObject({ type: badRequestData })
  if (answers.every(([, { status }]) => status === 400))
    expect((await gateway.get(`${entities}/${id}`)).text).toBe(before)
  return answers.map(([name, { status }]) => [name, status])
}

const everywhere = ['create', 'append', 'update', 'merge', 'replace', 'history'].map((name) => [name, 400])

describe('every write', () => {
  it.each<[string, Record<string, unknown>]>([
    ['a location that is a Property', { location: property('here') }],
    ['an observationSpace that is a bare text', { observationSpace: 'here' }],
    [
      'an operationSpace that is a Relationship',
      { operationSpace: { type: 'Relationship', object: 'urn:x:1' } },
    ],
    ['an attribute with the name of a non-reified property', { observedAt: property(1) }],
    [
      'one with the full name of a non-reified property',
      { 'https://uri.etsi.org/ngsi-ld/unitCode': property(1) },
    ],
    ['one with the name of a system attribute', { createdAt: property('2025-01-01T00:00:00Z') }],
    ...[
      ...['value', 'object', 'languageMap', 'json', 'vocab', 'valueList', 'objectList', 'coordinates'],
      ...['previousValue', 'previousObjectList', 'entity', 'entityList'],
      ...['hasValue', 'hasObject', 'hasLanguageMap'].map((term) => `https://uri.etsi.org/ngsi-ld/${term}`),
    ].map((name): [string, Record<string, unknown>] => [
      `an attribute named ${name}`,
      { [name]: property(1) },
    ]),
    ['@type and type in one attribute', { a: { ...property(1), '@type': 'Property' } }],
    ['a Relationship with a unit', { r: { type: 'Relationship', object: 'urn:x:1', unitCode: 'CEL' } }],
    ['a JsonProperty with a unit', { j: { type: 'JsonProperty', json: {}, unitCode: 'CEL' } }],
    ['a JsonProperty that is a scalar', { j: { type: 'JsonProperty', json: 5 } }],
    ['a concise JsonProperty that is a text', { j: { json: 'text' } }],
    ['a LanguageProperty with a valueType', { l: { languageMap: { en: 'a' }, valueType: 'Text' } }],
    ['members of a proof outside a proof', { p: { ...property(1), entityIdSealed: 'urn:x:1' } }],
    [
      'members of a proof in a sub-attribute',
      { p: { ...property(1), q: { value: 1, entityTypeSealed: 'Room' } } },
    ],
    ['a relationship to an invalid IRI', { r: { type: 'Relationship', object: 'urn:x:%zz' } }],
    ['a longitude beyond 180', { location: { type: 'Point', coordinates: [181, 0] } }],
    [
      'a latitude beyond 90',
      {
        location: {
          type: 'LineString',
          coordinates: [
            [0, 0],
            [0, -90.1],
          ],
        },
      },
    ],
    ['a @context within a value', { a: property({ '@context': { b: 'urn:x:b' }, b: 1 }) }],
    ['a @context within an attribute', { a: { ...property(1), '@context': { b: 'urn:x:b' } } }],
  ])('shall reject %s', async (_, attributes) => {
    expect(await refusals(attributes)).toEqual(everywhere)
  })

  it('shall accept names that data models use although the core @context defines them', async () => {
    const names = ['name', 'description', 'title', 'status', 'values', 'data', 'reason', 'key', 'ngsildproof']
    const attributes = Object.fromEntries(names.map((name) => [name, property(1)]))
    const taken = await refusals(attributes)
    expect(taken.map(([, status]) => status)).toEqual([201, 204, 204, 204, 204, 204])
  })

  it('shall reject id and type with both spellings', async () => {
    const id = freshId()
    for (const double of [{ '@id': id }, { '@type': 'Room' }]) {
      expect((await gateway.send('POST', entities, { id, type: 'Room', ...double })).status).toBe(400)
      expect((await gateway.send('POST', temporal, { id, type: 'Room', ...double })).status).toBe(400)
    }
    const registration = { type: 'ContextSourceRegistration', endpoint: 'http://h.example' }
    const information = [{ entities: [{ type: 'Room', '@type': 'Hall' }] }]
    const registrations = '/ngsi-ld/v1/csourceRegistrations'
    expect((await gateway.send('POST', registrations, { ...registration, information })).status).toBe(400)
    const doubled = {
      ...registration,
      '@type': 'Subscription',
      information: [{ entities: [{ type: 'Room' }] }],
    }
    expect((await gateway.send('POST', registrations, doubled)).status).toBe(400)
  })

  it('shall accept raw JSON with any members, and geometries at the edge of the globe', async () => {
    const taken = await refusals({
      j: { type: 'JsonProperty', json: { '@context': 5, id: 'no URI' } },
      operationSpace: { type: 'Point', coordinates: [-180, 90] },
      k: { json: [1, { a: null }] },
    })
    expect(taken.map(([, status]) => status)).toEqual([201, 204, 204, 204, 204, 204])
  })
})

describe('NGSI-LD Null', () => {
  const url = async (): Promise<string> => {
    const id = freshId()
    const l = { type: 'LanguageProperty', languageMap: { en: 'a', fr: 'b' } }
    await gateway.send('POST', entities, { id, type: 'Room', a: property(1), l, j: { json: { x: 1 } } })
    return `${entities}/${id}`
  }

  it.each<[string, 'POST' | 'PATCH' | 'PUT', string, unknown]>([
    ['in an append', 'POST', '/attrs', { a: property(aNull) }],
    ['as a bare value in an append', 'POST', '/attrs', { a: aNull }],
    ['in the replacement of an entity', 'PUT', '', { type: 'Room', a: aNull }],
    ['in the replacement of an attribute', 'PUT', '/attrs/a', property(aNull)],
    ['within a value in an update', 'PATCH', '/attrs', { a: property({ b: aNull }) }],
    ['within a value in a partial update', 'PATCH', '/attrs/a', { value: { b: aNull } }],
    ['for one language in an update', 'PATCH', '/attrs', { l: { languageMap: { en: aNull, fr: 'c' } } }],
    ['for one language in a partial update', 'PATCH', '/attrs/l', { languageMap: { en: aNull } }],
    ['for a datasetId', 'PATCH', '/attrs/a', { value: 2, datasetId: aNull }],
    ['for a type', 'PATCH', '', { type: aNull }],
    ['%s shall be rejected', 'PATCH', '', { a: property([aNull]) }],
  ])('%s shall be rejected', async (_, method, path, body) => {
    const at = await url()
    const refused = await gateway.send(method, at + path, body as object)
    expect([refused.status, refused.json()]).toMatchObject([400, { type: badRequestData }])
    expect((await gateway.get(at)).json()).toMatchObject({ a: { value: 1 }, l: { languageMap: { en: 'a' } } })
  })

  it('shall delete a whole language map and a whole JsonProperty in an update', async () => {
    const at = await url()
    const body = { l: { languageMap: { '@none': aNull } }, j: { json: aNull } }
    expect((await gateway.send('PATCH', `${at}/attrs`, body)).status).toBe(204)
    const left = (await gateway.get(at)).json() as object
    expect(Object.keys(left)).toEqual(['id', 'type', 'a'])
  })
})

describe('a partial update', () => {
  it('shall not add a unit to a relationship nor the members of a proof to an attribute', async () => {
    const id = freshId()
    await gateway.send('POST', entities, { id, type: 'Room', a: property(1), r: { object: 'urn:x:1' } })
    const unit = await gateway.send('PATCH', `${entities}/${id}/attrs/r`, { unitCode: 'CEL' })
    const seal = await gateway.send('PATCH', `${entities}/${id}/attrs/a`, { entityIdSealed: id })
    expect([unit.status, seal.status]).toEqual([400, 400])
    const merged = await gateway.send('PATCH', `${entities}/${id}`, { r: { unitCode: 'CEL' } })
    expect(merged.status).toBe(400)
  })
})

describe('an id', () => {
  it.each([
    ...['http://h:port/', 'http://h:80a', 'http://a@b@h/', 'http://h:1:2/', 'http://[::1]:x/'],
    ...['urn:x:%zz', 'urn:x:a#b#c', 'urn:x:[1]', 'urn:x:a b', 'urn:x:{1}', 'nothing', 'urn:'],
  ])('%s is not an IRI and shall be rejected', async (id) => {
    expect((await gateway.send('POST', entities, { id, type: 'Room' })).status).toBe(400)
    expect((await gateway.get(`${entities}?id=${encodeURIComponent(id)}`)).status).toBe(400)
  })

  it.each([
    'http://h:8080/',
    'http://h:/',
    'http://a:b@h:1/c',
    'http://[::1]:80/',
    'file:///a',
    'urn:a://b:c',
  ])('may have the authority of %s', async (uri) => {
    const id = `${uri}#${freshId()}`
    expect((await gateway.send('POST', entities, { id, type: 'Room' })).status).toBe(201)
  })

  it('may be an IRI with letters of any script', async () => {
    const id = `${freshId()}:Gebäude-é😀`
    expect((await gateway.send('POST', entities, { id, type: 'Room' })).status).toBe(201)
    expect((await gateway.get(`${entities}/${encodeURIComponent(id)}`)).json()).toEqual({ id, type: 'Room' })
  })
})
