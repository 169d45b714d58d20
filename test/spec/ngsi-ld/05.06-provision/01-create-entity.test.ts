/** Create Entity [NGSI-LD 5.6.1, 6.4.3.1]. */
import { describe, expect, it } from 'vitest'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const ofEtsi = (name: string): string => `https://uri.etsi.org/ngsi-ld/errors/${name}`

describe('a new entity', () => {
  it('shall be answered by 201 with its relative address, and be readable immediately', async () => {
    const id = freshId()
    const created = await gateway.send('POST', path, { id, type: 'Room', temperature: property(21.5) })
    expect(created.status).toBe(201)
    expect(created.headers['location']).toBe(`${path}/${id}`)
    expect(created.text).toBe('')
    const read = await gateway.get(created.headers['location']!)
    expect(read.json()).toEqual({ id, type: 'Room', temperature: property(21.5) })
  })

  it('shall be accepted with and without a trailing slash, as JSON-LD with its own @context', async () => {
    const id = freshId()
    const created = await gateway.send('POST', `${path}/`, {
      '@context': [
        'http://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
        { sosa: 'http://www.w3.org/ns/sosa/', 'iot-stream': 'http://purl.org/iot/ontology/iot-stream#' },
      ],
      id,
      type: 'iot-stream:IotStream',
      'sosa:observes': { type: 'Relationship', object: 'urn:ngsi-ld:ObservableProperty:1' },
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [-1.13, 37.99] } },
    })
    expect(created.status).toBe(201)
    expect((await gateway.get(`${path}/${id}/`)).json()).toEqual({
      id,
      type: 'http://purl.org/iot/ontology/iot-stream#IotStream',
      'http://www.w3.org/ns/sosa/observes': {
        type: 'Relationship',
        object: 'urn:ngsi-ld:ObservableProperty:1',
      },
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [-1.13, 37.99] } },
    })
  })

  it('shall be accepted in concise representation', async () => {
    const id = freshId()
    const geometry = { type: 'Point', coordinates: [1, 2] }
    const body = {
      id,
      type: 'Room',
      a: 5,
      b: { object: 'urn:x:1' },
      c: { value: geometry },
      d: { value: 1, unitCode: 'CEL' },
    }
    expect((await gateway.send('POST', path, body)).status).toBe(201)
    expect((await gateway.get(`${path}/${id}`)).json()).toEqual({
      id,
      type: 'Room',
      a: property(5),
      b: { type: 'Relationship', object: 'urn:x:1' },
      c: { type: 'GeoProperty', value: geometry },
      d: property(1, { unitCode: 'CEL' }),
    })
  })

  it('shall have an address even if its id contains characters not allowed in a path', async () => {
    const id = 'urn:ngsi-ld:Thing:a%2Fb/c?d'
    const created = await gateway.send('POST', path, { id, type: 'Room' })
    expect(created.status).toBe(201)
    expect((await gateway.get(created.headers['location']!)).json()).toEqual({ id, type: 'Room' })
  })
})

describe('an entity whose id exists', () => {
  it('shall be rejected with 409 AlreadyExists and remain unchanged', async () => {
    const id = freshId()
    await gateway.send('POST', path, { id, type: 'Room', a: property(1) })
    const again = await gateway.send('POST', path, { id, type: 'Room', a: property(2) })
    expect(again.status).toBe(409)
    expect(again.json()).toMatchObject({
      type: ofEtsi('AlreadyExists'),
      title: expect.any(String),
      detail: expect.stringContaining(id),
      status: 409,
    })
    expect((await gateway.get(`${path}/${id}`)).json()).toHaveProperty('a.value', 1)
  })

  it('shall be created by only one of two concurrent requests', async () => {
    const id = freshId()
    const body = { id, type: 'Room' }
    const both = await Promise.all([gateway.send('POST', path, body), gateway.send('POST', path, body)])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409])
  })
})

describe('an invalid entity body', () => {
  const type = 'Room'
  const id = 'urn:ngsi-ld:Thing:bad'
  it.each([
    ['is not JSON', '{"id": ', 'InvalidRequest', /not JSON/],
    ['is empty', '', 'InvalidRequest', /no body/],
    ['is not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'InvalidRequest', /UTF-8/],
    ['is an array', [], 'BadRequestData', /object/],
    ['is null', 'null', 'BadRequestData', /object/],
    ['has no id', { type }, 'BadRequestData', /^id/],
    ['has an id that is not a URI', { id: 'room 1', type }, 'BadRequestData', /^id/],
    [
      'has an id that fits in no URL',
      { id: `urn:x:${'x'.repeat(8187)}`, type },
      'BadRequestData',
      /^id: .*8192/,
    ],
    ['has an id that is not a text', { id: 7, type }, 'BadRequestData', /^id/],
    ['has no type', { id }, 'BadRequestData', /^type/],
    ['has an empty list of types', { id, type: [] }, 'BadRequestData', /^type/],
    ['has an attribute that is null', { id, type, a: null }, 'BadRequestData', /^a\b/],
    ['has a property without value', { id, type, a: { type: 'Property' } }, 'BadRequestData', /^a\b/],
    ['mixes kinds', { id, type, a: { type: 'Property', object: 'urn:x:1' } }, 'BadRequestData', /^a\b/],
    [
      'has a relationship to an invalid URI',
      { id, type, a: { type: 'Relationship', object: 'x y' } },
      'BadRequestData',
      /^a\b/,
    ],
    [
      'has an invalid geometry',
      { id, type, location: { type: 'GeoProperty', value: { type: 'Point', coordinates: ['x'] } } },
      'BadRequestData',
      /^location/,
    ],
    [
      'has an invalid time',
      { id, type, a: property(1, { observedAt: 'yesterday' }) },
      'BadRequestData',
      /observedAt/,
    ],
    [
      'has a time with offset',
      { id, type, a: property(1, { observedAt: '2025-01-01T00:00:00+01:00' }) },
      'BadRequestData',
      /observedAt/,
    ],
    ['has NGSI-LD Null', { id, type, a: property('urn:ngsi-ld:null') }, 'BadRequestData', /^a\b/],
    ['has a name with blanks', { id, type, 'a b': property(1) }, 'BadRequestData', /a b/],
    ['has two default instances', { id, type, a: [property(1), property(2)] }, 'BadRequestData', /^a\b/],
    [
      'is nested too deep',
      `{"id":"${id}","type":"Room","a":{"type":"Property","value":${'['.repeat(70)}${']'.repeat(70)}}}`,
      'BadRequestData',
      /deep|levels|nest/,
    ],
    [
      'is nested deeper than any stack',
      `${'['.repeat(200_000)}${']'.repeat(200_000)}`,
      'BadRequestData',
      /deep/,
    ],
  ])('that %s shall be rejected with 400', async (_, body, name, detail) => {
    const refused = await gateway.ask('POST', path, { body, headers: { 'Content-Type': 'application/json' } })
    expect(refused.status).toBe(400)
    expect(refused.headers['content-type']).toBe('application/json')
    expect(refused.json()).toMatchObject({
      type: ofEtsi(name),
      detail: expect.stringMatching(detail),
      status: 400,
    })
    expect((await gateway.get(`${path}/${id}`)).status).toBe(404)
  })

  it('that has more attributes than allowed shall be rejected with 400', async () => {
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`a${i}`, 1]))
    const refused = await gateway.send('POST', path, { id, type, ...many })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('1000 attributes')
  })

  it('shall store the proof of an attribute as it was sealed, and omit it for clients before 1.9', async () => {
    const id = freshId()
    const proof = { type: 'DataIntegrityProof', cryptosuite: 'ecdsa-rdfc-2019', proofValue: 'zQeV' }
    const ngsildproof = { type: 'Property', entityIdSealed: id, entityTypeSealed: 'Hot', value: proof }
    const t = { type: 'Property', value: 21, ngsildproof }
    const body = { id, type: 'Hot', t, '@context': [{ Hot: 'http://x.example/Hot' }] }
    const created = await gateway.send('POST', path, body, { 'Content-Type': 'application/ld+json' })
    expect(created.status).toBe(201)
    const read = (await gateway.get(`${path}/${id}`)).json()
    expect(read).toMatchObject({
      t: { ngsildproof: { ...ngsildproof, entityTypeSealed: 'http://x.example/Hot' } },
    })
    const concise = (await gateway.get(`${path}/${id}?format=concise`)).json()
    expect(concise).toMatchObject({ t: { value: 21, ngsildproof: { entityIdSealed: id, value: proof } } })
    const older = (await gateway.get(`${path}/${id}`, { Prefer: 'ngsi-ld=1.8' })).json()
    expect(older).toMatchObject({ t: { type: 'Property', value: 21 } })
    expect((older as { t: object }).t).not.toHaveProperty('ngsildproof')
    const wrong = { ...t, ngsildproof: { ...ngsildproof, entityIdSealed: 'no URI' } }
    expect((await gateway.send('POST', path, { id: freshId(), type, t: wrong })).status).toBe(400)
  })

  it('shall not change inherited members of objects', async () => {
    const body = `{"id":"${freshId()}","type":"Room","__proto__":{"type":"Property","value":1},"constructor":5}`
    const answer = await gateway.ask('POST', path, { body, headers: { 'Content-Type': 'application/json' } })
    expect([201, 400]).toContain(answer.status)
    expect(({} as Record<string, unknown>)['value']).toBeUndefined()
  })
})

describe('the profile 1.1.2', () => {
  const old = gatewayOfFile({ profile: '1.1.2' })
  it('shall answer a create with the id as text, as the first brokers did', async () => {
    const id = freshId()
    const created = await old.send('POST', path, { id, type: 'Room' })
    expect([created.status, created.text, created.headers['content-type']]).toEqual([201, id, 'text/plain'])
  })
})
