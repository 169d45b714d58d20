/**
 * Subscriptions [NGSI-LD 5.8, 6.10, 6.11]: accepted and rejected requests, and their representation. Other
 * tests cover deliveries.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { freshId, gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/subscriptions'
const endpoint = { uri: 'http://127.0.0.1:9/notify', accept: 'application/json' }
const minimal = { type: 'Subscription', entities: [{ type: 'Room' }], notification: { endpoint } }
const inOneHour = (): string => new Date(Date.now() + 3_600_000).toISOString()

describe('a new subscription', () => {
  it('shall be given an id, a relative address, and be readable', async () => {
    const created = await gateway.send('POST', `${path}/`, minimal)
    expect(created.status).toBe(201)
    const location = created.headers['location']!
    expect(location).toMatch(/^\/ngsi-ld\/v1\/subscriptions\/urn:ngsi-ld:Subscription:/)
    const read = await gateway.get(location)
    expect(read.json()).toMatchObject({ ...minimal, id: location.slice(path.length + 1), status: 'active' })
  })

  it('shall store all its members, in the terms of its context', async () => {
    const id = freshId('Subscription')
    const body = {
      '@context': [{ sosa: 'http://www.w3.org/ns/sosa/' }],
      id,
      type: 'Subscription',
      subscriptionName: 'hot rooms',
      description: 'all of them',
      entities: [{ type: 'sosa:Sensor', idPattern: '^urn:' }],
      watchedAttributes: ['sosa:hasSimpleResult'],
      q: 'sosa:hasSimpleResult>30',
      geoQ: { georel: 'near;maxDistance==1000', geometry: 'Point', coordinates: [1, 2] },
      throttling: 5,
      expiresAt: '2099-01-01T00:00:00Z',
      notification: { attributes: ['sosa:hasSimpleResult'], format: 'keyValues', endpoint },
    }
    expect((await gateway.send('POST', path, body)).status).toBe(201)
    const full = (await gateway.get(`${path}/${id}`)).json()
    expect(full).toMatchObject({
      id,
      subscriptionName: 'hot rooms',
      entities: [{ type: 'http://www.w3.org/ns/sosa/Sensor', idPattern: '^urn:' }],
      watchedAttributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'],
      expiresAt: '2099-01-01T00:00:00Z',
      throttling: 5,
      notification: { attributes: ['http://www.w3.org/ns/sosa/hasSimpleResult'], format: 'keyValues' },
    })
    const link =
      '<http://any.example/contexts/selvedge-platform.jsonld>; rel="http://www.w3.org/ns/json-ld#context"'
    const short = (await gateway.get(`${path}/${id}`, { Link: link })).json()
    expect(short).toMatchObject({ entities: [{ type: 'Sensor' }], watchedAttributes: ['hasSimpleResult'] })
    const again = await gateway.send('POST', path, { ...body, subscriptionName: 'other' })
    expect(again.status).toBe(409)
  })

  it('shall apply to this gateway alone with local=true, and be changed and deleted only here', async () => {
    const registration = {
      id: freshId('ContextSourceRegistration'),
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Elsewhere' }] }],
      endpoint: 'http://127.0.0.1:9',
    }
    await gateway.send('POST', '/ngsi-ld/v1/csourceRegistrations', registration)
    const everything = { type: 'Subscription', notification: { endpoint } }
    const created = await gateway.send('POST', `${path}?local=true`, everything)
    const shared = await gateway.send('POST', `${path}?local=false`, minimal)
    const here = created.headers['location']!
    const narrow = (await gateway.send('POST', `${path}?local=true`, minimal)).headers['location']!
    const there = shared.headers['location']!
    expect((await gateway.get(here)).json()).toMatchObject({ localOnly: true })
    expect((await gateway.get(there)).json()).not.toHaveProperty('localOnly')
    const change = { subscriptionName: 'renamed' }
    const outcomes = [
      await gateway.send('PATCH', `${here}?local=true`, change),
      await gateway.send('PATCH', `${narrow}?local=true`, { localOnly: false }),
      await gateway.send('PATCH', `${narrow}?local=true`, { localOnly: 'urn:ngsi-ld:null' }),
      await gateway.send('PATCH', `${there}?local=true`, change),
      await gateway.ask('DELETE', `${there}?local=true`),
      await gateway.ask('DELETE', `${here}?local=true`),
      await gateway.ask('DELETE', `${there}?local=false`),
      await gateway.send('POST', `${path}?local=true`, { ...minimal, localOnly: false }),
      await gateway.send('POST', `${path}?local=yes`, minimal),
    ]
    expect(outcomes.map(({ status }) => status)).toEqual([204, 400, 400, 422, 422, 204, 204, 400, 400])
    await gateway.ask('DELETE', `/ngsi-ld/v1/csourceRegistrations/${registration.id}`)
    const alone = (await gateway.send('POST', path, minimal)).headers['location']!
    expect((await gateway.ask('DELETE', `${alone}?local=true`)).status).toBe(204)
  })

  it('shall accept the member names of early clients', async () => {
    const created = await gateway.send('POST', path, { ...minimal, name: 'old', expires: inOneHour() })
    expect(created.status).toBe(201)
    const read = (await gateway.get(created.headers['location']!)).json()
    expect(read).toMatchObject({ subscriptionName: 'old', expiresAt: expect.any(String) })
  })

  // The orchestrator receives the notifications of such a subscription itself.
  const unaddressed: readonly (readonly [text: string, body: object, detail: RegExp])[] = [
    ['no notification', { ...minimal, notification: undefined }, /notification/],
    ['no endpoint', { ...minimal, notification: {} }, /endpoint/],
  ]
  it.each(process.env['SELVEDGE_SPEC_THROUGH'] === undefined ? unaddressed : [])(
    'with %s shall be 400 with a reason',
    async (_, body, detail) => {
      const refused = await gateway.send('POST', path, body)
      expect([refused.status, refused.text]).toEqual([400, expect.stringMatching(detail)])
    },
  )

  it.each([
    ['no type', { ...minimal, type: undefined }, /type/],
    ['neither entities nor watchedAttributes', { ...minimal, entities: undefined }, /entities/],
    ['entities without type', { ...minimal, entities: [{ id: 'urn:x:1' }] }, /entities\[0\].type/],
    [
      'an endpoint that is not a URI',
      { ...minimal, notification: { endpoint: { uri: 'nowhere' } } },
      /endpoint\.uri/,
    ],
    [
      'an endpoint with an unsupported scheme',
      { ...minimal, notification: { endpoint: { uri: 'ftp://a.example/x' } } },
      /endpoint\.uri/,
    ],
    ['an expiry in the past', { ...minimal, expiresAt: '2020-01-01T00:00:00Z' }, /expiresAt/],
    ['an invalid q', { ...minimal, q: 'speed==' }, /./],
    ['an invalid geoQ', { ...minimal, geoQ: { georel: 'near' } }, /geo/],
    ['throttling that is not a number', { ...minimal, throttling: 'often' }, /throttling/],
    ['timeInterval with throttling', { ...minimal, timeInterval: 5, throttling: 5 }, /timeInterval/],
    ['an unknown member', { ...minimal, colour: 'red' }, /colour/],
    [
      'a header reserved for the gateway',
      {
        ...minimal,
        notification: { endpoint: { ...endpoint, receiverInfo: [{ key: 'Host', value: 'x' }] } },
      },
      /Host/,
    ],
    [
      'a header with a line break',
      {
        ...minimal,
        notification: { endpoint: { ...endpoint, receiverInfo: [{ key: 'X', value: 'a\r\nb' }] } },
      },
      /receiverInfo/,
    ],
    ['a list as body', [minimal], /object/],
  ])('with %s shall be 400 with a reason', async (_, body, detail) => {
    const refused = await gateway.send('POST', path, body)
    expect(refused.status).toBe(400)
    expect((refused.json() as { detail: string }).detail).toMatch(detail)
  })
})

describe('a changed subscription', () => {
  it('shall be paused and resumed, and its members replaced', async () => {
    const { headers } = await gateway.send('POST', path, minimal)
    const at = headers['location']!
    expect((await gateway.send('PATCH', `${at}/`, { isActive: false, throttling: 9 })).status).toBe(204)
    expect((await gateway.get(at)).json()).toMatchObject({ status: 'paused', throttling: 9 })
    await gateway.send('PATCH', at, { isActive: true, throttling: 'urn:ngsi-ld:null' })
    const read = (await gateway.get(at)).json()
    expect(read).toMatchObject({ status: 'active' })
    expect(read).not.toHaveProperty('throttling')
  })

  it('shall remain unchanged when it would be too large, and be rejected like that when created', async () => {
    const description = 'x'.repeat(limits.subscriptionBytesMax.value)
    expect((await gateway.send('POST', path, { ...minimal, description })).status).toBe(413)
    const { headers } = await gateway.send('POST', path, minimal)
    const refused = await gateway.send('PATCH', headers['location']!, { description })
    expect([refused.status, refused.text]).toEqual([413, expect.stringContaining('65536 bytes')])
    expect((await gateway.get(headers['location']!)).json()).not.toHaveProperty('description')
  })

  it('shall be rejected when the result would be invalid', async () => {
    const { headers } = await gateway.send('POST', path, minimal)
    const at = headers['location']!
    for (const fragment of [
      { notification: null },
      { entities: null },
      { description: null },
      { notification: { endpoint, format: null } },
      { notification: 'urn:ngsi-ld:null' },
      { entities: 'urn:ngsi-ld:null' },
      { id: 'urn:x:1' },
      { colour: 1 },
      [],
    ]) {
      expect([fragment, (await gateway.send('PATCH', at, fragment)).status]).toEqual([fragment, 400])
    }
    expect((await gateway.send('PATCH', `${path}/urn:x:none`, { isActive: false })).status).toBe(404)
  })
})

it('subscriptions shall be listed page by page', async () => {
  const all = await gateway.get(`${path}?limit=1000&count=true`)
  const total = Number(all.headers['ngsild-results-count'])
  expect((all.json() as object[]).length).toBe(total)
  const page = await gateway.get(`${path}/?limit=1&offset=1&options=sysAttrs`)
  expect(page.json()).toEqual([
    expect.objectContaining({ createdAt: expect.any(String), type: 'Subscription' }),
  ])
  expect(page.headers['link']).toMatch(/rel="next".*rel="prev"|rel="prev".*rel="next"/)
  const second = await gateway.get(`${path}?limit=3&offset=1`)
  expect(second.headers['link']).toMatch(/limit=3&offset=0>;\s*rel="prev"/)
  expect((await gateway.get(`${path}?limit=0`)).status).toBe(400)
  expect((await gateway.get(`${path}?limit=1001`)).status).toBe(403)
})

it('a deleted subscription shall no longer exist', async () => {
  const { headers } = await gateway.send('POST', path, minimal)
  const at = headers['location']!
  expect((await gateway.ask('DELETE', `${at}/`)).status).toBe(204)
  expect((await gateway.get(at)).status).toBe(404)
  expect((await gateway.ask('DELETE', at)).status).toBe(404)
  expect((await gateway.ask('DELETE', `${path}/`)).status).toBe(405)
})
