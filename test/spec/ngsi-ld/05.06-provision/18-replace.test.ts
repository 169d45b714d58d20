/** Replace Entity and Replace Attribute [NGSI-LD 5.6.18, 5.6.19, 6.5.3.3, 6.7.3.3]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const read = async (id: string, query = ''): Promise<Record<string, unknown>> =>
  (await gateway.get(`${path}/${id}${query}`)).json()

async function room(attributes: object): Promise<string> {
  const id = freshId('Room')
  await gateway.send('POST', path, { id, type: ['Room', 'Office'], scope: '/a', ...attributes })
  return id
}

describe('PUT of an entity', () => {
  it('shall keep nothing of the old entity except its creation time', async () => {
    const id = await room({ a: property(1), b: property(1) })
    const { createdAt } = await read(id, '?options=sysAttrs')
    const body = { id, type: 'Office', b: 2, scope: ['/c', '/d'] }
    expect((await gateway.send('PUT', `${path}/${id}`, body)).status).toBe(204)
    expect(await read(id)).toEqual({ id, type: 'Office', b: property(2), scope: ['/c', '/d'] })
    expect(await read(id, '?options=sysAttrs')).toHaveProperty('createdAt', createdAt)
  })

  it('shall use the id from the path', async () => {
    const id = await room({ a: property(1) })
    expect((await gateway.send('PUT', `${path}/${id}`, { type: 'Room' })).status).toBe(204)
    expect(await read(id)).toEqual({ id, type: 'Room' })
  })

  it.each([
    ['another id in the body', '', { id: 'urn:x:other', type: 'Room' }, 400],
    ['no type', '', { a: 1 }, 400],
    ['NGSI-LD Null', '', { type: 'Room', a: 'urn:ngsi-ld:null' }, 400],
    ['types that the entity lacks', '?type=Car', { type: 'Room' }, 404],
  ])('shall reject %s', async (_, query, body, status) => {
    const id = await room({ a: property(1) })
    expect((await gateway.send('PUT', `${path}/${id}${query}`, body)).status).toBe(status)
    expect(await read(id)).toHaveProperty('a', property(1))
  })

  it('shall not create an entity', async () => {
    for (const [id, status] of [
      ['urn:x:none', 404],
      ['none', 400],
      ['', 405],
    ] as const) {
      expect((await gateway.send('PUT', `${path}/${id}`, { type: 'Room' })).status).toBe(status)
    }
  })
})

describe('PUT of an attribute', () => {
  it('shall replace the addressed instance, including its members and kind', async () => {
    const dataset = { datasetId: 'urn:d:1' }
    const id = await room({ a: [property(1, { unitCode: 'CEL' }), property(2, { note: 1, ...dataset })] })
    const put = (body: unknown) => gateway.send('PUT', `${path}/${id}/attrs/a`, body)
    expect((await put(property(5))).status).toBe(204)
    expect((await put({ type: 'Relationship', object: 'urn:x:1', ...dataset })).status).toBe(204)
    expect(await read(id)).toMatchObject({
      a: [property(5), { type: 'Relationship', object: 'urn:x:1', ...dataset }],
    })
    expect(await read(id)).not.toHaveProperty('a.0.unitCode')
  })

  it.each([
    ['a missing attribute', 'b', property(1), 404],
    ['a missing instance', 'a', property(1, { datasetId: 'urn:d:9' }), 404],
    ['the scope', 'scope', ['/x'], 400],
    ['a body that is not an attribute', 'a', { unitCode: 'CEL' }, 400],
  ])('shall reject %s', async (_, name, body, status) => {
    const id = await room({ a: property(1) })
    expect((await gateway.send('PUT', `${path}/${id}/attrs/${name}`, body)).status).toBe(status)
    expect(await read(id)).toHaveProperty('a', property(1))
  })
})
