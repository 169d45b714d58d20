/** Kinds of attributes, their representations, and their other members [NGSI-LD 4.5.1 to 4.5.24]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const point = { type: 'Point', coordinates: [-1, 38] }
const make = async (attributes: object): Promise<string> => {
  const id = freshId()
  expect([(await gateway.send('POST', path, { id, type: 'Room', ...attributes })).status, id]).toEqual([
    201,
    id,
  ])
  return id
}
const read = async (id: string, query = ''): Promise<Record<string, unknown>> =>
  (await gateway.get(`${path}/${id}${query}`)).json()

/** One attribute of each kind: normalized, concise, simplified. */
const kinds: readonly (readonly [string, object, unknown, unknown])[] = [
  ['Property', property(1), 1, 1],
  ['GeoProperty', { type: 'GeoProperty', value: point }, point, point],
  ['Relationship', { type: 'Relationship', object: 'urn:x:1' }, { object: 'urn:x:1' }, 'urn:x:1'],
  [
    'Relationship to several',
    { type: 'Relationship', object: ['urn:x:1', 'urn:x:2'] },
    { object: ['urn:x:1', 'urn:x:2'] },
    ['urn:x:1', 'urn:x:2'],
  ],
  ...[
    ['LanguageProperty', 'languageMap', { en: 'a', de: ['b', 'c'] }],
    ['VocabProperty', 'vocab', ['hot', 'cold']],
    ['JsonProperty', 'json', { type: 'x', '@id': 'y', name: { id: 1, none: null } }],
  ].map(
    ([type, member, value]) =>
      [type as string, { type, [member as string]: value }, ...twice({ [member as string]: value })] as const,
  ),
  [
    'ListProperty',
    { type: 'ListProperty', valueList: [3, 1, 2, 1] },
    { valueList: [3, 1, 2, 1] },
    [3, 1, 2, 1],
  ],
  [
    'ListRelationship',
    { type: 'ListRelationship', objectList: [{ object: 'urn:x:2' }, { object: 'urn:x:1' }] },
    { objectList: ['urn:x:2', 'urn:x:1'] },
    ['urn:x:2', 'urn:x:1'],
  ],
]
function twice<T>(value: T): readonly [T, T] {
  return [value, value]
}

describe.each(kinds)('a %s', (_, normalized, concise, simplified) => {
  it('shall be accepted and returned normalized and concise, and returned simplified', async () => {
    for (const given of [normalized, concise]) {
      const id = await make({ a: given })
      expect((await read(id))['a']).toEqual(normalized)
      expect((await read(id, '?format=concise'))['a']).toEqual(concise)
      expect((await read(id, '?format=simplified'))['a']).toEqual(simplified)
      expect((await read(id, '?options=keyValues'))['a']).toEqual(simplified)
    }
  })

  it('shall be preserved by a simplified merge, which accepts it as it was returned', async () => {
    const id = await make({ a: normalized })
    const shown = { a: simplified }
    expect((await gateway.send('PATCH', `${path}/${id}?format=simplified`, shown)).status).toBe(204)
    expect((await read(id))['a']).toEqual(normalized)
    const member = Object.keys(normalized)[1]!
    const foreign = member === 'json' ? { a: { valueList: [1] } } : { a: { json: { a: 1 } } }
    expect((await gateway.send('PATCH', `${path}/${id}?format=simplified`, foreign)).status).toBe(400)
  })

  it('shall be a sub-attribute of any other, and have sub-attributes', async () => {
    const inner = {
      ...normalized,
      note: property(1, { deeper: { type: 'Relationship', object: 'urn:x:1' } }),
    }
    const outer = { type: 'LanguageProperty', languageMap: { en: 'x' }, a: inner }
    expect((await read(await make({ outer })))['outer']).toEqual(outer)
  })

  it('shall not be mixed with another, in any write', async () => {
    const id = await make({ a: 1 })
    const [, member] = Object.keys(normalized)
    const mixed: object[] = [
      { ...normalized, [member === 'object' ? 'value' : 'object']: 'urn:x:1' },
      { type: (normalized as { type: string }).type },
    ]
    for (const a of mixed) {
      const sent = JSON.stringify(a)
      const send = async (method: string, place: string, body: object) =>
        [(await gateway.send(method, `${path}${place}`, body)).status, method, sent] as const
      expect(await send('POST', '', { id: freshId(), type: 'Room', a })).toEqual([400, 'POST', sent])
      expect(await send('POST', `/${id}/attrs`, { a })).toEqual([400, 'POST', sent])
      expect(await send('PATCH', `/${id}/attrs`, { a })).toEqual([400, 'PATCH', sent])
      // A merge may omit the value.
      if (Object.keys(a).length > 1)
        expect(await send('PATCH', `/${id}`, { a })).toEqual([400, 'PATCH', sent])
      expect(await send('PUT', `/${id}/attrs/a`, a)).toEqual([400, 'PUT', sent])
    }
    expect((await read(id))['a']).toEqual(property(1))
  })
})

describe('an attribute with several spellings', () => {
  it('shall be a single geometry, as an object or as its text', async () => {
    const id = await make({ place: { type: 'GeoProperty', value: JSON.stringify(point) } })
    expect((await read(id))['place']).toEqual({ type: 'GeoProperty', value: point })
  })

  it('shall be a VocabProperty under the name it had in 1.7', async () => {
    const id = await make({ kind: { type: 'VocabularyProperty', vocab: 'hot' } })
    expect((await read(id))['kind']).toEqual({ type: 'VocabProperty', vocab: 'hot' })
  })

  it('shall not be a collection of geometries', async () => {
    const value = { type: 'GeometryCollection', geometries: [point] }
    for (const place of [{ type: 'GeoProperty', value }, { value }, value]) {
      const answer = await gateway.send('POST', path, { id: freshId(), type: 'Room', place })
      expect([answer.status, JSON.stringify(place)]).toEqual([400, JSON.stringify(place)])
    }
  })
})

describe('members that only responses have', () => {
  const systemMembers = {
    createdAt: '2000-01-01T00:00:00Z',
    modifiedAt: 'never',
    deletedAt: '2000-01-01T00:00:00Z',
    instanceId: 'urn:x:instance',
    previousValue: 1,
    previousObject: 'urn:x:1',
    previousLanguageMap: {},
    previousVocab: 'hot',
    previousJson: {},
    previousValueList: [],
    previousObjectList: [],
    entity: { id: 'urn:x:1', type: 'Room' },
    entityList: [],
  }
  const system = { createdAt: 'never', modifiedAt: 5, deletedAt: '2000-01-01T00:00:00Z' }

  it('shall be ignored in every write', async () => {
    const id = await make({ ...system, a: property(1, systemMembers) })
    expect(await read(id)).toEqual({ id, type: 'Room', a: property(1) })
    for (const [method, place, body] of [
      ['PATCH', '/attrs/a', { value: 2, ...systemMembers }],
      ['PATCH', '/attrs', { ...system, a: property(2, systemMembers) }],
      ['POST', '/attrs', { ...system, a: property(2, systemMembers) }],
      ['PATCH', '', { ...system, a: property(2, systemMembers) }],
      ['PUT', '/attrs/a', property(2, systemMembers)],
      ['PUT', '', { ...system, type: 'Room', a: property(2, systemMembers) }],
    ] as const) {
      expect([(await gateway.send(method, `${path}/${id}${place}`, body)).status, method]).toEqual([
        204,
        method,
      ])
      expect((await read(id))['a']).toEqual(property(2))
    }
    const { createdAt } = await read(id, '?options=sysAttrs')
    expect(Date.parse(createdAt as string)).toBeGreaterThan(Date.parse('2020-01-01T00:00:00Z'))
  })
})

describe('members of an attribute', () => {
  it('shall be stored, with names resolved by the @context', async () => {
    const a = property(1, {
      observedAt: '2024-01-01T00:00:00Z',
      unitCode: 'CEL',
      datasetId: 'urn:d:1',
      valueType: 'Room',
      expiresAt: '2999-01-01T00:00:00Z',
    })
    const b = { type: 'Relationship', object: 'urn:x:1', objectType: ['Room', 'Hall'] }
    const id = freshId()
    const body = { '@context': { Room: 'http://x.example/Room' }, id, type: 'Room', a, b }
    expect((await gateway.send('POST', path, body)).status).toBe(201)
    expect(await read(id, '?options=sysAttrs')).toMatchObject({
      a: { ...a, valueType: 'http://x.example/Room' },
      b: { ...b, objectType: ['http://x.example/Room', 'Hall'] },
    })
  })

  it.each([
    { unitCode: 5 },
    { observedAt: '2024-01-01' },
    { expiresAt: 'soon' },
    { datasetId: 'none' },
    { valueType: 5 },
    { objectType: [] },
    { note: { type: 'Property' } },
    { note: { vocab: '' } },
    { note: { languageMap: { e_n: 'x' } } },
    { note: { objectList: [{}] } },
  ])('shall be rejected when malformed: %j', async (members) => {
    const body = { id: freshId(), type: 'Room', a: property(1, members) }
    expect((await gateway.send('POST', path, body)).status).toBe(400)
  })

  it.each([
    ['2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z'],
    ['2024-01-01T00:00:00,5Z', '2024-01-01T00:00:00.500Z'],
    ['2024-02-29T23:59:59.123456Z', '2024-02-29T23:59:59.123456Z'],
    ['2024-01-01T00:00:00+01:00', undefined],
    ['2024-01-01T00:00:00-00:00', undefined],
    ['2024-01-01T00:00:00', undefined],
    ['2024-01-01T00:00Z', undefined],
    ['2024-01', undefined],
    ['2023-02-29T00:00:00Z', undefined],
    ['2024-01-01T24:00:00Z', undefined],
  ])('shall store the time %s as %s', async (given, kept) => {
    const id = freshId()
    const body = { id, type: 'Room', a: property(1, { observedAt: given }) }
    expect((await gateway.send('POST', path, body)).status).toBe(kept === undefined ? 400 : 201)
    if (kept !== undefined) expect(await read(id)).toMatchObject({ a: { observedAt: kept } })
  })
})
