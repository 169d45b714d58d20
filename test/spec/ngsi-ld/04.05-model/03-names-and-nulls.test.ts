/**
 * Names, ids, types and scopes, and where NGSI-LD Null and JSON null are allowed [NGSI-LD 4.5.0, 4.6.2,
 * 4.18].
 */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const batches = '/ngsi-ld/v1/entityOperations'
const nothing = 'urn:ngsi-ld:null'
const make = async (members: object = {}): Promise<string> => {
  const id = freshId()
  expect((await gateway.send('POST', path, { id, type: 'Room', a: property(1), ...members })).status).toBe(
    201,
  )
  return id
}
const read = async (id: string): Promise<Record<string, unknown>> =>
  (await gateway.get(`${path}/${id}`)).json()

describe('a name', () => {
  it.each(['ä', '名前', 'a_b1', 'ex:speed', 'http://x.example/a-b'])(
    'shall be accepted: %s',
    async (name) => {
      expect(await read(await make({ [name]: property(2) }))).toHaveProperty([name], property(2))
    },
  )

  it.each(['1a', '_a', 'a-b', 'a b', 'a.b', 'a$', 'a(b)', '', '@a', 'a;b', nothing])(
    'shall be rejected: %s',
    async (name) => {
      const id = await make()
      const body = { [name]: property(2) }
      for (const [method, place, sent] of [
        ['POST', '', { id: freshId(), type: 'Room', ...body }],
        ['POST', '', { id: freshId(), type: name, a: 1 }],
        ['POST', '', { id: freshId(), type: 'Room', a: property(1, body) }],
        ['POST', `/${id}/attrs`, body],
        ['PATCH', `/${id}/attrs`, body],
        ['PATCH', `/${id}`, body],
      ] as const) {
        expect([(await gateway.send(method, `${path}${place}`, sent)).status, method, place]).toEqual([
          400,
          method,
          place,
        ])
      }
    },
  )
})

describe('types', () => {
  it('shall only be added by updates, and be removed by replacement', async () => {
    const id = await make()
    await gateway.send('POST', `${path}/${id}/attrs`, { type: 'B', a: 1 })
    await gateway.send('PATCH', `${path}/${id}/attrs`, { type: ['C'], a: 1 })
    await gateway.send('PATCH', `${path}/${id}`, { type: 'Room' })
    await gateway.send('POST', `${batches}/update`, [{ id, type: 'D', a: 1 }])
    await gateway.send('POST', `${batches}/merge`, [{ id, type: 'E', a: 1 }])
    await gateway.send('POST', `${batches}/upsert?options=update`, [{ id, type: ['F', 'B'], a: 1 }])
    expect((await read(id))['type']).toEqual(['Room', 'B', 'C', 'D', 'E', 'F'])
    await gateway.send('POST', `${batches}/upsert`, [{ id, type: ['G', 'H'], a: 1 }])
    expect((await read(id))['type']).toEqual(['G', 'H'])
    await gateway.send('PUT', `${path}/${id}`, { type: 'I' })
    expect((await read(id))['type']).toBe('I')
  })
})

describe('a scope', () => {
  it('shall be overwritten by append, extended with noOverwrite, replaced by update if present', async () => {
    const id = await make()
    const refused = await gateway.send('PATCH', `${path}/${id}/attrs`, { scope: '/a' })
    expect([refused.status, refused.json()]).toEqual([
      207,
      {
        updated: [],
        notUpdated: [{ attributeName: 'https://uri.etsi.org/ngsi-ld/scope', reason: expect.any(String) }],
      },
    ])
    await gateway.send('POST', `${path}/${id}/attrs`, { scope: ['/a', '/b'] })
    await gateway.send('POST', `${path}/${id}/attrs`, { scope: '/c' })
    await gateway.send('POST', `${path}/${id}/attrs?options=noOverwrite`, { scope: '/d/e' })
    expect((await read(id))['scope']).toEqual(['/c', '/d/e'])
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { scope: '/f' })).status).toBe(204)
    expect((await read(id))['scope']).toBe('/f')
  })

  it('shall not be an attribute in a partial update or a replacement (400), but be deletable like one', async () => {
    const id = await make({ scope: '/a' })
    const scope = `${path}/${id}/attrs/scope`
    expect((await gateway.send('PATCH', scope, { value: '/b' })).status).toBe(400)
    expect((await gateway.send('PUT', scope, property('/b'))).status).toBe(400)
    expect((await gateway.ask('DELETE', scope)).status).toBe(204)
    expect((await gateway.ask('DELETE', scope)).status).toBe(404)
    expect(await read(id)).not.toHaveProperty('scope')
  })

  it.each(['a b', '', [], 5, '/', '//a', '/a/', ['/a', 5], property('/a')])(
    'shall be a path, not %j',
    async (scope) => {
      const id = freshId()
      expect((await gateway.send('POST', path, { id, type: 'Room', scope })).status).toBe(400)
    },
  )
})

describe('NGSI-LD Null', () => {
  const relation = { type: 'Relationship', object: 'urn:x:1' }
  it.each([
    ['an id', { id: nothing }],
    ['a type', { type: nothing }],
    ['one of the types', { type: ['Room', nothing] }],
    ['one of the scopes', { scope: ['/a', nothing] }],
    ['the type of a target', { a: { ...relation, objectType: nothing } }],
    ['the type of a value', { a: property(1, { valueType: nothing }) }],
    ['a target', { a: { ...relation, object: nothing } }],
    ['one of the targets', { a: { ...relation, object: ['urn:x:1', nothing] } }],
    ['an item of a list', { a: { valueList: [1, nothing] } }],
    ['a text of a language', { a: { languageMap: { en: nothing } } }],
    ['within JSON', { a: { json: { b: nothing } } }],
    ['a unit', { a: property(1, { unitCode: nothing }) }],
    ['a time', { a: property(1, { observedAt: nothing }) }],
    ['a sub-attribute', { a: property(1, { b: nothing }) }],
  ])('shall not be %s in a create or replace', async (_, members) => {
    const id = await make()
    const body = { id: freshId(), type: 'Room', a: property(1), ...members }
    expect((await gateway.send('POST', path, body)).status).toBe(400)
    const { id: __, ...rest } = body
    expect((await gateway.send('PUT', `${path}/${id}`, { ...rest, ...members })).status).toBe(400)
    const batch = await gateway.send('POST', `${batches}/create`, [body])
    expect([batch.status, batch.json()]).toMatchObject([207, { success: [] }])
    expect((await read(id))['a']).toEqual(property(1))
  })

  it.each([
    ['type', { type: nothing }],
    ['one of the types', { type: ['Hall', nothing] }],
    ['an item of a value', { a: property([1, nothing]) }],
    ['within an item of a value', { a: property([{ b: nothing }]) }],
    ['an item of a list', { a: { valueList: [1, nothing] } }],
    ['one of the terms', { a: { vocab: ['x', nothing] } }],
    ['one of the texts', { a: { languageMap: { en: ['x', nothing] } } }],
    ['one of the targets', { a: { ...relation, object: ['urn:x:1', nothing] } }],
  ])('shall not be stored as data, as %s', async (_, members) => {
    const id = await make()
    for (const place of ['', '/attrs']) {
      expect([(await gateway.send('PATCH', `${path}/${id}${place}`, members)).status, place]).toEqual([
        400,
        place,
      ])
    }
    expect(await read(id)).toEqual({ id, type: 'Room', a: property(1) })
  })
})

describe('JSON null', () => {
  it.each([
    { id: null },
    { type: null },
    { scope: null },
    { a: null },
    { a: { type: null, value: 1 } },
    { a: property(null) },
    { a: property(1, { unitCode: null }) },
    { a: property(1, { observedAt: null }) },
    { a: property(1, { b: null }) },
    { a: { object: null } },
    { a: { languageMap: { en: null } } },
    { a: { json: null } },
    { a: { valueList: null } },
  ])('shall be rejected in every write: %j', async (members) => {
    const id = await make()
    for (const [method, place] of [
      ['POST', '/attrs'],
      ['PATCH', '/attrs'],
      ['PATCH', ''],
      ['PUT', ''],
    ] as const) {
      const body = { type: 'Room', a: property(2), ...members }
      expect([(await gateway.send(method, `${path}/${id}${place}`, body)).status, method]).toEqual([
        400,
        method,
      ])
    }
    const created = { id: freshId(), type: 'Room', ...members }
    expect((await gateway.send('POST', path, created)).status).toBe(400)
    expect(await read(id)).toEqual({ id, type: 'Room', a: property(1) })
  })
})
