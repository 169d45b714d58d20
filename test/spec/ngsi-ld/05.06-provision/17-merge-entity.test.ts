/** Merge Entity and Batch Entity Merge [NGSI-LD 5.6.17, 5.6.20, 5.5.12, 6.5.3.4]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const nothing = 'urn:ngsi-ld:null'
const read = async (id: string): Promise<object> => (await gateway.get(`${path}/${id}`)).json()

async function room(attributes: object): Promise<string> {
  const id = freshId('Room')
  await gateway.send('POST', path, { id, type: 'Room', ...attributes })
  return id
}

describe('PATCH of an entity', () => {
  it('shall merge members and values recursively, and delete members set to NGSI-LD Null', async () => {
    const id = await room({
      a: property({ x: 1, y: { z: 2, w: 3 } }, { unitCode: 'CEL', accuracy: property(0.1) }),
      b: property(1),
      c: property(1),
    })
    const patch = {
      a: { value: { y: { z: nothing, v: 4 } }, accuracy: { value: 0.5 } },
      b: nothing,
      d: property(5),
    }
    expect((await gateway.send('PATCH', `${path}/${id}`, patch)).status).toBe(204)
    expect(await read(id)).toEqual({
      id,
      type: 'Room',
      a: property({ x: 1, y: { w: 3, v: 4 } }, { unitCode: 'CEL', accuracy: property(0.5) }),
      c: property(1),
      d: property(5),
    })
  })

  it('shall merge into geometries like into other values, and reject an invalid result', async () => {
    const at = (...coordinates: number[]) => ({ type: 'GeoProperty', value: { type: 'Point', coordinates } })
    const id = await room({ a: at(1, 2), b: property(1, { c: at(1, 2) }) })
    const merge = async (body: object, query = '') =>
      (await gateway.send('PATCH', `${path}/${id}${query}`, body)).status
    expect(await merge({ a: { type: 'GeoProperty', value: { coordinates: [3, 4] } } })).toBe(204)
    expect(await read(id)).toMatchObject({ a: at(3, 4) })
    expect(
      await merge({ a: { value: { coordinates: [5, 6] } }, b: { c: { value: { coordinates: [7, 8] } } } }),
    ).toBe(204)
    expect(await read(id)).toMatchObject({ a: at(5, 6), b: property(1, { c: at(7, 8) }) })
    expect(await merge({ a: { coordinates: [9, 9] } }, '?format=simplified')).toBe(204)
    const before = await read(id)
    expect(before).toMatchObject({ a: at(9, 9) })
    for (const wrong of [
      { coordinates: ['x'] },
      { coordinates: nothing },
      { type: nothing },
      { type: 'Polygon' },
    ]) {
      const a = { type: 'GeoProperty', value: wrong }
      for (const body of [{ a }, { b: { c: a } }, { d: a }, { d: property(1, { e: a }) }])
        expect([await merge(body), JSON.stringify(body)]).toEqual([400, JSON.stringify(body)])
    }
    expect(await read(id)).toEqual(before)
  })

  it('shall accept application/merge-patch+json as JSON', async () => {
    const id = await room({ a: property(1) })
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    expect((await gateway.ask('PATCH', `${path}/${id}`, { body: { a: { value: 2 } }, headers })).status).toBe(
      204,
    )
    expect(await read(id)).toMatchObject({ a: property(2) })
  })

  it('shall change only the instance with the given datasetId', async () => {
    const other = { datasetId: 'urn:d:1' }
    const id = await room({ a: [property(1), property(2, other)] })
    await gateway.send('PATCH', `${path}/${id}`, { a: { type: 'Property', value: nothing, ...other } })
    expect(await read(id)).toMatchObject({ a: property(1) })
    await gateway.send('PATCH', `${path}/${id}`, { a: property(3, other) })
    await gateway.send('PATCH', `${path}/${id}`, { a: nothing })
    expect(await read(id)).toMatchObject({ a: property(3, other) })
  })

  it('shall add types, and set and delete the scope', async () => {
    const id = await room({ scope: '/a/b' })
    await gateway.send('PATCH', `${path}/${id}`, { type: 'Office', scope: ['/c', '/d'] })
    expect(await read(id)).toEqual({ id, type: ['Room', 'Office'], scope: ['/c', '/d'] })
    await gateway.send('PATCH', `${path}/${id}`, { scope: 'e/f' })
    expect(await read(id)).toHaveProperty('scope', '/e/f')
    await gateway.send('PATCH', `${path}/${id}`, { scope: nothing })
    expect(await read(id)).not.toHaveProperty('scope')
  })

  it('shall keep the kinds when values are simplified, and reject values that do not fit', async () => {
    const id = await room({
      a: property(1),
      r: { type: 'Relationship', object: 'urn:x:1' },
      l: { type: 'LanguageProperty', languageMap: { en: 'one', de: 'eins' } },
      p: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8, 49] } },
    })
    const simplified = { a: 2, r: 'urn:x:2', l: { languageMap: { en: 'two' } }, n: 'new' }
    for (const wish of ['options=keyValues', 'options=simplified', 'format=simplified']) {
      expect((await gateway.send('PATCH', `${path}/${id}?${wish}`, simplified)).status).toBe(204)
    }
    expect(await read(id)).toMatchObject({
      a: property(2),
      r: { type: 'Relationship', object: 'urn:x:2' },
      l: { type: 'LanguageProperty', languageMap: { en: 'two', de: 'eins' } },
      n: property('new'),
    })
    const bad: object[] = [{ r: 7 }, { l: 'text' }, { a: { languageMap: { en: 'x' } } }, { p: 'nowhere' }]
    for (const body of bad) {
      const answer = await gateway.send('PATCH', `${path}/${id}?options=simplified`, body)
      expect([answer.status, JSON.stringify(body)]).toEqual([400, JSON.stringify(body)])
    }
  })

  it('shall write one language with lang, and set times with observedAt', async () => {
    const id = await room({
      l: { type: 'LanguageProperty', languageMap: { en: 'one', de: 'eins' } },
      a: property(1, { observedAt: '2024-01-01T00:00:00Z' }),
      b: property(1),
    })
    expect((await gateway.send('PATCH', `${path}/${id}?lang=fr`, { l: { value: 'un' } })).status).toBe(204)
    expect(await read(id)).toMatchObject({ l: { languageMap: { en: 'one', de: 'eins', fr: 'un' } } })
    expect((await gateway.send('PATCH', `${path}/${id}?lang=fr`, { l: nothing })).status).toBe(204)
    expect(await read(id)).toHaveProperty('l.languageMap', { en: 'one', de: 'eins' })
    const time = '2025-01-01T00:00:00Z'
    const both = { a: { value: 2 }, b: { value: 2 } }
    expect((await gateway.send('PATCH', `${path}/${id}?observedAt=${time}`, both)).status).toBe(204)
    expect(await read(id)).toMatchObject({ a: property(2, { observedAt: time }), b: property(2) })
    expect(await read(id)).not.toHaveProperty('b.observedAt')
  })

  it('shall merge members without a value into an existing attribute', async () => {
    const id = await room({ a: property(1, { note: property('x') }), l: { valueList: [1] } })
    const body = { a: { unitCode: 'CEL', note: { unitCode: 'C62' } } }
    expect((await gateway.send('PATCH', `${path}/${id}`, body)).status).toBe(204)
    expect(await read(id)).toMatchObject({
      a: property(1, { unitCode: 'CEL', note: property('x', { unitCode: 'C62' }) }),
    })
    for (const lacking of [{ b: { unitCode: 'CEL' } }, { b: { type: 'Property' } }]) {
      expect((await gateway.send('PATCH', `${path}/${id}`, lacking)).status).toBe(400)
    }
    expect((await gateway.send('PATCH', `${path}/${id}?options=simplified`, { l: [2, 3] })).status).toBe(204)
    expect(await read(id)).toMatchObject({ l: { type: 'ListProperty', valueList: [2, 3] } })
    expect((await gateway.send('PATCH', `${path}/${id}`, { l: { valueList: [nothing] } })).status).toBe(204)
    expect(await read(id)).not.toHaveProperty('l')
  })

  it.each([
    ['an id that contradicts the path', '', { id: 'urn:other:1' }, 400],
    ['an invalid language', '?lang=e%20n', { a: 1 }, 400],
    ['an invalid time', '?observedAt=today', { a: 1 }, 400],
    ['an unknown option', '?options=temporalValues', { a: 1 }, 400],
    ['a JSON null', '', { a: { value: null } }, 400],
    ['an invalid name', '', { 'a b': 1 }, 400],
    ['types that the entity lacks', '?type=Car', { a: 1 }, 404],
  ])('shall reject %s', async (_, query, body, status) => {
    const id = await room({ a: property(1) })
    const answer = await gateway.send('PATCH', `${path}/${id}${query}`, body)
    expect([answer.status, answer.text]).toEqual([status, answer.text])
  })

  it('shall be 404 for an unknown entity, 400 for an invalid id, 405 for the path of the list', async () => {
    for (const [id, status] of [
      ['urn:x:none', 404],
      ['none', 400],
      ['', 405],
    ] as const) {
      expect((await gateway.send('PATCH', `${path}/${id}`, { a: 1 })).status).toBe(status)
    }
  })
})

describe('batch merge', () => {
  it('shall merge each item, and list the failed ones in a 207', async () => {
    const [one, two] = [await room({ a: property(1), b: property(1) }), await room({ a: property(1) })]
    const merge = '/ngsi-ld/v1/entityOperations/merge'
    const items = [
      { id: one, type: 'Room', a: { value: 2 }, b: nothing },
      { id: two, type: 'Office', a: property(3) },
    ]
    expect((await gateway.send('POST', merge, items)).status).toBe(204)
    expect(await read(one)).toEqual({ id: one, type: 'Room', a: property(2) })
    expect(await read(two)).toEqual({ id: two, type: ['Room', 'Office'], a: property(3) })
    const mixed = await gateway.send('POST', `${merge}/`, [
      { id: 'urn:x:none', type: 'Room' },
      { id: one, type: 'Room', a: { value: 5 } },
      { id: two, type: 'Room', a: null },
    ])
    expect(mixed.status).toBe(207)
    const { success, errors } = mixed.json() as { success: string[]; errors: { entityId: string }[] }
    expect(success).toEqual([one])
    expect(errors.map(({ entityId }) => entityId)).toEqual([two, 'urn:x:none'])
  })
})
