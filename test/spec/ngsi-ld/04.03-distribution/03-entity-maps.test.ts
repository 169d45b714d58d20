/**
 * Entity maps: a query names what it found and where, and later pages go by it, whatever came or went since.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
    expect(reply.status).toBe(200)
    return [(reply.json() as { id: string }[]).map(({ id }) => id), reply.headers['ngsild-entitymap']!]
  }

  test('is made without registrations too', async () => {
    const [ids, map] = await ask('entityMap=true&limit=1')
    expect(ids).toEqual(['urn:p:1'])
    const shown = (await here.get(`/ngsi-ld/v1/entityMap/${map}`)).json() as { entityMap: object }
    expect(shown).toMatchObject({ id: map, type: 'EntityMap', linkedMaps: {} })
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
    const { entityMap } = (await here.get(`/ngsi-ld/v1/entityMaps/${map}`)).json() as { entityMap: object }
    expect(entityMap).toEqual({
      'urn:p:1': ['@none'],
      'urn:p:2': ['@none', 'urn:r:1'],
      'urn:p:3': ['urn:r:1'],
    })
    await here.send('POST', `${entities}?local=true`, { id: 'urn:p:0', type: 'Pump' })
    expect(await ask('limit=2&offset=2', map)).toEqual([['urn:p:3'], map])
    expect(await ask('limit=2', map)).toEqual([['urn:p:1', 'urn:p:2'], map])
  })

  test('only expiresAt can be changed; one that is gone is 404', async () => {
    const [, map] = await ask('entityMap=true&entityMapLifetime=PT1M')
    const path = `/ngsi-ld/v1/entityMaps/${map}`
    const until = '2090-01-01T00:00:00Z'
    expect((await here.send('PATCH', path, { expiresAt: until })).status).toBe(204)
    expect((await here.get(path)).json()).toMatchObject({ expiresAt: until })
    expect((await here.send('PATCH', path, { entityMap: {} })).status).toBe(400)
    expect((await here.send('PATCH', path, { expiresAt: '2000-01-01T00:00:00Z' })).status).toBe(400)
    expect((await here.ask('DELETE', path)).status).toBe(204)
    expect((await here.get(path)).status).toBe(404)
    expect((await here.get(`${entities}?type=Pump`, { 'NGSILD-EntityMap': map })).status).toBe(404)
  })
})
