/** Update Attributes [NGSI-LD 5.6.2, 6.6.3.2]: PATCH attrs replaces whole attributes. */
import { describe, expect, it } from 'vitest'
import { freshId, type GatewayOfFile, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const old = gatewayOfFile({ profile: '1.1.2' })
const path = '/ngsi-ld/v1/entities'

async function room(at: GatewayOfFile = gateway): Promise<string> {
  const id = freshId()
  await at.send('POST', path, { id, type: 'Room', a: property(1, { unitCode: 'CEL' }), b: property('x') })
  return id
}

describe('an attribute that exists', () => {
  it('shall be replaced whole, the others kept, answered by 204', async () => {
    const id = await room()
    const patched = await gateway.send('PATCH', `${path}/${id}/attrs`, { a: property(2) })
    expect([patched.status, patched.text, patched.headers['content-length']]).toEqual([204, '', undefined])
    const { a, b } = (await gateway.get(`${path}/${id}`)).json()
    expect([a, b]).toEqual([property(2), property('x')])
  })

  it('shall be named in the context of the request, of JSON-LD as of merge-patch', async () => {
    const id = freshId()
    const full = 'http://www.w3.org/ns/sosa/hasSimpleResult'
    await gateway.send('POST', path, { id, type: 'Room', [full]: property(1) })
    const context = { sosa: 'http://www.w3.org/ns/sosa/' }
    const ld = await gateway.send('PATCH', `${path}/${id}/attrs/`, {
      '@context': context,
      'sosa:hasSimpleResult': property(2),
    })
    expect(ld.status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty([full, 'value'], 2)
    const merge = await gateway.send(
      'PATCH',
      `${path}/${id}/attrs`,
      { [full]: property(3) },
      { 'Content-Type': 'application/merge-patch+json' },
    )
    expect(merge.status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty([full, 'value'], 3)
  })

  it('shall be deleted by NGSI-LD Null', async () => {
    const id = await room()
    expect(
      (await gateway.send('PATCH', `${path}/${id}/attrs`, { a: property('urn:ngsi-ld:null') })).status,
    ).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).not.toHaveProperty('a')
  })
})

describe('an attribute that does not exist', () => {
  it('shall be appended', async () => {
    const id = await room()
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { c: property(3) })).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('c.value', 3)
  })

  it('shall be refused in a 207 with its full name under the profile 1.1.2', async () => {
    const id = await room(old)
    const patched = await old.send('PATCH', `${path}/${id}/attrs`, { a: property(2), c: property(3) })
    expect(patched.status).toBe(207)
    expect(patched.headers['content-type']).toBe('application/json')
    const name = (term: string): string => `https://uri.etsi.org/ngsi-ld/default-context/${term}`
    expect(patched.json()).toEqual({
      updated: [name('a')],
      notUpdated: [{ attributeName: name('c'), reason: expect.any(String) }],
    })
    const entity = (await old.get(`${path}/${id}`)).json()
    expect(entity).toHaveProperty('a.value', 2)
    expect(entity).not.toHaveProperty('c')
  })
})

describe('what cannot be updated', () => {
  it('shall be 404 for an unknown entity', async () => {
    const answer = await gateway.send('PATCH', `${path}/urn:ngsi-ld:Thing:none/attrs`, { a: property(1) })
    expect(answer.status).toBe(404)
    expect(answer.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound')
  })

  it.each([
    ['an empty body', {}, /no attribute/],
    ['another id', { id: 'urn:ngsi-ld:Thing:other', a: 1 }, /^id/],
    ['an array', [], /object/],
  ])('shall be 400 for %s', async (_, body, detail) => {
    const answer = await gateway.send('PATCH', `${path}/${await room()}/attrs`, body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toHaveProperty('detail', expect.stringMatching(detail))
  })
})
