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
  it('shall be replaced as a whole, the others unchanged, answered by 204', async () => {
    const id = await room()
    const patched = await gateway.send('PATCH', `${path}/${id}/attrs`, { a: property(2) })
    expect([patched.status, patched.text, patched.headers['content-length']]).toEqual([204, '', undefined])
    const { a, b } = (await gateway.get(`${path}/${id}`)).json()
    expect([a, b]).toEqual([property(2), property('x')])
  })

  it('shall be named in the context of the request, both in JSON-LD and in merge-patch', async () => {
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

describe('NGSI-LD Null', () => {
  const nothing = 'urn:ngsi-ld:null'

  it.each([
    ['a list', { type: 'ListProperty', valueList: [1] }, { valueList: [nothing] }],
    ['a list of targets', { objectList: ['urn:x:1'] }, { objectList: [nothing] }],
    ['targets as objects', { objectList: ['urn:x:1'] }, { objectList: [{ object: nothing }] }],
    ['languages', { languageMap: { en: 'x' } }, { languageMap: { '@none': nothing } }],
    ['a relationship', { object: 'urn:x:1' }, { object: nothing }],
    ['JSON', { json: { a: 1 } }, { json: nothing }],
    ['a vocabulary', { vocab: 'x' }, { vocab: nothing }],
  ])('shall delete %s', async (_, given, nulled) => {
    const id = await room()
    await gateway.send('POST', `${path}/${id}/attrs`, { x: given })
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('x')
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { x: nulled })).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).not.toHaveProperty('x')
  })

  it('shall be rejected within a value, which only merge reaches into, and as a datasetId', async () => {
    const id = await room()
    const before = (await gateway.get(`${path}/${id}`)).json()
    for (const [place, body] of [
      ['attrs', { a: { value: { b: nothing } } }],
      ['attrs', { a: { value: [nothing] } }],
      ['attrs/a', { value: { b: nothing } }],
      ['attrs/a', { datasetId: nothing }],
    ] as const) {
      expect((await gateway.send('PATCH', `${path}/${id}/${place}`, body)).status).toBe(400)
    }
    expect((await gateway.get(`${path}/${id}`)).json()).toEqual(before)
  })
})

describe('an ngsildproof', () => {
  it('shall state which entity was sealed, in members that are not attributes', async () => {
    const id = await room()
    const ngsildproof = {
      type: 'Property',
      entityIdSealed: id,
      entityTypeSealed: 'Room',
      value: { type: 'DataIntegrityProof', proofValue: 'z3FXQ' },
    }
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { ngsildproof })).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toMatchObject({ ngsildproof })
    const other = { ngsildproof: { ...ngsildproof, entityIdSealed: 'no uri' } }
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, other)).status).toBe(400)
  })
})

describe('an attribute that does not exist', () => {
  it('shall be appended', async () => {
    const id = await room()
    expect((await gateway.send('PATCH', `${path}/${id}/attrs`, { c: property(3) })).status).toBe(204)
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('c.value', 3)
  })

  it('shall be refused in a 207 with its full name in the profile 1.1.2', async () => {
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

describe('an invalid update', () => {
  it('shall be 404 for an unknown entity', async () => {
    const answer = await gateway.send('PATCH', `${path}/urn:ngsi-ld:Thing:none/attrs`, { a: property(1) })
    expect(answer.status).toBe(404)
    expect(answer.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound')
  })

  it.each([
    ['an empty body', {}, /at least one attribute/],
    ['another id', { id: 'urn:ngsi-ld:Thing:other', a: 1 }, /^id/],
    ['an array', [], /object/],
  ])('shall be 400 for %s', async (_, body, detail) => {
    const answer = await gateway.send('PATCH', `${path}/${await room()}/attrs`, body)
    expect(answer.status).toBe(400)
    expect(answer.json()).toHaveProperty('detail', expect.stringMatching(detail))
  })
})
