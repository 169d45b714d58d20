/**
 * Entity maps: a query records its results and their holders, and later pages use them, regardless of later
 * changes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
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

  test('is created also without registrations', async () => {
    const [ids, map] = await ask('entityMap=true&limit=1')
    expect(ids).toEqual(['urn:p:1'])
    expect(map).toMatch(/^\/ngsi-ld\/v1\/entityMaps\/urn:/)
    const shown = (await here.get(map)).json() as { id: string; entityMap: object }
    expect(shown).toMatchObject({ id: map.split('/').at(-1), type: 'EntityMap', linkedMaps: {} })
    expect((await here.get(`/ngsi-ld/v1/entityMap/${shown.id}`)).json()).toEqual(shown)
    expect(shown.entityMap).toEqual({ 'urn:p:1': ['@none'], 'urn:p:2': ['@none'] })
  })

  test('lists the holders of each entity, and its pages ignore entities created later', async () => {
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

  test('changes and deletions of a map are forwarded to the linked maps of sources', async () => {
    const linkedTo = async (map: string): Promise<string> => {
      const { linkedMaps } = (await here.get(map)).json() as { linkedMaps: Record<string, string> }
      return linkedMaps['urn:r:1']!
    }
    const until = `${new Date(Date.now() + 3_600_000).toISOString().slice(0, 19)}Z`
    const [, map] = await ask('entityMap=true')
    const linked = await linkedTo(map)
    const changed = await here.send('PATCH', map, { expiresAt: until })
    expect([changed.status, changed.headers['ngsild-warning']]).toEqual([204, undefined])
    expect((await there.get(linked)).json()).toMatchObject({ expiresAt: until })
    expect((await here.ask('DELETE', map)).status).toBe(204)
    expect((await there.get(linked)).status).toBe(404)

    const [, alone] = await ask('entityMap=true')
    const kept = await linkedTo(alone)
    expect((await here.ask('DELETE', `${alone}?local=true`)).status).toBe(204)
    expect((await there.get(kept)).status).toBe(200)

    const [, gone] = await ask('entityMap=true')
    const registration = '/ngsi-ld/v1/csourceRegistrations/urn:r:1'
    await here.send('PATCH', registration, { endpoint: 'http://127.0.0.1:9' })
    const warned = await here.ask('DELETE', gone)
    expect([warned.status, warned.headers['ngsild-warning']]).toEqual([204, expect.stringMatching(/^199 /)])
    expect((await here.get(gone)).status).toBe(404)
    await here.send('PATCH', registration, { endpoint: there.url })
  })

  test('only expiresAt can be changed; a deleted map is 404', async () => {
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

  test('pages of a map join linked entities of sources that hold no entity of the page', async () => {
    const registration = { id: 'urn:r:tanks', type: 'ContextSourceRegistration', endpoint: there.url }
    const information = [{ entities: [{ type: 'Tank' }] }]
    await here.send('POST', '/ngsi-ld/v1/csourceRegistrations', { ...registration, information })
    const level = { type: 'Property', value: 7 }
    await there.send('POST', entities, { id: 'urn:t:1', type: 'Tank', level })
    const to = { type: 'Relationship', object: 'urn:t:1', objectType: 'Tank' }
    for (const id of ['urn:v:1', 'urn:v:2']) await here.send('POST', entities, { id, type: 'Valve', to })
    const query = `${entities}?type=Valve&join=inline&format=simplified`
    const first = await here.get(`${query}&limit=1&entityMap=true`)
    const named = { 'NGSILD-EntityMap': first.headers['ngsild-entitymap']! }
    const shown = (id: string) => [{ id, type: 'Valve', to: { id: 'urn:t:1', type: 'Tank', level: 7 } }]
    expect([first.status, first.json()]).toEqual([201, shown('urn:v:1')])
    const second = await here.get(`${query}&limit=1&offset=1`, named)
    expect([second.status, second.json()]).toEqual([200, shown('urn:v:2')])
    await here.ask('DELETE', '/ngsi-ld/v1/csourceRegistrations/urn:r:tanks')
  })

  test('fills a page with the next entities if some were deleted since', async () => {
    const ids = [1, 2, 3, 4, 5].map((n) => `urn:drain:${n}`)
    for (const id of ids) await here.send('POST', `${entities}?local=true`, { id, type: 'Drain' })
    const first = await here.get(`${entities}?type=Drain&limit=1&entityMap=true`)
    const named = { 'NGSILD-EntityMap': first.headers['ngsild-entitymap']! }
    for (const n of [2, 3]) await here.ask('DELETE', `${entities}/urn:drain:${n}?local=true`)
    const second = await here.get(`${entities}?type=Drain&limit=1&offset=1`, named)
    expect(second.json()).toMatchObject([{ id: 'urn:drain:4' }])
    const [, next] = /<([^>]*)>;\s*rel="next"/.exec(String(second.headers['link'])) ?? []
    expect((await here.get(next!, named)).json()).toMatchObject([{ id: 'urn:drain:5' }])
    for (const id of ids) await here.ask('DELETE', `${entities}/${id}?local=true`)
  })

  test('an expired map is created again', async () => {
    await ask('limit=3', '%zz')
    const [ids, map] = await ask('limit=3', `${maps}/urn:ngsi-ld:EntityMap:gone`)
    expect([ids.length, (await here.get(map)).status]).toEqual([3, 200])
  })

  test('is used by its location, its URL or its id, without a selector', async () => {
    const [, map] = await ask('entityMap=true')
    for (const named of [map, `http://x.example${map}`, map.split('/').at(-1)!]) {
      const reply = await here.get(`${entities}?limit=1&offset=2&count=true`, { 'NGSILD-EntityMap': named })
      expect(reply.json()).toMatchObject([{ id: 'urn:p:0' }])
      expect(reply.headers['ngsild-results-count']).toBe('4')
    }
  })

  test('is created and used by queries with a body', async () => {
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

  test('is itself the response of the entityMaps resource', async () => {
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
    const part = await here.get(`${maps}?type=Pump&limit=1&count=true&entityMap=true`)
    expect([part.status, part.headers['ngsild-results-count']]).toEqual([201, '4'])
    expect((part.json() as typeof map).entityMap).toEqual(map.entityMap)
    for (const wrong of ['entityMap=false', 'entityMap=TRUE', 'pageKey=x'])
      expect([wrong, (await here.get(`${maps}?type=Pump&${wrong}`)).status]).toEqual([wrong, 400])
    expect((await here.get(`${maps}?type=Pump&entityMapLifetime=soon`)).status).toBe(400)
    expect((await here.get(`${entities}?type=Pump&entityMapLifetime=PT1H`)).status).toBe(400)
  })

  test('is created by the retrieval of an entity', async () => {
    const reply = await here.get(`${entities}/urn:p:2?entityMap=true`)
    const map = reply.headers['ngsild-entitymap']!
    expect((await here.get(map)).json()).toMatchObject({ entityMap: { 'urn:p:2': ['@none', 'urn:r:1'] } })
    const again = await here.get(`${entities}/urn:p:2`, { 'NGSILD-EntityMap': map })
    expect([again.status, again.headers['ngsild-entitymap']]).toEqual([200, map])
    expect((await here.get(`${entities}/urn:p:9?entityMap=true`)).headers['ngsild-entitymap']).toBeUndefined()
  })

  test('is created and used by temporal queries', async () => {
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

  test('is created also from histories of sources', async () => {
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

  test('is refused by operations without entity maps', async () => {
    const reply = await here.get('/ngsi-ld/v1/types', { 'NGSILD-EntityMap': 'urn:m:1' })
    expect([reply.status, reply.text]).toEqual([422, expect.stringContaining('OperationNotSupported')])
  })
})
