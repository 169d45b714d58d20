/** Registrations of context sources over HTTP: accepted members, mutual exclusion, and discovery. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const path = '/ngsi-ld/v1/csourceRegistrations'
let gateway: HttpGateway
beforeAll(async () => {
  gateway = await startHttpGateway()
})
afterAll(() => gateway.close())

const base = {
  type: 'ContextSourceRegistration',
  information: [{ entities: [{ type: 'Pump' }] }],
  endpoint: 'http://source.example:1026',
}
const register = (members: object) => gateway.send('POST', path, { ...base, ...members })
const idsOf = async (query: string): Promise<string[]> => {
  const reply = await gateway.get(`${path}?${query}`)
  expect([reply.status, reply.status === 200 ? '' : reply.text]).toEqual([200, ''])
  return (reply.json() as { id: string }[]).map(({ id }) => id)
}

describe('GS CIM 009, 5.9.2 to 5.9.4: registrations of context sources', () => {
  test('a registration is created, read with its defaults, changed member by member, and deleted', async () => {
    const created = await register({ id: 'urn:r:1', registrationName: 'pumps', hallNumber: 7 })
    expect(created.status).toBe(201)
    expect(created.headers['location']).toBe(`${path}/urn:r:1`)
    expect((await gateway.get(`${path}/urn:r:1`)).json()).toEqual({
      ...base,
      id: 'urn:r:1',
      registrationName: 'pumps',
      mode: 'inclusive',
      operations: ['federationOps'],
      hallNumber: 7,
    })
    const nothing = 'urn:ngsi-ld:null'
    const patch = { endpoint: 'http://other.example', registrationName: nothing, hallNumber: nothing }
    expect((await gateway.send('PATCH', `${path}/urn:r:1`, patch)).status).toBe(204)
    const after = (await gateway.get(`${path}/urn:r:1`)).json() as Record<string, unknown>
    expect(after['endpoint']).toBe('http://other.example')
    expect(after).not.toHaveProperty('registrationName')
    expect(after).not.toHaveProperty('hallNumber')
    expect((await gateway.ask('DELETE', `${path}/urn:r:1`)).status).toBe(204)
    expect((await gateway.get(`${path}/urn:r:1`)).status).toBe(404)
  })

  test.each([
    ['no endpoint', { endpoint: undefined }],
    ['an endpoint that is not a URL', { endpoint: 'urn:x:y' }],
    ['no information', { information: undefined }],
    ['empty information', { information: [] }],
    ['entities without type', { information: [{ entities: [{ id: 'urn:p:1' }] }] }],
    ['an unknown mode', { mode: 'loud' }],
    ['a tenant in contextSourceInfo', { contextSourceInfo: [{ key: 'ngsild-Tenant', value: 'a' }] }],
    [
      'the tenant of requests in contextSourceInfo',
      { contextSourceInfo: [{ key: 'NGSILD-Tenant', value: 'urn:ngsi-ld:request' }] },
    ],
    ...['Host', 'content-length', 'Transfer-Encoding', 'CONNECTION'].map((key): [string, object] => [
      `${key} in contextSourceInfo`,
      { contextSourceInfo: [{ key, value: '1' }] },
    ]),
    ['a tenant that no header can name', { tenant: 'a\r\nX-B: c' }],
    [
      'a tenant that is not allowed in a header',
      { information: [{ entities: [{ type: 'Pump', idPattern: '' }] }] },
    ],
    ['an unknown operation', { operations: ['sing'] }],
    ['expiry in the past', { expiresAt: '2018-11-29T14:53:15Z' }],
    [
      'exclusive without attributes',
      { mode: 'exclusive', information: [{ entities: [{ id: 'urn:p:1', type: 'Pump' }] }] },
    ],
    [
      'exclusive without id',
      { mode: 'exclusive', information: [{ entities: [{ type: 'Pump' }], propertyNames: ['flow'] }] },
    ],
    ['auxiliary that writes', { mode: 'auxiliary', operations: ['updateOps'] }],
    ['removal of a mandatory member', { information: null }],
  ])('rejects %s', async (_, members) => {
    expect((await register(members)).status).toBe(400)
  })

  test.each([
    'associationOps',
    'federationOps',
    'retrieveEntityMap',
    'createEntityMapQueryEntity',
    'createEntityMapQueryTemporal',
    'retrieveContextSourceIdentity',
  ])('an auxiliary one may offer %s, which only reads', async (operation) => {
    expect((await register({ mode: 'auxiliary', operations: [operation] })).status).toBe(201)
  })

  test('an exclusive one excludes others of its mode and redirects, and local data', async () => {
    const of = (id: string, names: string[]) => ({
      information: [{ entities: [{ id, type: 'Valve' }], propertyNames: names }],
    })
    expect((await register({ id: 'urn:x:1', mode: 'exclusive', ...of('urn:v:1', ['angle']) })).status).toBe(
      201,
    )
    expect((await register({ mode: 'exclusive', ...of('urn:v:1', ['angle', 'flow']) })).status).toBe(409)
    const redirect = { mode: 'redirect', information: [{ entities: [{ type: 'Valve' }] }] }
    expect((await register(redirect)).status).toBe(409)
    expect((await register({ mode: 'exclusive', ...of('urn:v:1', ['flow']) })).status).toBe(201)
    expect((await register({ mode: 'inclusive', ...of('urn:v:1', ['angle']) })).status).toBe(201)
    const held = { id: 'urn:v:2', type: 'Valve', angle: { type: 'Property', value: 1 } }
    expect((await gateway.send('POST', '/ngsi-ld/v1/entities', held)).status).toBe(201)
    expect((await register({ mode: 'exclusive', ...of('urn:v:2', ['angle']) })).status).toBe(409)
    expect((await register({ mode: 'exclusive', ...of('urn:v:2', ['flow']) })).status).toBe(201)
  })

  test('NGSI-LD Null removes a member and is not a value; JSON null is rejected', async () => {
    const nothing = 'urn:ngsi-ld:null'
    expect((await register({ id: 'urn:r:null', description: 'd', tenant: 't', hall: 7 })).status).toBe(201)
    const patch = { description: nothing, tenant: nothing, hall: { type: 'Property', value: nothing } }
    expect((await gateway.send('PATCH', `${path}/urn:r:null`, { tenant: null })).status).toBe(400)
    expect((await gateway.send('PATCH', `${path}/urn:r:null`, patch)).status).toBe(204)
    expect((await gateway.get(`${path}/urn:r:null`)).json()).toEqual({
      ...base,
      id: 'urn:r:null',
      mode: 'inclusive',
      operations: ['federationOps'],
    })
    expect((await gateway.send('PATCH', `${path}/urn:r:null`, { endpoint: nothing })).status).toBe(400)
    for (const members of [{ description: nothing }, { tenant: nothing }, { hall: nothing }, { hall: null }])
      expect((await register(members)).status).toBe(400)
    for (const value of [nothing, null])
      expect((await register({ hall: { type: 'Property', value } })).status).toBe(400)
  })

  test('one with unchanged claims can be changed although conflicting data was stored meanwhile', async () => {
    const path1 = `${path}/urn:x:kept`
    const names = (...propertyNames: string[]) => ({
      information: [{ entities: [{ id: 'urn:v:3', type: 'Valve' }], propertyNames }],
    })
    expect((await register({ id: 'urn:x:kept', mode: 'exclusive', ...names('angle') })).status).toBe(201)
    const held = { id: 'urn:v:3', type: 'Valve', angle: { type: 'Property', value: 1 }, flow: 2 }
    expect((await gateway.send('POST', '/ngsi-ld/v1/entities?local=true', held)).status).toBe(201)
    const patch = { endpoint: 'http://moved.example', ...names('angle') }
    expect((await gateway.send('PATCH', path1, patch)).status).toBe(204)
    expect((await gateway.send('PATCH', path1, names('angle', 'flow'))).status).toBe(409)
    expect((await gateway.send('PATCH', path1, { mode: 'redirect' })).status).toBe(409)
  })

  test('a repeated id is 409', async () => {
    expect((await register({ id: 'urn:r:twice' })).status).toBe(201)
    expect((await register({ id: 'urn:r:twice' })).status).toBe(409)
  })
})

describe('GS CIM 009, 5.10.2: discovery', () => {
  beforeAll(async () => {
    const information = [
      { entities: [{ type: 'Lamp' }], propertyNames: ['brightness'] },
      { entities: [{ idPattern: 'urn:bus:.*', type: 'Bus' }], relationshipNames: ['line'] },
    ]
    await register({
      id: 'urn:d:1',
      information,
      hallNumber: 7,
      location: { type: 'Point', coordinates: [8, 49] },
    })
    const observationInterval = { startAt: '2020-01-01T00:00:00Z', endAt: '2021-01-01T00:00:00Z' }
    await register({ id: 'urn:d:2', information: [{ entities: [{ type: 'Lamp' }] }], observationInterval })
  })

  test('finds by type, id, idPattern and attributes, and shows only matching information', async () => {
    expect(await idsOf('type=Lamp')).toEqual(['urn:d:1'])
    expect(await idsOf('type=Lamp&attrs=brightness')).toEqual(['urn:d:1'])
    expect(await idsOf('type=Lamp&attrs=line')).toEqual([])
    expect(await idsOf('type=Bus&id=urn:bus:7')).toEqual(['urn:d:1'])
    expect(await idsOf('type=Bus&id=urn:tram:7')).toEqual([])
    const [found] = (await gateway.get(`${path}?type=Bus`)).json() as { information: unknown[] }[]
    expect(found!.information).toEqual([
      { entities: [{ idPattern: 'urn:bus:.*', type: 'Bus' }], relationshipNames: ['line'] },
    ])
  })

  test('finds sources with intervals only by temporal queries that overlap them', async () => {
    expect(await idsOf('type=Lamp&timerel=before&timeAt=2020-06-01T00:00:00Z')).toEqual(['urn:d:2'])
    expect(await idsOf('type=Lamp&timerel=after&timeAt=2022-06-01T00:00:00Z')).toEqual([])
    expect(
      await idsOf('type=Lamp&timerel=before&timeAt=2020-06-01T00:00:00Z&timeproperty=createdAt'),
    ).toEqual([])
  })

  test('filters by members of the registration and by its location', async () => {
    expect(await idsOf('type=Lamp&csf=hallNumber==7')).toEqual(['urn:d:1'])
    expect(await idsOf('type=Lamp&csf=hallNumber==8')).toEqual([])
    const near = (coordinates: string) =>
      `type=Lamp&georel=near%3BmaxDistance==2000&geometry=Point&coordinates=${coordinates}`
    expect(await idsOf(near('[8,49]'))).toEqual(['urn:d:1'])
    expect(await idsOf(near('[9,49]'))).toEqual([])
  })

  test('filters by members with default values, and by times as rendered', async () => {
    expect(await idsOf('type=Lamp&csf=mode==%22inclusive%22;hallNumber==7')).toEqual(['urn:d:1'])
    expect(await idsOf('type=Lamp&csf=mode==%22redirect%22')).toEqual([])
    await register({
      id: 'urn:d:5',
      information: [{ entities: [{ type: 'Kiln' }] }],
      expiresAt: '2060-01-01T00:00:00Z',
    })
    expect(await idsOf('type=Kiln&csf=expiresAt%3E2059-01-01T00:00:00Z')).toEqual(['urn:d:5'])
    expect(await idsOf('type=Kiln&csf=expiresAt%3E2061-01-01T00:00:00Z')).toEqual([])
  })

  test('pick and omit select the attributes that count, lang the language of custom members', async () => {
    const title = { type: 'LanguageProperty', languageMap: { de: 'Ofen', en: 'kiln' } }
    const information = [
      { entities: [{ type: 'Oven' }], propertyNames: ['heat', 'load'] },
      { entities: [{ type: 'Oven' }], propertyNames: ['smoke'] },
    ]
    await register({ id: 'urn:d:6', information, title1: title })
    const informationOf = async (query: string): Promise<unknown> => {
      const found: { information: unknown }[] = (await gateway.get(`${path}?type=Oven&${query}`)).json()
      return found[0]?.information
    }
    expect(await informationOf('pick=id,heat')).toEqual([information[0]])
    expect(await informationOf('pick=id,other')).toBeUndefined()
    expect(await informationOf('omit=smoke,heat')).toEqual([information[0]])
    expect(await informationOf('omit=smoke,heat,load')).toBeUndefined()
    expect((await gateway.get(`${path}?type=Oven&pick=heat&attrs=heat`)).status).toBe(400)
    const [spoken]: object[] = (await gateway.get(`${path}?type=Oven&lang=en`)).json()
    expect(spoken).toMatchObject({ title1: { type: 'Property', value: 'kiln', lang: 'en' } })
  })

  test('filters by the scope of the registration', async () => {
    await register({ id: 'urn:d:3', information: [{ entities: [{ type: 'Gate' }] }], scope: '/plant/hall' })
    await register({ id: 'urn:d:4', information: [{ entities: [{ type: 'Gate' }] }] })
    expect(await idsOf('type=Gate&scopeQ=/plant/%23')).toEqual(['urn:d:3'])
    expect(await idsOf('type=Gate&scopeQ=/yard')).toEqual([])
  })

  test('requires a condition: no condition or an invalid one is 400', async () => {
    const broken = ['q=(x', 'timerel=before', 'idPattern=', 'lang=', 'lang=en;q=high'].map(
      (part) => `?type=Lamp&${part}`,
    )
    for (const query of ['', '?id=urn:a:b', '?georel=within', ...broken])
      expect([query, (await gateway.get(path + query)).status]).toEqual([query, 400])
  })
})
