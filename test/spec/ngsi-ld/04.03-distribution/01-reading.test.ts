/**
 * Distributed consumption between real gateways: merged entities in each mode, requests to sources, and slow,
 * unreachable or circular sources.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const at = (value: unknown, observedAt?: string) => ({
  type: 'Property',
  value,
  ...(observedAt === undefined ? {} : { observedAt }),
})
const early = '2024-01-01T00:00:00Z'
const late = '2024-01-02T00:00:00Z'

describe('GS CIM 009, 4.3.6: distributed consumption', () => {
  let here: HttpGateway
  let there: HttpGateway
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    there = await startHttpGateway({ alias: 'there' })
  })
  afterAll(async () => {
    await here.close()
    await there.close()
  })
  const hold = async (gateway: HttpGateway, id: string, attributes: object): Promise<void> => {
    const made = await gateway.send('POST', `${entities}?local=true`, { id, type: 'Pump', ...attributes })
    expect(made.status).toBe(201)
  }
  let registered: string[] = []
  const register = async (members: object, gateway = here): Promise<void> => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      endpoint: there.url,
      ...members,
    }
    const made = await gateway.send('POST', registrations, body)
    expect([made.status, made.text]).toEqual([201, ''])
    registered.push(gateway.url + made.headers['location']!)
  }
  afterEach(async () => {
    for (const gateway of [here, there]) {
      for (const path of registered.filter((url) => url.startsWith(gateway.url)))
        await gateway.ask('DELETE', path.slice(gateway.url.length))
      const all = (await gateway.get(`${entities}?local=true&limit=1000`)).json() as { id: string }[]
      for (const { id } of all) await gateway.ask('DELETE', `${entities}/${id}?local=true`)
    }
    registered = []
  })
  const read = async (path: string): Promise<Record<string, { value: unknown }>> => {
    const reply = await here.get(path)
    expect(reply.status).toBe(200)
    return reply.json()
  }

  test('inclusive: copies are merged, the most recent observedAt wins, local=true stays here', async () => {
    await hold(here, 'urn:p:1', { flow: at(1, early), here: at('x') })
    await hold(there, 'urn:p:1', { flow: at(2, late), there: at('y') })
    await register({})
    const merged = await read(`${entities}/urn:p:1`)
    expect([merged['flow']!.value, merged['here']!.value, merged['there']!.value]).toEqual([2, 'x', 'y'])
    expect(await read(`${entities}/urn:p:1?local=true`)).not.toHaveProperty('there')
    const shown = await read(`${entities}/urn:p:1?options=keyValues&attrs=flow`)
    expect(shown).toEqual({ id: 'urn:p:1', type: 'Pump', flow: 2 })
  })

  test('without observedAt, the most recent modifiedAt wins, per datasetId', async () => {
    await hold(here, 'urn:p:2', { flow: at(1) })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await hold(there, 'urn:p:2', { flow: [at(2), { ...at(3), datasetId: 'urn:d:1' }] })
    await register({})
    const { flow } = await read(`${entities}/urn:p:2`)
    expect(flow).toEqual([at(2), { ...at(3), datasetId: 'urn:d:1' }])
  })

  test('auxiliary: only fills gaps', async () => {
    await hold(here, 'urn:p:3', { flow: at(1, early) })
    await hold(there, 'urn:p:3', { flow: at(2, late), there: at('y') })
    await register({ mode: 'auxiliary' })
    const merged = await read(`${entities}/urn:p:3`)
    expect([merged['flow']!.value, merged['there']!.value]).toEqual([1, 'y'])
  })

  test('types and scopes are the union over all copies', async () => {
    const both = { id: 'urn:p:both', type: 'Pump' }
    await here.send('POST', `${entities}?local=true`, { ...both, scope: ['/a', '/b'], here: at(1) })
    await there.send('POST', entities, {
      ...both,
      type: ['Pump', 'Motor'],
      scope: ['/b', '/c'],
      there: at(2),
    })
    await register({})
    const types = ['Pump', 'Motor']
    expect(await read(`${entities}/urn:p:both`)).toMatchObject({ type: types, scope: ['/a', '/b', '/c'] })
    const found = await here.get(`${entities}?type=Pump&scopeQ=/a;/c&splitEntities=true`)
    expect((found.json() as { id: string }[]).map(({ id }) => id)).toEqual(['urn:p:both'])
  })

  test('a source contributes only attributes that it claims', async () => {
    await hold(here, 'urn:p:4', { name: at('n') })
    await hold(there, 'urn:p:4', { flow: at(2), secret: at(3) })
    await register({ information: [{ entities: [{ type: 'Pump' }], propertyNames: ['flow'] }] })
    const merged = await read(`${entities}/urn:p:4`)
    expect(Object.keys(merged).sort()).toEqual(['flow', 'id', 'name', 'type'])
    expect((await here.get(`${entities}/urn:p:4?attrs=secret`)).status).toBe(404)
  })

  test('queries return local and remote entities once each, count and page over both, and evaluate merged entities', async () => {
    for (const n of [1, 2, 3]) await hold(here, `urn:q:${n}`, { flow: at(n, early) })
    for (const n of [3, 4, 5]) await hold(there, `urn:q:${n}`, { flow: at(n + 10, late) })
    await register({})
    const page = async (query: string) => {
      const reply = await here.get(`${entities}?type=Pump&${query}`)
      return [reply.headers['ngsild-results-count'], (reply.json() as { id: string }[]).map(({ id }) => id)]
    }
    expect(await page('count=true')).toEqual(['5', ['urn:q:1', 'urn:q:2', 'urn:q:3', 'urn:q:4', 'urn:q:5']])
    expect(await page('count=true&limit=2&offset=2')).toEqual(['5', ['urn:q:3', 'urn:q:4']])
    expect((await page('q=flow%3E10'))[1]).toEqual(['urn:q:3', 'urn:q:4', 'urn:q:5'])
    expect((await page('q=flow==3'))[1]).toEqual([])
    expect((await page('local=true'))[1]).toEqual(['urn:q:1', 'urn:q:2', 'urn:q:3'])
  })

  test('orderBy is allowed only with local=true while sources are registered', async () => {
    await hold(here, 'urn:o:1', { flow: at(1) })
    await register({})
    const body = { type: 'Query', entities: [{ type: 'Pump' }], ordering: { orderBy: ['flow'] } }
    const query = '/ngsi-ld/v1/entityOperations/query'
    expect((await here.get(`${entities}?type=Pump&orderBy=flow`)).status).toBe(400)
    expect((await here.get(`${entities}?type=Pump&orderBy=flow&local=true`)).status).toBe(200)
    expect((await here.send('POST', query, body)).status).toBe(400)
    expect((await here.send('POST', `${query}?local=true`, body)).status).toBe(200)
  })

  test('type=* selects local entities only, and contradicts local=false', async () => {
    await register({})
    await hold(here, 'urn:all:1', {})
    await hold(there, 'urn:all:2', {})
    const all = { type: 'Query', entities: [{ type: '*' }] }
    const past = { ...all, temporalQ: { timerel: 'after', timeAt: '2000-01-01T00:00:00Z' } }
    const times = 'timerel=after&timeAt=2000-01-01T00:00:00Z'
    const ways = [
      ['GET', `${entities}?type=*`],
      ['GET', `${entities}?type=%20*`],
      ['POST', '/ngsi-ld/v1/entityOperations/query?', all],
      ['GET', `/ngsi-ld/v1/temporal/entities?type=*&${times}&timeproperty=modifiedAt`],
      ['POST', '/ngsi-ld/v1/temporal/entityOperations/query?', past],
    ] as const
    for (const [method, path, body] of ways) {
      const answer = body === undefined ? await here.get(path) : await here.send(method, path, body)
      expect([path, answer.status]).toEqual([path, 200])
      expect(answer.text).not.toContain('urn:all:2')
      const contrary = `${path}&local=false`
      const refused = body === undefined ? await here.get(contrary) : await here.send(method, contrary, body)
      expect([path, refused.status, refused.text]).toEqual([
        path,
        400,
        expect.stringContaining('local=false'),
      ])
    }
    const map = await here.send('POST', '/ngsi-ld/v1/entityMaps', all)
    expect(map.json()).toMatchObject({ entityMap: { 'urn:all:1': ['@none'] }, linkedMaps: {} })
  })

  test('pick returns the same as if all data were local: entity members, linked entities, geometries', async () => {
    await register({})
    const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 2] } }
    await hold(there, 'urn:pick:1', { flow: at(1), location })
    const leads = { type: 'Relationship', object: 'urn:pick:3' }
    await hold(there, 'urn:pick:2', { leads })
    await hold(here, 'urn:pick:3', { leads: { type: 'Relationship', object: 'urn:pick:4' } })
    await hold(here, 'urn:pick:4', { flow: at(4) })
    const body = { type: 'Query', entities: [{ type: 'Pump' }] }
    const shown = async (parameters: string, members: object): Promise<unknown[]> => {
      const path = `${entities}?type=Pump&format=simplified&${encodeURI(parameters)}`
      const posted = '/ngsi-ld/v1/entityOperations/query?format=simplified'
      const got = (await read(path)) as unknown as { id: string }[]
      const given = (await here.send('POST', posted, { ...body, ...members })).json()
      expect([path, given]).toEqual([path, got])
      return got
    }
    const some = await shown('pick=id,flow', { pick: ['id', 'flow'] })
    expect(some).toHaveLength(4)
    expect(some).toContainEqual({ id: 'urn:pick:2' })
    const deep = { join: 'inline', joinLevel: 2, pick: ['leads{leads{flow}}'] }
    expect(await shown('join=inline&joinLevel=2&pick=leads{leads{flow}}', deep)).toContainEqual({
      leads: { leads: { flow: 4 } },
    })
    expect((await here.get(`${entities}/urn:pick:2?pick=id,flow&format=simplified`)).json()).toEqual({
      id: 'urn:pick:2',
    })
    const geo = { Accept: 'application/geo+json' }
    const query = '/ngsi-ld/v1/entityOperations/query'
    const features = [
      (await here.get(`${entities}?attrs=flow`, geo)).json(),
      (await here.send('POST', query, { type: 'Query', attrs: ['flow'] }, geo)).json(),
    ] as { features: object[] }[]
    for (const { features: found } of features)
      expect(found).toContainEqual(expect.objectContaining({ id: 'urn:pick:1', geometry: location.value }))
    const feature = (await here.get(`${entities}/urn:pick:1?pick=flow`, geo)).json()
    expect(feature).toMatchObject({ geometry: location.value })
  })

  test('linked entities of other brokers are joined if the relationship states their type', async () => {
    await register({ information: [{ entities: [{ type: 'Pump' }, { type: 'Tank' }] }] })
    const link = (object: string, objectType?: string) => ({ type: 'Relationship', object, objectType })
    const tank = { id: 'urn:link:3', type: 'Tank', from: link('urn:link:4', 'Pump'), level: at(3) }
    await there.send('POST', entities, tank)
    await there.send('POST', entities, { id: 'urn:link:5', type: 'Tank', level: at(5) })
    await hold(here, 'urn:link:1', { to: link('urn:link:3', 'Tank'), flow: at(1) })
    await hold(here, 'urn:link:2', { to: link('urn:link:5'), other: link('urn:link:none', 'Tank') })
    await hold(there, 'urn:link:4', { to: link('urn:link:1', 'Pump'), flow: at(4) })
    const simple = 'type=Pump&format=simplified'
    const all = (await read(`${entities}?${simple}&join=inline&joinLevel=2`)) as unknown as object[]
    expect(all).toContainEqual({
      id: 'urn:link:1',
      type: 'Pump',
      flow: 1,
      to: {
        id: 'urn:link:3',
        type: 'Tank',
        level: 3,
        from: { id: 'urn:link:4', type: 'Pump', to: 'urn:link:1', flow: 4 },
      },
    })
    // Who does not say the type links to what is here.
    const plain = { id: 'urn:link:2', type: 'Pump', to: 'urn:link:5', other: 'urn:link:none' }
    expect(all).toContainEqual(plain)
    const path = `${entities}/urn:link:1?format=simplified`
    const flat = (await read(`${path}&join=flat&joinLevel=2&pick=id,to{level,from{flow}}`)) as unknown
    expect(flat).toEqual([
      { id: 'urn:link:1', to: 'urn:link:3' },
      { level: 3, from: 'urn:link:4' },
      { flow: 4 },
    ])
    expect(await read(`${path}&join=inline&local=true`)).toMatchObject({ to: 'urn:link:3' })
    const body = { type: 'Query', entities: [{ type: 'Pump', id: 'urn:link:1' }], join: 'inline' }
    const posted = '/ngsi-ld/v1/entityOperations/query?format=simplified'
    const told = await here.send('POST', posted, body)
    expect(told.json()).toMatchObject([{ to: { level: 3, from: 'urn:link:4' } }])
    expect(told.headers['ngsild-warning']).toBeUndefined()
  })

  test('expired data is not shown, even if a source still reports it', async () => {
    const old = await startHttpGateway({ alias: 'old' })
    await register({ endpoint: old.url, management: { cacheDuration: 'PT1H' } })
    const ids = async (): Promise<unknown> =>
      ((await here.get(`${entities}?type=Pump`)).json() as { id: string }[]).map(({ id }) => id)
    // On a busy machine the entity may expire before it is read, or the source be too slow to be asked again
    // at once: it is created again with a longer life.
    for (let lifeMs = 400; ; lifeMs *= 4) {
      const expiresAt = Date.now() + lifeMs
      const pump = {
        id: `urn:x:${lifeMs}`,
        type: 'Pump',
        flow: at(1),
        expiresAt: new Date(expiresAt).toISOString(),
      }
      await old.send('POST', entities, pump)
      let shown = await ids()
      while (Date.now() < expiresAt && !String(shown).includes(pump.id)) shown = await ids()
      if (Date.now() >= expiresAt) continue
      expect(shown).toEqual([pump.id])
      break
    }
    await expect.poll(ids).toEqual([])
    await old.close()
  })

  test('a source is queried by the operations that it offers, and not at all if it offers none', async () => {
    await hold(there, 'urn:p:5', { flow: at(2) })
    await register({ operations: ['updateOps'] })
    expect((await here.get(`${entities}/urn:p:5`)).status).toBe(404)
    await register({ operations: ['queryEntity'] })
    expect((await read(`${entities}/urn:p:5`))['flow']!.value).toBe(2)
  })

  test('the tenant and headers of the registration are sent to the source', async () => {
    const body = { id: 'urn:p:6', type: 'Pump', flow: at(6) }
    await there.send('POST', entities, body, { 'NGSILD-Tenant': 'plant' })
    await register({ tenant: 'plant' })
    expect((await read(`${entities}/urn:p:6`))['flow']!.value).toBe(6)
  })

  test('circular registrations end: 508 for the repeated request, a warning for the client', async () => {
    await hold(here, 'urn:p:7', { flow: at(1) })
    await hold(there, 'urn:p:7', { there: at(2) })
    await register({})
    await register({ endpoint: here.url }, there)
    const again = await here.get(`${entities}/urn:p:7`, { Via: '1.1 elsewhere, 1.1 here' })
    expect(again.status).toBe(508)
    const reply = await here.get(`${entities}/urn:p:7`)
    expect(Object.keys(reply.json() as object).sort()).toEqual(['flow', 'id', 'there', 'type'])
    expect(reply.headers['ngsild-warning']).toMatch(/^199 127\.0\.0\.1:\d+ "\S+ answered 508"$/)
  })

  test('warnings of a source are forwarded, since its missing data is missing here', async () => {
    await hold(there, 'urn:p:8', { there: at(2) })
    await register({})
    await register({ endpoint: 'http://127.0.0.1:9' }, there)
    const gone = expect.stringMatching(/^199 127\.0\.0\.1:9 "/)
    for (const path of [`${entities}/urn:p:8`, `${entities}?type=Pump`, '/ngsi-ld/v1/types']) {
      const reply = await here.get(path)
      expect([reply.status, reply.headers['ngsild-warning']]).toEqual([200, gone])
    }
    const nowhere = await here.get(`${entities}/urn:p:nowhere`)
    expect([nowhere.status, nowhere.headers['ngsild-warning']]).toEqual([404, gone])
  })

  test('a source contributes only its registered datasets, and current values only without an interval', async () => {
    const flow = [at(1), { ...at(2), datasetId: 'urn:d:1' }, { ...at(3), datasetId: 'urn:d:2' }]
    await hold(there, 'urn:p:set', { flow })
    await register({ datasetId: ['urn:d:1', '@none'] })
    expect((await read(`${entities}/urn:p:set`))['flow']).toEqual([flow[0], flow[1]])
    await here.ask('DELETE', registered.pop()!.slice(here.url.length))
    await register({ observationInterval: { startAt: '2020-01-01T00:00:00Z' } })
    expect((await here.get(`${entities}/urn:p:set`)).status).toBe(404)
    expect((await here.get(`${entities}?type=Pump`)).json()).toEqual([])
  })

  test('csf selects the sources to query, by GET and by POST', async () => {
    await hold(there, 'urn:p:csf', { flow: at(1) })
    await register({ hall: 7 })
    const found = async (csf: string) => [
      ((await here.get(`${entities}?type=Pump&csf=${encodeURIComponent(csf)}`)).json() as object[]).length,
      (
        (
          await here.send('POST', '/ngsi-ld/v1/entityOperations/query', {
            type: 'Query',
            entities: [{ type: 'Pump' }],
            csf,
          })
        ).json() as object[]
      ).length,
    ]
    expect(await found('hall==7')).toEqual([1, 1])
    expect(await found('hall==8')).toEqual([0, 0])
    expect((await here.get(`${entities}?type=Pump&csf=(`)).status).toBe(400)
    expect((await here.get(`${entities}?type=Pump&csf=(&local=true`)).status).toBe(400)
  })

  test('the statistics of registrations are shown, and irrelevant sources are not queried', async () => {
    await hold(there, 'urn:p:8', { flow: at(1) })
    await register({ id: 'urn:r:counted' })
    await read(`${entities}/urn:p:8`)
    const shown = (await here.get(`${registrations}/urn:r:counted`)).json() as object
    expect(shown).toMatchObject({ status: 'ok', timesSent: 1 })
  })

  describe('a source that cannot be reached', () => {
    let brittle: HttpGateway
    beforeEach(async () => {
      brittle = await startHttpGateway({ alias: 'brittle' })
      await hold(brittle, 'urn:p:9', { flow: at(1) })
    })

    test('causes a warning, and the local data is returned', async () => {
      await register({ endpoint: brittle.url })
      await brittle.close()
      const reply = await here.get(`${entities}?type=Pump`)
      expect([reply.status, reply.json()]).toEqual([200, []])
      expect(reply.headers['ngsild-warning']).toMatch(/^199 127\.0\.0\.1:\d+ "/)
      expect(reply.headers['age']).toBeUndefined()
    })

    test('causes warnings whose total size is bounded', async () => {
      for (let i = 0; i < 150; i++) await register({ endpoint: 'http://127.0.0.1:9' })
      const reply = await here.get(`${entities}?type=Pump`)
      expect(reply.status).toBe(200)
      const warnings = String(reply.headers['ngsild-warning']).split(/, (?=\d{3} )/)
      const [, others] = /^199 - "and (\d+) more"$/.exec(warnings.pop()!) ?? []
      expect(warnings.length + Number(others)).toBe(150)
      expect(warnings.join('').length).toBeLessThanOrEqual(limits.warningsBytesMax.value)
    })

    test('is replaced by its last known copy, marked with its age, if caching is allowed', async () => {
      await register({ endpoint: brittle.url, management: { cacheDuration: 'PT0.001S' } })
      expect((await read(`${entities}/urn:p:9`))['flow']!.value).toBe(1)
      await brittle.close()
      const reply = await here.get(`${entities}/urn:p:9`)
      expect([reply.status, (reply.json() as { flow: { value: number } }).flow.value]).toEqual([200, 1])
      expect(reply.headers['ngsild-warning']).toMatch(/^110 /)
      expect(reply.headers['age']).toMatch(/^\d+$/)
      expect((await here.get(`${entities}/urn:p:10`)).headers['ngsild-warning']).toMatch(/^199 /)
    })

    test('is not queried during its cooldown', async () => {
      await register({ id: 'urn:r:cool', endpoint: brittle.url, management: { cooldown: 60_000 } })
      await brittle.close()
      await here.get(`${entities}?type=Pump`)
      const reply = await here.get(`${entities}?type=Pump`)
      expect(reply.headers['ngsild-warning']).toMatch(/^199 /)
      const shown = (await here.get(`${registrations}/urn:r:cool`)).json() as object
      expect(shown).toMatchObject({ status: 'failed', timesSent: 1, timesFailed: 1 })
    })
  })
})
