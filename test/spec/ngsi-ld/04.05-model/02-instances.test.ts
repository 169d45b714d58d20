/** Several instances of one attribute, distinguished by datasetId [NGSI-LD 4.5.5]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const batches = '/ngsi-ld/v1/entityOperations'
const nothing = 'urn:ngsi-ld:null'
const one = { datasetId: 'urn:d:1' }
const two = { datasetId: 'urn:d:2' }

async function make(a: unknown = [property(1), property(2, one), property(3, two)]): Promise<string> {
  const id = freshId()
  expect((await gateway.send('POST', path, { id, type: 'Room', a })).status).toBe(201)
  return id
}
const read = async (id: string, query = ''): Promise<unknown> =>
  ((await gateway.get(`${path}/${id}${query}`)).json() as { a?: unknown }).a

describe('the default instance', () => {
  it('shall have no datasetId, and be addressed as @none', async () => {
    const none = { datasetId: '@none' }
    const id = await make([property(1, none), property(2, one)])
    expect(await read(id)).toEqual([property(1), property(2, one)])
    expect(await read(id, '?datasetId=@none')).toEqual(property(1))
    expect(await read(id, '?format=simplified')).toEqual({ dataset: { '@none': 1, 'urn:d:1': 2 } })
    await gateway.send('PATCH', `${path}/${id}/attrs/a`, { value: 5, ...none })
    expect(await read(id)).toEqual([property(5), property(2, one)])
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a?datasetId=@none`)).status).toBe(204)
    expect(await read(id)).toEqual(property(2, one))
    expect(await read(id, '?format=simplified')).toEqual({ dataset: { 'urn:d:1': 2 } })
  })

  it('shall be the only one deleted without a datasetId, and all with deleteAll', async () => {
    const id = await make()
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a`)).status).toBe(204)
    expect(await read(id)).toEqual([property(2, one), property(3, two)])
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a`)).status).toBe(404)
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a?deleteAll=true`)).status).toBe(204)
    expect(await read(id)).toBeUndefined()
  })
})

describe('a write', () => {
  it.each<[string, string, unknown]>([
    ['POST', '/attrs', { a: property(9, one) }],
    ['PATCH', '/attrs', { a: property(9, one) }],
    ['PATCH', '/attrs/a', { value: 9, ...one }],
    ['PUT', '/attrs/a', property(9, one)],
    ['PATCH', '', { a: { value: 9, ...one } }],
    ['PATCH', '?format=simplified', { a: { dataset: { 'urn:d:1': 9 } } }],
    ['POST', 'update', property(9, one)],
    ['POST', 'merge', property(9, one)],
    ['POST', 'upsert?options=update', property(9, one)],
  ])('shall change only the instance with this datasetId: %s %s', async (method, place, body) => {
    const id = await make()
    const isBatch = place !== '' && !/^[/?]/.test(place)
    const answer = isBatch
      ? await gateway.send(method, `${batches}/${place}`, [{ id, type: 'Room', a: body }])
      : await gateway.send(method, `${path}/${id}${place}`, body)
    expect(answer.status).toBe(204)
    expect(await read(id)).toEqual([property(1), property(9, one), property(3, two)])
  })

  it.each<[string, string, unknown]>([
    ['PATCH', '/attrs', { a: property(nothing, one) }],
    ['PATCH', '/attrs/a', { value: nothing, ...one }],
    ['PATCH', '', { a: property(nothing, one) }],
  ])('shall delete only the instance with this datasetId: %s %s', async (method, place, body) => {
    const id = await make()
    expect((await gateway.send(method, `${path}/${id}${place}`, body)).status).toBe(204)
    expect(await read(id)).toEqual([property(1), property(3, two)])
  })

  it('shall change only the given instance of a sub-attribute', async () => {
    const id = await make(property(1, { b: [property(1), property(2, one)] }))
    const at = `${path}/${id}`
    await gateway.send('PATCH', `${at}/attrs/a`, { b: property(3, one) })
    expect(await read(id)).toEqual(property(1, { b: [property(1), property(3, one)] }))
    await gateway.send('PATCH', at, { a: { b: { value: 4, ...one } } })
    expect(await read(id)).toEqual(property(1, { b: [property(1), property(4, one)] }))
    await gateway.send('PATCH', `${at}/attrs/a`, { b: nothing })
    expect(await read(id)).toEqual(property(1, { b: property(4, one) }))
    await gateway.send('PATCH', `${at}/attrs/a`, { b: property(nothing, one) })
    expect(await read(id)).toEqual(property(1))
  })

  it.each([
    [[property(1), property(2)]],
    [[property(1), property(2, { datasetId: '@none' })]],
    [[property(1, one), property(2, one)]],
    [[{ value: 1 }, { value: 2 }]],
    [
      [
        { object: 'urn:x:1', ...one },
        { object: 'urn:x:2', ...one },
      ],
    ],
  ])('shall contain each instance once: %j', async (a) => {
    const id = await make()
    for (const [method, place, body] of [
      ['POST', '', { id: freshId(), type: 'Room', a }],
      ['POST', `/${id}/attrs`, { a }],
      ['PATCH', `/${id}/attrs`, { a }],
      ['PATCH', `/${id}`, { a }],
      ['PUT', `/${id}`, { type: 'Room', a }],
      ['PUT', `/${id}/attrs/a`, a],
    ] as const) {
      expect([(await gateway.send(method, `${path}${place}`, body)).status, method, place]).toEqual([
        400,
        method,
        place,
      ])
    }
    expect(await read(id)).toEqual([property(1), property(2, one), property(3, two)])
  })

  it('shall combine Relationships that differ only in their targets', async () => {
    const id = await make([{ object: 'urn:x:1' }, { object: 'urn:x:2' }])
    expect(await read(id)).toEqual({ type: 'Relationship', object: ['urn:x:1', 'urn:x:2'] })
  })
})
