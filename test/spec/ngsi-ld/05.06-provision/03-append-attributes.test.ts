/** Append Attributes [NGSI-LD 5.6.3, 6.6.3.1]: POST attrs. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'

async function room(): Promise<string> {
  const id = freshId()
  await gateway.send('POST', path, { id, type: 'Room', a: property(1) })
  return id
}

describe('attributes of a body without id and type', () => {
  it('shall be added, and replace existing ones', async () => {
    const id = await room()
    const answer = await gateway.send('POST', `${path}/${id}/attrs/`, { a: property(2), b: property(3) })
    expect(answer.status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toEqual({
      id,
      type: 'Room',
      a: property(2),
      b: property(3),
    })
  })

  it('shall replace nothing with options=noOverwrite, and be listed in a 207', async () => {
    const id = await room()
    const answer = await gateway.send('POST', `${path}/${id}/attrs?options=noOverwrite`, {
      a: property(2),
      b: property(3),
    })
    expect(answer.status).toBe(207)
    const name = (term: string): string => `https://uri.etsi.org/ngsi-ld/default-context/${term}`
    expect(answer.json()).toEqual({
      updated: [name('b')],
      notUpdated: [{ attributeName: name('a'), reason: expect.any(String) }],
    })
    expect((await gateway.get(`${path}/${id}`)).json()).toEqual({
      id,
      type: 'Room',
      a: property(1),
      b: property(3),
    })
  })

  it('shall be accepted after a create with 409, without id and type', async () => {
    const id = await room()
    const entity = {
      '@context': ['http://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld'],
      id,
      type: 'Room',
      a: property(7),
    }
    expect((await gateway.send('POST', path, entity)).status).toBe(409)
    const { id: _, type: __, ...rest } = entity
    expect((await gateway.send('POST', `${path}/${id}/attrs/`, rest)).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('a.value', 7)
  })

  it('shall be accepted by PATCH too, as clients send it', async () => {
    const id = await room()
    const type = { 'Content-Type': 'application/merge-patch+json' }
    const answer = await gateway.send('POST', `${path}/${id}/attrs`, { b: property(2) }, type)
    expect(answer.status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('b.value', 2)
    expect((await gateway.send('POST', path, { id, type: 'Room' }, type)).status).toBe(415)
  })

  it('shall add types and distinguish instances by datasetId', async () => {
    const id = await room()
    const more = { type: 'Hall', a: [property(2), property(3, { datasetId: 'urn:d:1' })] }
    expect((await gateway.send('POST', `${path}/${id}/attrs`, more)).status).toBe(204)
    const entity = (await gateway.get(`${path}/${id}`)).json() as { type: string[]; a: object[] }
    expect(entity.type).toEqual(['Room', 'Hall'])
    expect(entity.a).toEqual([property(2), property(3, { datasetId: 'urn:d:1' })])
  })
})

describe('an invalid append', () => {
  it('shall be 404 for an unknown entity and 400 for an unknown option', async () => {
    expect((await gateway.send('POST', `${path}/urn:ngsi-ld:Thing:none/attrs`, { a: 1 })).status).toBe(404)
    const answer = await gateway.send('POST', `${path}/${await room()}/attrs?options=overwrite`, { a: 1 })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('overwrite')])
  })
})
