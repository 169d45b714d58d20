/** Queries by POST, scopes, order and GeoJSON [NGSI-LD 5.2.23, 4.19, 4.23, 4.5.16, 6.3.15, 6.23]. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const queryPath = '/ngsi-ld/v1/entityOperations/query'
const encoded = encodeURIComponent
const lamp = (n: number): string => `urn:ngsi-ld:Lamp:${n}`
const point = (x: number, y: number): object => ({
  type: 'GeoProperty',
  value: { type: 'Point', coordinates: [x, y] },
})

beforeAll(async () => {
  await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [
    { id: lamp(1), type: 'Lamp', scope: '/a/b', power: property(30), location: point(3, 0) },
    { id: lamp(2), type: 'Lamp', scope: ['/a', '/c/d/e'], power: property(10), location: point(1, 0) },
    { id: lamp(3), type: ['Lamp', 'Light'], scope: '/ab', power: property('x'), place: point(9, 9) },
    { id: lamp(4), type: 'Pole', power: property(20, { deep: property(1) }), location: point(2, 0) },
    {
      id: lamp(5),
      type: 'Pole',
      mode: { type: 'VocabProperty', vocab: 'https://modes.example/open' },
      state: property('https://modes.example/open'),
      label: { type: 'LanguageProperty', languageMap: { en: 'post', de: ['Mast', 'Pfahl'] } },
      facts: { type: 'JsonProperty', json: { a: { b: [1, 2] } } },
    },
  ])
})

const idsOf = (list: unknown): string[] => (list as { id: string }[]).map(({ id }) => id)
const ids = async (query: string): Promise<string[]> => {
  const answer = await gateway.get(`${path}?${query}`)
  expect([query, answer.status, answer.text]).toEqual([query, 200, answer.text])
  return idsOf(answer.json())
}
const post = (body: object, parameters = ''): ReturnType<typeof gateway.send> =>
  gateway.send('POST', `${queryPath}${parameters}`, { type: 'Query', ...body })

describe('a Query in a body', () => {
  it.each([
    [{ entities: [{ type: 'Light' }] }, [3]],
    [{ entities: [{ type: 'Lamp', id: [lamp(1), lamp(4)] }] }, [1]],
    [{ entities: [{ type: 'Light' }, { type: 'Pole', idPattern: '4$' }] }, [3, 4]],
    [{ entities: [{ type: 'Light' }, { type: 'Pole' }], q: 'power==20' }, [4]],
    [{ q: 'power>5;power<25', entities: [{ type: '*' }] }, [2, 4]],
    [{ attrs: ['place', 'mode'] }, [3, 5]],
    [{ q: 'power', scopeQ: '/a/#' }, [1, 2]],
    [{ geoQ: { georel: 'near;maxDistance==1000', geometry: 'Point', coordinates: [1, 0] } }, [2]],
    [{ geoQ: { georel: 'equals', geometry: 'Point', coordinates: '[9,9]', geoproperty: 'place' } }, [3]],
    [{ attrs: ['power'], orderBy: 'power;desc' }, [3, 1, 4, 2]],
  ])('%j shall find %j', async (body, expected) => {
    const answer = await post(body)
    expect([answer.status, answer.text]).toEqual([200, answer.text])
    expect(idsOf(answer.json())).toEqual(expected.map(lamp))
  })

  it('shall be rendered and paged like a query by GET', async () => {
    const answer = await post(
      { entities: [{ type: 'Lamp' }], pick: ['power'] },
      '?limit=2&count=true&format=simplified',
    )
    expect(answer.json()).toEqual([{ power: 30 }, { power: 10 }])
    expect(answer.headers['ngsild-results-count']).toBe('3')
    const next = /<([^>]*)>;rel="next"/.exec(answer.headers['link'] ?? '')?.[1] ?? ''
    const rest = await gateway.send('POST', next, { type: 'Query', entities: [{ type: 'Lamp' }] })
    expect(idsOf(rest.json())).toEqual([lamp(3)])
  })

  it.each([
    [{ type: 'Wish' }, /^type/],
    [{}, /type, id, attrs, q/],
    [{ csf: 'a==', q: 'a' }, /^csf/],
    [{ entities: [] }, /^entities/],
    [{ entities: [{ id: lamp(1) }] }, /^entities\[0\]\.type/],
    [{ q: 'a', geoQ: { georel: 'within' } }, /^geometry/],
    [{ q: 'a', geoQ: {} }, /^geoQ.georel/],
    [{ attrs: [1] }, /^attrs/],
  ])('%j shall be 400', async (body, detail) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect((answer.json() as { detail: string }).detail).toMatch(detail)
  })
})

describe('scopeQ', () => {
  it.each([
    ['/a/b', [1]],
    ['/a', [2]],
    ['/a/#', [1, 2]],
    ['/+/b', [1]],
    ['/c/+/e', [2]],
    ['/c/+', []],
    ['/#', [1, 2, 3]],
    ['/a;/c/#', [2]],
    ['/a/b|/ab', [1, 3]],
    ['/ab,(/a;/c/d/e)', [2, 3]],
    ['/none/#', []],
  ])('%s shall find %j', async (scopeQ, expected) => {
    expect(await ids(`type=*&scopeQ=${encoded(scopeQ)}`)).toEqual(expected.map(lamp))
  })

  it.each(['a', '/a/', '/#/a', '(/a', '/a;;/b', ''])('%s shall be 400', async (scopeQ) => {
    expect((await gateway.get(`${path}?type=Lamp&scopeQ=${encoded(scopeQ)}`)).status).toBe(400)
  })
})

describe('q into values', () => {
  it.each([
    ['label[en]=="post"', [5]],
    ['label[*]=="Pfahl"', [5]],
    ['label[fr]=="post"', []],
    ['label=="post"', [5]],
    ['label=="Pfahl"', [5]],
    ['label~="^Ma"', [5]],
    ['label!="post"', []],
    ['label!="pole"', [5]],
    ['facts[a.b]==2', [5]],
    ['facts[a.c]', []],
    ['power.deep==1', [4]],
    ['mode=="https://modes.example/open"', [5]],
  ])('%s shall find %j', async (q, expected) => {
    expect(await ids(`q=${encoded(q)}`)).toEqual(expected.map(lamp))
  })

  it('shall compare a vocabulary by the IRIs of terms listed in expandValues, else by IRIs alone', async () => {
    const typed = {
      type: 'Query',
      q: 'mode=="open"',
      '@context': [
        { open: 'https://modes.example/open' },
        'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
      ],
    }
    expect((await gateway.send('POST', queryPath, typed)).json()).toEqual([])
    const body = { ...typed, expandValues: ['mode'] }
    const answer = await gateway.send('POST', queryPath, body)
    expect([answer.status, idsOf(answer.json())]).toEqual([200, [lamp(5)]])
    expect(await ids('q=mode=="open"')).toEqual([])
    const plain = { ...body, q: 'state=="open"' }
    expect((await gateway.send('POST', queryPath, plain)).json()).toEqual([])
    const expanded = await gateway.send('POST', queryPath, { ...plain, expandValues: ['state'] })
    expect(idsOf(expanded.json())).toEqual([lamp(5)])
  })
})

describe('orderBy', () => {
  const ordered = (orderBy: string, more = ''): Promise<string[]> =>
    ids(`type=*&orderBy=${encoded(orderBy)}&limit=3${more}`)

  it.each([
    ['power', '', [2, 4, 1]],
    ['power;desc', '', [3, 1, 4]],
    ['id;desc', '', [5, 4, 3]],
    ['power.deep', '', [4, 1, 2]],
    ['createdAt,id;desc', '', [5, 4, 3]],
    ['location;dist-asc', '&orderFrom=[0,0]', [2, 4, 1]],
    ['location', '&orderFrom=[0,0]', [2, 4, 1]],
    ['location;dist-desc', '&orderFrom=[[0,0],[0,1]]&orderGeometry=LineString', [1, 4, 2]],
    ['type,power;desc', '&collation=de', [1, 2, 3]],
  ])('%s%s shall begin with %j', async (orderBy, more, expected) => {
    expect(await ordered(orderBy, more)).toEqual(expected.map(lamp))
  })

  it('shall order texts by the rules of Unicode, or of the requested collation', async () => {
    const words = ['Zebra', 'apple', 'Äpfel', 'Apple', 'zebra']
    const entities = words.map((word, n) => ({
      id: `urn:ngsi-ld:Word:${n}`,
      type: 'Word',
      word: property(word),
    }))
    await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    const inOrder = async (more: string): Promise<unknown[]> => {
      const answer = await gateway.get(`${path}?type=Word&orderBy=word&format=simplified${more}`)
      return (answer.json() as { word: string }[]).map(({ word }) => word)
    }
    expect(await inOrder('')).toEqual(['Äpfel', 'apple', 'Apple', 'zebra', 'Zebra'])
    expect(await inOrder('&collation=und-u-kf-upper')).toEqual(['Äpfel', 'Apple', 'apple', 'Zebra', 'zebra'])
    // If letter case is ignored, equal texts remain in the order of creation.
    expect(await inOrder('&collation=und-u-ks-level2')).toEqual(['Äpfel', 'apple', 'Apple', 'Zebra', 'zebra'])
    await gateway.ask('DELETE', `${path}?type=Word`)
  })

  it('shall order values of different kinds as in 4.23.2, with missing values last in both directions', async () => {
    const typed = (type: string, text: string) => ({ '@type': type, '@value': text })
    const inOrder = [
      ...[-1, 10, 'a', 'b', { a: 1 }, { a: 1, b: 0 }, { a: 2 }, { b: 0 }, [], [1, 'x'], [1, 'y'], [2], ['a']],
      ...[false, true, typed('Time', '08:00:00Z'), typed('Time', '08:00:00.5Z'), typed('Date', '2024-01-01')],
      ...['2023-01-01T00:00:00Z', '2023-01-01T00:00:00.25Z', '2023-01-01T00:00:01Z'].map((text) =>
        typed('DateTime', text),
      ),
    ]
    const shuffled = inOrder
      .map((value, n) => ({ value, n }))
      .sort((a, b) => ((a.n * 7) % 19) - ((b.n * 7) % 19))
    await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [
      { id: 'urn:ngsi-ld:Thing:none', type: 'Thing' },
      ...shuffled.map(({ value, n }) => ({
        id: `urn:ngsi-ld:Thing:${n}`,
        type: 'Thing',
        is: property(value),
      })),
    ])
    const read = async (orderBy: string): Promise<unknown[]> => {
      const seen: unknown[] = []
      let next: string | undefined = `${path}?type=Thing&orderBy=${orderBy}&limit=3&format=simplified`
      while (next !== undefined) {
        const answer = await gateway.get(next)
        expect(answer.status).toBe(200)
        seen.push(...(answer.json() as { is?: unknown }[]).map(({ is }) => is))
        next = /<([^>]*)>;rel="next"/.exec(answer.headers['link'] ?? '')?.[1]
      }
      return seen
    }
    expect(await read('is')).toEqual([...inOrder, undefined])
    expect(await read('is;desc')).toEqual([...inOrder.toReversed(), undefined])
    await gateway.ask('DELETE', `${path}?type=Thing`)
  })

  it('shall order members that contain times by time, including fractions of a second', async () => {
    const times = ['00:00:00.5Z', '00:00:00Z', '00:00:01Z', '00:00:00.25Z'].map(
      (time) => `2026-01-01T${time}`,
    )
    const made = times.map((observedAt, n) => ({
      id: `urn:ngsi-ld:Watch:${n}`,
      type: 'Watch',
      is: { ...property(n), observedAt },
    }))
    await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', made)
    const answer = await gateway.get(`${path}?type=Watch&orderBy=is.observedAt&format=simplified`)
    expect((answer.json() as { is: number }[]).map(({ is }) => is)).toEqual([1, 3, 0, 2])
    await gateway.ask('DELETE', `${path}?type=Watch`)
  })

  it('shall accept the member ordering of a Query, with the names of OrderingParams', async () => {
    const entities = [{ type: 'Lamp' }, { type: 'Pole' }]
    const near = { orderBy: ['location;dist-desc'], coordinates: [0, 0], geometry: 'Point' }
    const answer = await post({ entities, ordering: near }, '?limit=3')
    expect([answer.status, idsOf(answer.json())]).toEqual([200, [1, 4, 2].map(lamp)])
    for (const ordering of [
      {},
      { orderBy: [] },
      { orderBy: ['power'], from: [0, 0] },
      { orderBy: ['location;dist-asc'] },
      'power',
    ]) {
      expect((await post({ entities, ordering })).status).toBe(400)
    }
  })

  it('shall reach every entity once', async () => {
    const seen: string[] = []
    let next: string | undefined = `${path}?type=*&orderBy=power;desc&limit=2`
    while (next !== undefined) {
      const answer = await gateway.get(next)
      seen.push(...idsOf(answer.json()))
      next = /<([^>]*)>;rel="next"/.exec(answer.headers['link'] ?? '')?.[1]
    }
    expect(seen).toEqual([3, 1, 4, 2, 5].map(lamp))
  })

  it.each([
    'orderBy=power;up',
    'orderBy=power==1',
    'orderBy=',
    'orderBy=location;dist-asc',
    'orderFrom=[0,0]',
    'orderBy=power&collation=not_a_tag',
    'orderBy=location&orderFrom=here',
    'pageKey=here',
    'orderBy=power&pageKey=here',
    ...[
      ['nothing', []],
      ['DateTime', [1]],
      [1, 2, 3],
    ].map((key) => `orderBy=power&pageKey=${place(key)}`),
  ])('%s shall be 400', async (query) => {
    expect((await gateway.get(`${path}?type=Lamp&${query}`)).status).toBe(400)
  })
})

/** A page position after an entity with this key. */
function place(key: unknown): string {
  return Buffer.from(JSON.stringify([key, 1])).toString('base64url')
}

describe('GeoJSON', () => {
  const Accept = 'application/geo+json'

  it('shall be a Feature that includes the context', async () => {
    const answer = await gateway.get(`${path}/${lamp(1)}?format=simplified`, { Accept })
    expect(answer.headers['content-type']).toBe(Accept)
    expect(answer.json()).toMatchObject({
      id: lamp(1),
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [3, 0] },
      properties: { type: 'Lamp', power: 30, location: { type: 'Point' } },
    })
    expect(answer.json()).toHaveProperty('@context')
    expect((answer.json() as { properties: object }).properties).not.toHaveProperty('id')
  })

  it('shall have its context in a Link header for clients that prefer JSON', async () => {
    const answer = await gateway.get(`${path}?type=Light`, { Accept, Prefer: 'body=json' })
    expect(answer.headers['link']).toMatch(/json-ld#context/)
    expect(answer.json()).toEqual({
      type: 'FeatureCollection',
      features: [
        expect.objectContaining({
          id: lamp(3),
          geometry: null,
          properties: expect.objectContaining({ scope: '/ab' }),
        }),
      ],
    })
  })

  it('shall show the requested GeoProperty, and an empty collection when nothing is found', async () => {
    const answer = await gateway.get(`${path}?type=Light&geometryProperty=place`, { Accept })
    expect(answer.json()).toHaveProperty(['features', 0, 'geometry', 'coordinates'], [9, 9])
    const none = await gateway.get(`${path}?type=None`, { Accept })
    expect(none.json()).toMatchObject({ type: 'FeatureCollection', features: [] })
  })

  it('shall have no geometry if instances have datasetIds and the request names none', async () => {
    const id = 'urn:ngsi-ld:Spot:1'
    const at = (n: number): object => ({ ...point(n, n), datasetId: `urn:d:${n}` })
    await gateway.send('POST', path, { id, type: 'Spot', location: [at(1), at(2)] })
    const geometry = async (query: string): Promise<unknown> =>
      ((await gateway.get(`${path}/${id}${query}`, { Accept })).json() as { geometry: unknown }).geometry
    expect(await geometry('')).toBe(null)
    expect(await geometry('?datasetId=urn:d:2')).toEqual({ type: 'Point', coordinates: [2, 2] })
    await gateway.ask('DELETE', `${path}/${id}`)
  })

  it('shall be weighed against the other media types', async () => {
    const typeFor = async (accept: string): Promise<string | undefined> =>
      (await gateway.get(`${path}/${lamp(1)}`, { Accept: accept })).headers['content-type']
    expect(await typeFor('application/geo+json;q=0.5, application/ld+json;q=0.6')).toBe('application/ld+json')
    expect(await typeFor('application/geo+json;q=0.9, application/*;q=0.1')).toBe(Accept)
    expect(await typeFor('application/*')).toBe('application/json')
    expect((await gateway.get('/ngsi-ld/v1/types', { Accept })).status).toBe(406)
  })

  it('shall be the only format that accepts geometryProperty', async () => {
    expect((await gateway.get(`${path}/${lamp(1)}?geometryProperty=location`)).status).toBe(400)
  })
})
