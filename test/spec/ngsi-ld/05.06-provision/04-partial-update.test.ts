/** Partial Attribute Update and Delete Attribute [NGSI-LD 5.6.4, 5.6.5, 6.7.3]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'

async function room(): Promise<string> {
  const id = freshId()
  const b = [property(1), property(2, { datasetId: 'urn:d:1' })]
  await gateway.send('POST', path, {
    id,
    type: 'Room',
    a: property(1, { unitCode: 'CEL', accuracy: property(0.1) }),
    b,
  })
  return id
}

describe('PATCH of one attribute', () => {
  it('shall overwrite the given members and keep the others', async () => {
    const id = await room()
    const answer = await gateway.send('PATCH', `${path}/${id}/attrs/a`, { value: 5, accuracy: property(0.5) })
    expect(answer.status).toBe(204)
    const { a } = (await gateway.get(`${path}/${id}`)).json() as { a: object }
    expect(a).toEqual(property(5, { unitCode: 'CEL', accuracy: property(0.5) }))
  })

  it('shall change only the instance with its datasetId', async () => {
    const id = await room()
    expect(
      (await gateway.send('PATCH', `${path}/${id}/attrs/b`, { value: 9, datasetId: 'urn:d:1' })).status,
    ).toBe(204)
    const { b } = (await gateway.get(`${path}/${id}`)).json() as { b: object[] }
    expect(b).toEqual([property(1), property(9, { datasetId: 'urn:d:1' })])
  })

  it('shall find the attribute by the context of the body or by its full IRI', async () => {
    const id = freshId()
    const full = 'http://www.w3.org/ns/sosa/hasSimpleResult'
    await gateway.send('POST', path, { id, type: 'Room', [full]: property(1) })
    const body = { '@context': { sosa: 'http://www.w3.org/ns/sosa/' }, value: 2 }
    expect((await gateway.send('PATCH', `${path}/${id}/attrs/sosa:hasSimpleResult`, body)).status).toBe(204)
    const encoded = encodeURIComponent(full)
    expect((await gateway.send('PATCH', `${path}/${id}/attrs/${encoded}/`, { value: 3 })).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty([full, 'value'], 3)
  })

  it.each([
    ['a missing attribute', 'c', { value: 1 }, 404],
    ['a missing instance', 'b', { value: 1, datasetId: 'urn:d:7' }, 404],
    ['another kind', 'a', { type: 'Relationship', object: 'urn:x:1' }, 400],
    ['an invalid name', 'a%20b', { value: 1 }, 400],
    ['an array', 'a', [1], 400],
  ])('shall reject %s', async (_, name, body, status) => {
    expect((await gateway.send('PATCH', `${path}/${await room()}/attrs/${name}`, body)).status).toBe(status)
  })
})

describe('DELETE of one attribute', () => {
  it('shall remove it once', async () => {
    const id = await room()
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a`)).status).toBe(204)
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/a`)).status).toBe(404)
    expect((await gateway.get(`${path}/${id}`)).json()).not.toHaveProperty('a')
  })

  it('shall remove one instance by datasetId, the default one without, all with deleteAll', async () => {
    const id = await room()
    const b = async () => ((await gateway.get(`${path}/${id}`)).json() as { b?: unknown }).b
    await gateway.ask('DELETE', `${path}/${id}/attrs/b?datasetId=urn:d:1`)
    expect(await b()).toEqual(property(1))
    await gateway.send('POST', `${path}/${id}/attrs`, { b: property(2, { datasetId: 'urn:d:1' }) })
    await gateway.ask('DELETE', `${path}/${id}/attrs/b`)
    expect(await b()).toEqual(property(2, { datasetId: 'urn:d:1' }))
    await gateway.send('POST', `${path}/${id}/attrs`, { b: property(1) })
    expect((await gateway.ask('DELETE', `${path}/${id}/attrs/b?deleteAll=true`)).status).toBe(204)
    expect(await b()).toBeUndefined()
  })

  it('shall be 404 for an unknown entity and 400 for a deleteAll other than true or false', async () => {
    expect((await gateway.ask('DELETE', `${path}/urn:ngsi-ld:Thing:none/attrs/a`)).status).toBe(404)
    expect((await gateway.ask('DELETE', `${path}/${await room()}/attrs/a?deleteAll=yes`)).status).toBe(400)
  })
})
