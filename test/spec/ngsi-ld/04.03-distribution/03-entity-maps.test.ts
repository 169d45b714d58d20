/**
 * Entity maps: a query names what it found and where, and later pages go by it, whatever came or went since.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '#base/limits.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'

describe('GS CIM 009, 5.14: entity maps', () => {
  let here: HttpGateway
  let there: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    there = await startHttpGateway({ alias: 'there' })
    for (const id of ['urn:p:1', 'urn:p:2']) await here.send('POST', entities, { id, type: 'Pump' })
    for (const id of ['urn:p:2', 'urn:p:3']) await there.send('POST', entities, { id, type: 'Pump' })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  const ask = async (query: string, map?: string): Promise<[string[], string]> => {
    const reply = await here.get(
      `${entities}?type=Pump&${query}`,
      map === undefined ? {} : { 'NGSILD-EntityMap': map },
    )
    const isMade = reply.headers['ngsild-entitymap'] !== map
    expect(reply.status).toBe(isMade ? 201 : 200)
    return [(reply.json() as { id: string }[]).map(({ id }) => id), reply.headers['ngsild-entitymap']!]
  }
  const maps = '/ngsi-ld/v1/entityMaps'

  test('is made without registrations too', async () => {
    const [ids, map] = await ask('entityMap=true&limit=1')
    expect(ids).toEqual(['urn:p:1'])
    expect(map).toMatch(/^\/ngsi-ld\/v1\/entityMaps\/urn:/)
    const shown = (await here.get(map)).json() as { id: string; entityMap: object }
    expect(shown).toMatchObject({ id: map.split('/').at(-1), type: 'EntityMap', linkedMaps: {} })
    expect((await here.get(`/ngsi-ld/v1/entityMap/${shown.id}`)).json()).toEqual(shown)
    expect(shown.entityMap).toEqual({ 'urn:p:1': ['@none'], 'urn:p:2': ['@none'] })
  })

  test('tells where each entity is held, and serves its pages although others came', async () => {
    await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
      id: 'urn:r:1',
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: there.url,
    })
    const [first, map] = await ask('entityMap=true&limit=2')
    expect(first).toEqual(['urn:p:1', 'urn:p:2'])
    const { entityMap, linkedMaps } = (await here.get(map)).json() as Record<string, Record<string, string>>
    expect(entityMap).toEqual({
      'urn:p:1': ['@none'],
      'urn:p:2': ['@none', 'urn:r:1'],
      'urn:p:3': ['urn:r:1'],
    })
    const linked = (await there.get(linkedMaps!['urn:r:1']!)).json() as object
    expect(linked).toMatchObject({ entityMap: { 'urn:p:2': ['@none'], 'urn:p:3': ['@none'] } })
    await here.send('POST', `${entities}?local=true`, { id: 'urn:p:0', type: 'Pump' })
    expect(await ask('limit=2&offset=2', map)).toEqual([['urn:p:3'], map])
    expect(await ask('limit=2', map)).toEqual([['urn:p:1', 'urn:p:2'], map])
  })

  test('only expiresAt can be changed; one that is gone is 404', async () => {
    const [, map] = await ask('entityMap=true&entityMapLifetime=PT1M')
    const path = map
    const until = `${new Date(Date.now() + 60_000).toISOString().slice(0, 19)}Z`
    expect((await here.send('PATCH', path, { expiresAt: until })).status).toBe(204)
    expect((await here.get(path)).json()).toMatchObject({ expiresAt: until })
    const before = (await here.get(path)).text
    for (const ignored of [{ entityMap: {} }, { linkedMaps: {}, id: 'urn:m:9', type: 'Map' }, {}])
      expect((await here.send('PATCH', path, ignored)).status).toBe(204)
    expect((await here.get(path)).text).toBe(before)
    expect((await here.send('PATCH', path, { colour: 'red' })).status).toBe(400)
    expect((await here.send('PATCH', path, { expiresAt: '2000-01-01T00:00:00Z' })).status).toBe(400)
    expect((await here.send('PATCH', path, { expiresAt: '9999-01-01T00:00:00Z' })).status).toBe(204)
    const { expiresAt } = (await here.get(path)).json() as { expiresAt: string }
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(limits.entityMapLifetimeMsMax.value)
    expect((await here.ask('DELETE', path)).status).toBe(204)
    expect((await here.get(path)).status).toBe(404)
    expect((await here.send('PATCH', path, { colour: 'red' })).status).toBe(404)
  })

  test('one that is gone is made anew', async () => {
    await ask('limit=3', '%zz')
    const [ids, map] = await ask('limit=3', `${maps}/urn:ngsi-ld:EntityMap:gone`)
    expect([ids.length, (await here.get(map)).status]).toEqual([3, 200])
  })

  test('is read by its location, its address or its id, and needs no selector then', async () => {
    const [, map] = await ask('entityMap=true')
    for (const named of [map, `http://x.example${map}`, map.split('/').at(-1)!]) {
      const reply = await here.get(`${entities}?limit=1&offset=2&count=true`, { 'NGSILD-EntityMap': named })
      expect(reply.json()).toMatchObject([{ id: 'urn:p:0' }])
      expect(reply.headers['ngsild-results-count']).toBe('4')
    }
  })

  test('is made of a query by a body, and gone by', async () => {
    const body = { type: 'Query', entities: [{ type: 'Pump' }] }
    const query = '/ngsi-ld/v1/entityOperations/query'
    const first = await here.send('POST', `${query}?limit=1`, { ...body, entityMap: true })
    const map = first.headers['ngsild-entitymap']!
    expect([first.json(), (await here.get(map)).json()]).toMatchObject([
      [{ id: 'urn:p:1' }],
      { entityMap: { 'urn:p:3': ['urn:r:1'] } },
    ])
    const next = await here.send('POST', `${query}?offset=3`, body, { 'NGSILD-EntityMap': map })
    expect(next.json()).toMatchObject([{ id: 'urn:p:3' }])
  })

  test('is answered itself, where it is what is asked for', async () => {
    const made = await here.get(`${maps}?type=Pump&entityMapLifetime=PT1H`)
    expect([made.status, made.headers['location']]).toEqual([201, made.headers['ngsild-entitymap']])
    const map = made.json() as { id: string; entityMap: object; expiresAt: string }
    const another = await here.get(`${maps}?type=Pump`, { 'NGSILD-EntityMap': map.id })
    expect(another.status).toBe(422)
    expect(Object.keys(map.entityMap)).toEqual(['urn:p:1', 'urn:p:2', 'urn:p:0', 'urn:p:3'])
    expect(Date.parse(map.expiresAt) - Date.now()).toBeGreaterThan(3_500_000)
    const posted = await here.send('POST', maps, {
      type: 'Query',
      entities: [{ id: 'urn:p:1', type: 'Pump' }],
    })
    expect([posted.status, posted.json()]).toMatchObject([201, { entityMap: { 'urn:p:1': ['@none'] } }])
    expect((await here.get(maps)).status).toBe(400)
    expect((await here.get(`${maps}?type=Pump&entityMapLifetime=soon`)).status).toBe(400)
    expect((await here.get(`${entities}?type=Pump&entityMapLifetime=PT1H`)).status).toBe(400)
  })

  test('is made of one entity', async () => {
    const reply = await here.get(`${entities}/urn:p:2?entityMap=true`)
    const map = reply.headers['ngsild-entitymap']!
    expect((await here.get(map)).json()).toMatchObject({ entityMap: { 'urn:p:2': ['@none', 'urn:r:1'] } })
    const again = await here.get(`${entities}/urn:p:2`, { 'NGSILD-EntityMap': map })
    expect([again.status, again.headers['ngsild-entitymap']]).toEqual([200, map])
    expect((await here.get(`${entities}/urn:p:9?entityMap=true`)).headers['ngsild-entitymap']).toBeUndefined()
  })

  test('is made of histories, and gone by', async () => {
    const histories = '/ngsi-ld/v1/temporal/entities'
    const level = (value: number, n: number) => ({
      type: 'Property',
      value,
      observedAt: `2025-01-0${n}T00:00:00Z`,
    })
    for (const n of [1, 2, 3]) {
      await here.send('POST', histories, { id: `urn:t:${n}`, type: 'Tank', level: [level(n, n)] })
    }
    const window = 'type=Tank&timerel=after&timeAt=2025-01-02T00:00:00Z&timeproperty=observedAt'
    const first = await here.get(`${histories}?${window}&limit=1&entityMap=true`)
    const map = first.headers['ngsild-entitymap']!
    expect([first.json(), (await here.get(map)).json()]).toMatchObject([
      [{ id: 'urn:t:2' }],
      { entityMap: { 'urn:t:2': ['@none'], 'urn:t:3': ['@none'] } },
    ])
    await here.ask('DELETE', `${histories}/urn:t:2`)
    const next = await here.get(`${histories}?${window}&limit=1&offset=1`, { 'NGSILD-EntityMap': map })
    expect(next.json()).toMatchObject([{ id: 'urn:t:3' }])
    expect((await here.get(`/ngsi-ld/v1/temporal/entityMaps?${window}`)).json()).toMatchObject({
      entityMap: { 'urn:t:3': ['@none'] },
    })
    const one = await here.get(`${histories}/urn:t:3?entityMap=true`)
    expect(one.headers['ngsild-entitymap']).toMatch(/^\/ngsi-ld/)
  })

  test('is made of histories of sources, too', async () => {
    const histories = '/ngsi-ld/v1/temporal/entities'
    const level = { type: 'Property', value: 1, observedAt: '2025-01-01T00:00:00Z' }
    await there.send('POST', histories, { id: 'urn:b:1', type: 'Boiler', level: [level] })
    await here.send('POST', histories, { id: 'urn:b:2', type: 'Boiler', level: [level] })
    await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
      id: 'urn:r:2',
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Boiler' }] }],
      operations: ['retrieveTemporal', 'queryTemporal'],
      endpoint: there.url,
    })
    const window = 'type=Boiler&timerel=after&timeAt=2024-01-01T00:00:00Z'
    const alone = await here.get(`/ngsi-ld/v1/temporal/entityMaps?${window}`)
    expect(alone.json()).toMatchObject({ entityMap: { 'urn:b:1': ['urn:r:2'] }, linkedMaps: {} })
    await here.send('PATCH', '/ngsi-ld/v1/csourceRegistrations/urn:r:2', {
      operations: ['retrieveTemporal', 'queryTemporal', 'createEntityMapQueryTemporal'],
    })
    const reply = await here.get(`/ngsi-ld/v1/temporal/entityMaps?${window}`)
    const { entityMap, linkedMaps } = reply.json() as Record<string, Record<string, string>>
    expect([reply.status, entityMap]).toEqual([201, { 'urn:b:1': ['urn:r:2'], 'urn:b:2': ['@none'] }])
    expect((await there.get(linkedMaps!['urn:r:2']!)).status).toBe(200)
    const page = await here.get(`${histories}?${window}&limit=1`, {
      'NGSILD-EntityMap': reply.headers['ngsild-entitymap']!,
    })
    expect(page.json()).toMatchObject([{ id: Object.keys(entityMap!)[0] }])
  })

  test('means nothing elsewhere and is refused there', async () => {
    const reply = await here.get('/ngsi-ld/v1/types', { 'NGSILD-EntityMap': 'urn:m:1' })
    expect([reply.status, reply.text]).toEqual([422, expect.stringContaining('OperationNotSupported')])
  })
})
