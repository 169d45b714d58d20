/**
 * The index of a whole gateway: queries from the specification and the original's documentation, and the
 * headers of its responses.
 */
import { describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import type { Reply } from '#test/kit/http-gateway.ts'
import { indexOfFile, latest } from '#test/kit/index-of-file.ts'
import { iri, property, quality, roomPoint, sensor, stream } from './site.ts'

const gateway = indexOfFile([
  ...[1, 2, 3].flatMap((i) => [stream(i), sensor(i, [8 + i / 100, 50]), quality(i, i / 4)]),
  property('temperature'),
  roomPoint(3),
])
const { find: ask } = gateway
const idsOf = async (parameters: Record<string, string>): Promise<string[]> => {
  const answer = await ask(parameters)
  expect([answer.status, answer.headers['selvedge-answered-by']]).toEqual([200, 'index'])
  return (answer.json() as { id: string }[]).map(({ id }) => id)
}
const near = (metres: number) => ({
  georel: `near;maxDistance==${metres}`,
  geometry: 'Point',
  coordinates: '[8.01,50]',
})

describe('a query to the index', () => {
  it('finds sensors and streams by place', async () => {
    expect(await idsOf({ type: 'Sensor', ...near(10) })).toEqual(['urn:ngsi-ld:Sensor:1'])
    expect(await idsOf({ type: iri.IotStream, ...near(800) })).toEqual([
      'urn:ngsi-ld:IotStream:1',
      'urn:ngsi-ld:IotStream:2',
    ])
  })

  it('finds both by relative place', async () => {
    const path = 'geo:location.iot-lite:relativeLocation=="Room 3"'
    expect(await idsOf({ type: 'sosa:Sensor', q: path })).toEqual(['urn:ngsi-ld:Sensor:3'])
    expect(await idsOf({ type: 'IotStream', q: `iot-stream:generatedBy.${path}` })).toEqual([
      'urn:ngsi-ld:IotStream:3',
    ])
  })

  it('compares rated values of quality, and combines all conditions', async () => {
    expect(await idsOf({ type: 'IotStream', q: 'qoi:hasQuality.qoi:completeness>0.4' })).toEqual([
      'urn:ngsi-ld:IotStream:2',
      'urn:ngsi-ld:IotStream:3',
    ])
    const q =
      'qoi:hasQuality.qoi:completeness>0.4;iot-stream:generatedBy.sosa:observes==urn:ngsi-ld:ObservableProperty:temperature'
    expect(await idsOf({ type: 'IotStream', q, ...near(800) })).toEqual(['urn:ngsi-ld:IotStream:2'])
  })

  it('works by POST, too', async () => {
    const answer = await gateway.send(
      'POST',
      '/indexing/ngsi-ld/v1/entityOperations/query?limit=1&count=true',
      {
        type: 'Query',
        entities: [{ type: 'IotStream' }],
        q: 'qoi:hasQuality.qoi:completeness>0.4',
        geoQ: { ...near(100_000), coordinates: [8, 50] },
        pick: ['id'],
      },
      latest,
    )
    expect(answer.json()).toEqual([{ id: 'urn:ngsi-ld:IotStream:2' }])
    expect(answer.headers['ngsild-results-count']).toBe('2')
  })

  it.each([
    [{ what: 1 }, 'what: '],
    [{ constructor: 1 }, 'constructor: '],
    [{ entities: [{ type: 'Sensor', limit: '1' }] }, 'entities.limit: '],
    [{ entities: [{ type: 'Sensor' }], geoQ: { q: 'a' } }, 'geoQ.q: '],
    [{ entities: [{ type: 'Sensor' }], temporalQ: [] }, 'temporalQ: '],
  ])('rejects a body with unsupported members: %j', async (body, field) => {
    const refused = await gateway.send('POST', '/indexing/ngsi-ld/v1/entityOperations/query', body)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(field)])
  })

  it('is answered by the index for an unknown name together with a place', async () => {
    expect(await idsOf({ type: 'Sensor', q: 'qoi:nobodysName==1', ...near(800) })).toEqual([])
    expect(await idsOf({ type: 'Sensor', q: '!qoi:nobodysName', ...near(10) })).toEqual([
      'urn:ngsi-ld:Sensor:1',
    ])
  })

  it('finds words of related entities', async () => {
    expect(await idsOf({ type: 'IotStream', search: 'Temper* "room 3"' })).toEqual([
      'urn:ngsi-ld:IotStream:3',
    ])
  })

  it('treats any separator between words as a space', async () => {
    expect(await idsOf({ type: 'ObservableProperty', search: 'temper\0ature' })).toEqual([])
    expect(await idsOf({ type: 'ObservableProperty', search: '\0temperature\u0007' })).toHaveLength(1)
  })

  it('answers with full IRIs, in pages, with a count', async () => {
    const answer = await ask({
      type: 'Sensor',
      limit: '1',
      offset: '1',
      count: 'true',
      attrs: 'sosa:observes',
    })
    expect(answer.headers['ngsild-results-count']).toBe('3')
    expect(answer.headers['link']).toBeUndefined()
    expect(answer.json()).toEqual([
      {
        id: 'urn:ngsi-ld:Sensor:2',
        type: iri.Sensor,
        [iri.observes]: { type: 'Relationship', object: 'urn:ngsi-ld:ObservableProperty:temperature' },
      },
    ])
    expect((await ask({ type: 'Sensor', limit: '1001' })).status).toBe(403)
  })

  it('includes preceding writes, and omits deleted entities', async () => {
    await gateway.send('POST', '/ngsi-ld/v1/entities', sensor(9, [8.01, 50]))
    expect(await idsOf({ type: 'Sensor', ...near(10) })).toContain('urn:ngsi-ld:Sensor:9')
    await gateway.ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:Sensor:9')
    expect(await idsOf({ type: 'Sensor', ...near(10) })).not.toContain('urn:ngsi-ld:Sensor:9')
  })

  it('waits for the log number of the request, and warns if the index does not reach it in time', async () => {
    const askAt = (number: number | string) =>
      ask({ type: 'Sensor', ...near(10) }, { 'Selvedge-Index-Position': String(number) })
    const numberOf = ({ headers }: Reply): number => Number(headers['selvedge-index-position'])
    const before = numberOf(await askAt('latest'))
    await gateway.send('POST', '/ngsi-ld/v1/entities', sensor(8, [8.01, 50]))
    const after = await askAt(before + 1)
    expect(numberOf(after)).toBeGreaterThan(before)
    expect(after.text).toContain('urn:ngsi-ld:Sensor:8')
    expect((await askAt(before)).headers['ngsild-warning']).toBeUndefined()
    const later = numberOf(after) + 1000
    setLimit('indexWaitMs', 10)
    const late = await askAt(later).finally(restoreLimits)
    expect([late.status, late.headers['ngsild-warning']]).toEqual([
      200,
      expect.stringContaining(`the index does not include ${later} yet`),
    ])
    expect((await askAt('soon')).status).toBe(400)
    await gateway.ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:Sensor:8')
  })

  it('finds when streams were active', async () => {
    const start = 'http://purl.org/iot/ontology/iot-stream#streamStart'
    const end = 'http://purl.org/iot/ontology/iot-stream#streamEnd'
    const time = (value: string) => ({ type: 'Property', value })
    const old = {
      ...stream(7),
      [start]: time('2020-01-01T00:00:00Z'),
      [end]: time('2020-02-01T00:00:00Z'),
    }
    await gateway.send('POST', '/ngsi-ld/v1/entities', old)
    const active = { type: 'IotStream', timeproperty: 'active' }
    const in2020 = (from: string, to: string) => ({
      ...active,
      timerel: 'between',
      timeAt: `2020-${from}T00:00:00Z`,
      endTimeAt: `2020-${to}T00:00:00Z`,
    })
    expect(await idsOf(in2020('01-15', '01-16'))).toEqual([old.id])
    expect(await idsOf(in2020('02-02', '03-01'))).toEqual([])
    expect(await idsOf({ ...active, timerel: 'before', timeAt: '2020-01-02T00:00:00Z' })).toEqual([old.id])
    expect(await idsOf({ ...active, timerel: 'after', timeAt: '2020-03-01T00:00:00Z' })).not.toContain(old.id)
    await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${old.id}`)
  })

  it.each([
    [{ type: 'Sensor', georel: 'near;maxDistance==1' }, 'geometry'],
    [{ type: 'Sensor', ...near(10), georel: 'near;maxDistance==0' }, 'georel'],
    [{ type: 'Sensor', q: 'a==' }, 'q'],
    [{ type: 'Sensor', q: 'id=="urn:ngsi-ld:Sensor:1"' }, 'q: id is not an attribute; use the parameter id'],
    [{ type: 'Sensor', q: 'sosa:observes;!scope|sosa:observes{id}=="urn:x"' }, 'use the parameter scopeQ'],
    [{ type: 'Sensor', timerel: 'after' }, 'timeAt'],
    [{ type: 'Sensor', timeAt: '2020-01-01T00:00:00Z' }, 'timeAt'],
    [{ type: 'Sensor', timerel: 'after', timeAt: 'yesterday' }, 'timeAt'],
    [{ type: 'Sensor', timerel: 'after', timeAt: '2020-01-01T00:00:00Z', timeproperty: 'x' }, 'timeproperty'],
    [{ type: 'Sensor', search: '" - "' }, 'search'],
    [{ type: 'Sensor', limit: '0' }, 'limit'],
    [{ type: 'Sensor', attrs: 'a', pick: 'b' }, 'attrs'],
    [{ type: 'Sensor', options: 'shortest' }, 'shortest'],
    [{ type: '' }, 'type'],
  ])('names the invalid parameter: %j', async (parameters, field) => {
    const answer = await ask(parameters)
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(field)])
  })

  it('is forwarded to the broker for other tenants', async () => {
    const tenant = { 'NGSILD-Tenant': 'other' }
    await gateway.send('POST', '/ngsi-ld/v1/entities', sensor(77), tenant)
    const answer = await ask({ type: 'Sensor' }, tenant)
    expect(answer.headers['selvedge-answered-by']).toMatch(/^http/)
    expect(answer.json()).toMatchObject([{ id: 'urn:ngsi-ld:Sensor:77' }])
  })

  it('warns that a Link header is ignored', async () => {
    const answer = await ask(
      { type: 'Sensor' },
      { Link: '<http://x>; rel="http://www.w3.org/ns/json-ld#context"' },
    )
    expect(answer.headers['ngsild-warning']).toContain('Link')
  })

  it('does not serve histories', async () => {
    expect((await gateway.get('/indexing/ngsi-ld/v1/temporal/entities')).status).toBe(501)
  })
})

describe('an omitted', () => {
  it('type means any type in a word search', async () => {
    const found = await idsOf({ search: 'temperature' })
    expect(found).toEqual(expect.arrayContaining(['urn:ngsi-ld:ObservableProperty:temperature']))
    expect(found).toEqual(expect.arrayContaining([1, 2, 3].map((i) => `urn:ngsi-ld:Sensor:${i}`)))
    expect(await idsOf({ search: 'temperature', type: 'Sensor' })).toHaveLength(3)
  })

  it('prefix is found if only one vocabulary matches', async () => {
    const streams = await idsOf({ type: 'IotStream', q: 'generatedBy.observes.label=="temperature"' })
    expect(streams).toHaveLength(3)
    expect(await idsOf({ type: 'IotStream', q: 'generatedBy.observes.label=="nothing"' })).toEqual([])
    expect(await idsOf({ type: 'IoTStream' })).toEqual(streams)
    expect(await idsOf({ type: 'Point' })).toEqual(await idsOf({ type: iri.Point }))
    expect((await ask({ type: 'Point' })).headers['selvedge-answered-by']).toBe('index')
    expect((await ask({ type: 'IoTStream', idPattern: '.*2' })).json()).toMatchObject([{ id: streams[1] }])
    // A broker does not know such names, so it receives full names.
    const answer = await ask({ type: 'Sensor', attrs: 'observes', idPattern: '.*2' })
    expect(answer.headers['selvedge-answered-by']).toMatch(/^http/)
    expect(answer.json()).toMatchObject([{ id: 'urn:ngsi-ld:Sensor:2', [iri.observes]: {} }])
  })

  it('prefix of an ambiguous name means what it meant in the original, or is rejected', async () => {
    const id = 'urn:ngsi-ld:IotStream:two'
    const none = { type: 'Relationship', object: 'urn:ngsi-ld:ObservableProperty:none' }
    const made = await gateway.send('POST', '/ngsi-ld/v1/entities', {
      id,
      type: iri.IotStream,
      'http://purl.org/iot/ontology/iot-stream#observes': none,
      'http://www.w3.org/ns/sosa/state': { type: 'Property', value: 1 },
      'https://w3id.org/iot/qoi#state': { type: 'Property', value: 2 },
    })
    expect(made.status).toBe(201)
    expect(await idsOf({ type: 'Sensor', q: 'observes' })).toHaveLength(3)
    expect(await idsOf({ type: 'IotStream', q: 'observes' })).toEqual([])
    expect(await idsOf({ type: 'IotStream', q: 'iot-stream:observes' })).toEqual([id])
    const answer = await ask({ type: 'IotStream', q: 'state==2' })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('sosa:state or qoi:state')])
    expect(await idsOf({ type: 'IotStream', q: 'qoi:state==2' })).toEqual([id])
    expect((await gateway.ask('DELETE', `/ngsi-ld/v1/entities/${id}`)).status).toBe(204)
  })
})

describe('a query that the index cannot answer', () => {
  it.each([
    [{ type: 'Sensor', q: 'geo:location.iot-lite:relativeLocation~="Room.*"' }, ['urn:ngsi-ld:Sensor:3']],
    [{ type: 'Sensor', idPattern: '.*2' }, ['urn:ngsi-ld:Sensor:2']],
    [{ type: 'Building' }, []],
    [{ type: 'Sensor', q: 'qoi:nobodysName==1' }, []],
  ])('is answered by the broker: %j', async (parameters, expected) => {
    const answer = await ask(parameters)
    expect(answer.headers['selvedge-answered-by']).toMatch(/^http:\/\/127/)
    expect((answer.json() as { id: string }[]).map(({ id }) => id)).toEqual(expected)
  })

  it('is rejected for an unknown parameter, with a list of the known ones', async () => {
    const answer = await ask({ type: 'Sensor', nonsense: '1' })
    expect(answer.status).toBe(400)
    for (const name of ['nonsense', 'search', 'timerel', 'timeproperty', 'idPattern', 'orderBy'])
      expect(answer.text).toContain(name)
  })

  it('is rejected if brokers cannot answer it either', async () => {
    const answer = await ask({ type: 'Sensor', idPattern: '.*2', search: 'room' })
    expect([answer.status, answer.text]).toEqual([422, expect.stringContaining('search')])
  })

  it.each([
    { idPattern: '.*2' },
    { q: 'rdfs:label~=a.*' },
    { options: 'sysAttrs' },
    { orderBy: 'id' },
    { join: 'inline' },
  ])('is rejected with a place, because a broker would find fewer streams: %j', async (more) => {
    const parameters = { type: 'IotStream', ...near(800), ...more }
    const answer = await ask(parameters as never)
    expect([answer.status, answer.text]).toEqual([422, expect.stringContaining('georel')])
  })

  it.each([
    ['a path of many names', Array.from({ length: 17 }, (_, i) => `a${i}`).join('.')],
    ['many interpretations in all', Array.from({ length: 8 }, (_, i) => `a.b.c.d.e.f${i}==1`).join(';')],
  ])('rejects %s before expanding its interpretations', async (_, q) => {
    for (const path of ['/entities?type=IotStream&', '/entities/urn:ngsi-ld:IotStream:1?']) {
      const answer = await gateway.get(`/indexing/ngsi-ld/v1${path}q=${q}`)
      expect([answer.status, answer.text]).toEqual([403, expect.stringMatching(/q has a path|paths of q/)])
    }
  })

  it('is not rejected for an unknown name with a place', async () => {
    expect(await idsOf({ type: 'IotStream', ...near(10), q: 'qoi:nobodysName==1' })).toEqual([])
    expect(await idsOf({ type: 'Sensor', ...near(10), q: '!qoi:nobodysName.name' })).toEqual([
      'urn:ngsi-ld:Sensor:1',
    ])
    expect(await idsOf({ type: 'IotStream', ...near(10), q: 'iot-stream:generatedBy.nobodys.name' })).toEqual(
      [],
    )
  })

  it('is rejected with a place for other tenants and media types, too', async () => {
    const query = { type: 'IotStream', ...near(800) }
    for (const headers of [{ 'NGSILD-Tenant': 'other' }, { Accept: 'application/geo+json' }])
      expect((await ask(query, headers as never)).status).toBe(422)
    const building = await ask({ ...query, type: 'Building' })
    expect([building.status, building.json()]).toEqual([200, []])
  })
})

it('watches with subscriptions that can be listed beside those of clients', async () => {
  const path = '/ngsi-ld/v1/subscriptions'
  expect((await gateway.get(path)).json()).toEqual([])
  const answer = await gateway.get(`${path}?options=followers`)
  const found = answer.json() as {
    entities: { type: string }[]
    notification: { endpoint: { uri: string } }
  }[]
  const own = found.filter(({ notification }) =>
    notification.endpoint.uri.includes('/indexing/api/notification/'),
  )
  expect(own.map(({ entities }) => entities[0]!.type)).toContain(iri.IotStream)
  expect([own.length, found.length]).toEqual([6, 6])
  const [{ id }] = found as unknown as [{ id: string }]
  expect((await gateway.get(`${path}/${id}`)).json()).toMatchObject({ id, type: 'Subscription' })
  expect((await gateway.get(`${path}?options=watchers`)).status).toBe(400)
})

it('is rebuilt on request with the same content', async () => {
  const before = await idsOf({ type: 'IotStream', ...near(800) })
  expect((await gateway.ask('POST', '/indexing/api/rebuild')).status).toBe(202)
  expect(await idsOf({ type: 'IotStream', ...near(800) })).toEqual(before)
})

it('rejects requests from pages of other origins', async () => {
  const own = { Origin: `http://127.0.0.1:${gateway.httpPort}` }
  const broker = JSON.stringify({ host: 'http://127.0.0.1:1' })
  for (const Origin of ['http://evil.example', 'null']) {
    const headers = { Origin, 'Content-Type': 'text/plain' }
    expect((await gateway.ask('POST', '/indexing/api/rebuild', { headers })).status).toBe(403)
    expect((await gateway.ask('POST', '/indexing/api/broker', { headers, body: broker })).status).toBe(403)
    expect((await gateway.ask('DELETE', '/indexing/api/broker/none', { headers })).status).toBe(403)
    expect((await gateway.get('/indexing/api/status', headers)).status).toBe(200)
  }
  expect(
    (await gateway.ask('DELETE', `/indexing/api/broker/${'0'.repeat(24)}`, { headers: own })).status,
  ).toBe(404)
})

it.each([
  ['/urn:ngsi-ld:IotStream:1?attrs=zzz', 404],
  ['/urn:ngsi-ld:Sensor:1?type=IotStream', 404],
  ['/urn:ngsi-ld:Sensor:1?limit=5', 400],
  ['/urn:ngsi-ld:Sensor:1?local=x', 400],
  ['?type=Sensor&local=x', 400],
  [`/urn:ngsi-ld:Sensor:1?type=${encodeURIComponent(iri.Sensor)}`, 200],
])('answers %s as the broker does', async (path, status) => {
  const named = path.replace('=IotStream', `=${encodeURIComponent(iri.IotStream)}`)
  const there = await gateway.get(`/ngsi-ld/v1/entities${named}`)
  expect([(await gateway.get(`/indexing/ngsi-ld/v1/entities${path}`)).status, there.status]).toEqual([
    status,
    status,
  ])
})

it('an unacceptable media type is rejected by the broker', async () => {
  expect((await ask({ type: 'Sensor' }, { Accept: 'text/html' })).status).toBe(406)
})

it.each(['indexing', 'ranking', 'search'])('%s has an OpenAPI description at its address', async (name) => {
  const { status, json } = await gateway.get(`/${name}/openapi.json`)
  expect(status).toBe(200)
  const { openapi, paths } = json() as { openapi: string; paths: Record<string, Record<string, object>> }
  expect(openapi).toMatch(/^3/)
  // Each path exists, whatever it answers to an empty request.
  for (const [path, methods] of Object.entries(paths))
    for (const method of Object.keys(methods)) {
      if (path.includes('{')) continue
      if (path.endsWith('/rebuild')) continue
      const answer = await gateway.send(method.toUpperCase(), `/${name}${path}`, undefined)
      expect([path, method, answer.status]).not.toEqual([path, method, expect.toBeOneOf([404, 405, 500])])
    }
  expect((await gateway.send('POST', `/${name}/openapi.json`, {})).status).toBe(405)
})

it('omits entities without any of the picked members', async () => {
  const answer = await ask({ type: 'Sensor', pick: 'zzz' }, {
    ...latest,
    Accept: 'application/ld+json',
  } as never)
  expect([answer.status, answer.json()]).toEqual([200, []])
})

it.each([
  ['application/json;q=0.1, application/ld+json', 'application/ld+json'],
  ['application/ld+json;q=0.5, */*', 'application/json'],
  ['application/ld+json, application/json', 'application/json'],
  ['application/json;q=0, */*', 'application/ld+json'],
  ['*/*, application/json;q=0.2, application/geo+json;q=0.1', 'application/ld+json'],
])('answers in the preferred media type: %s', async (Accept, type) => {
  const answer = await ask({ type: 'Sensor' }, { ...latest, Accept } as never)
  expect([answer.status, answer.headers['content-type']]).toEqual([200, type])
})
