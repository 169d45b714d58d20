/**
 * The query language, type selection and geo-queries in detail, by GET and by POST [NGSI-LD 4.9, 4.10, 4.17].
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const encoded = encodeURIComponent
const typed = (type: string, value: string) => property({ '@type': type, '@value': value })
const to = (object: unknown): object => ({ type: 'Relationship', object })
const shape = (type: string, coordinates: unknown): object => ({
  type: 'GeoProperty',
  value: { type, coordinates },
})
const ring = (from: number, end: number): number[][] => [
  [from, from],
  [end, from],
  [end, end],
  [from, end],
  [from, from],
]
const thing = (n: number, attributes: object): object => ({
  id: `urn:q:${n}`,
  type: 'Thing',
  ...attributes,
})
const place = (n: number, location?: object): object => ({
  id: `urn:g:${n}`,
  type: 'Place',
  name: property('x'),
  ...(location === undefined ? {} : { location }),
})

beforeAll(async () => {
  const day = {
    day: typed('Date', '2024-05-01'),
    at: typed('DateTime', '2024-05-01T10:00:00Z'),
    hour: typed('Time', '10:00:00Z'),
  }
  const inner = property(2, { below: property(3, { observedAt: '2024-01-01T00:00:00Z' }) })
  const deep = property(1, {
    inner,
    link: to('urn:q:1'),
    unitCode: 'CEL',
    observedAt: '2024-02-01T00:00:00Z',
  })
  const entities = [
    thing(1, { n: property(5), s: property('abc'), b: property(true), ...day }),
    thing(2, { n: property('5'), s: property('Abc,def'), b: property(false), low: property(-3.5) }),
    thing(3, {
      n: property([1, 9]),
      rel: to('urn:q:1'),
      o: property({ a: { b: 'deep', c: 7 }, list: [1, 2] }),
    }),
    thing(4, {
      n: [property(5, { datasetId: 'urn:d:1' }), property(50)],
      rel: to(['urn:q:1', 'urn:q:2']),
      label: { type: 'LanguageProperty', languageMap: { en: 'Big', fr: 'Grand' } },
    }),
    thing(5, {
      deep,
      mode: { type: 'VocabProperty', vocab: 'open' },
      list: { type: 'ListProperty', valueList: [1, 'two'] },
      all: { type: 'ListRelationship', objectList: [{ object: 'urn:q:1' }, { object: 'urn:q:3' }] },
    }),
    ...[['A'], ['A', 'B'], ['B', 'C'], ['C']].map((type, n) => ({ id: `urn:t:${n + 1}`, type })),
    place(1, shape('Point', [0, 0])),
    place(2, shape('Point', [5, 5])),
    place(
      3,
      shape('LineString', [
        [0, 0],
        [10, 10],
      ]),
    ),
    place(4, shape('Polygon', [ring(0, 10), ring(4, 6)])),
    place(
      5,
      shape('MultiPoint', [
        [1, 1],
        [2, 2],
      ]),
    ),
    place(6),
    place(7, shape('MultiPolygon', [[ring(20, 30)]])),
    place(
      8,
      shape('MultiLineString', [
        [
          [20, 20],
          [21, 21],
        ],
        [
          [40, 40],
          [41, 41],
        ],
      ]),
    ),
  ]
  const made = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
  expect(made.status).toBe(201)
})

const numbers = (list: unknown): number[] =>
  (list as { id: string }[]).map(({ id }) => Number(id.split(':')[2])).toSorted((a, b) => a - b)

describe('q', () => {
  it.each([
    ['n==5', [1, 4]],
    ['n!=5', [2, 3, 4]],
    ['n>=5', [1, 3, 4]],
    ['n<5', [3]],
    ['n=="5"', [2]],
    ['n~="5"', [2]],
    ['n!~="5"', []],
    ['n!~="9"', [2]],
    ['n==1..5', [1, 3, 4]],
    ['n!=1..9', [2, 4]],
    ['n==9,50', [3, 4]],
    ['s=="Abc,def"', [2]],
    ['s=="a".."b"', [1]],
    ['s~=^[a-c]+$', [1]],
    ['b==true', [1]],
    ['b!=true', [2]],
    ['low<0', [2]],
    ['day==2024-05-01', [1]],
    ['day>2024-05-01', []],
    ['at<2024-05-01T10:00:00.001Z', [1]],
    ['at==2024-05-01T00:00:00Z..2024-05-02T00:00:00Z', [1]],
    ['hour>09:59:59Z', [1]],
    ['rel==urn:q:1', [3, 4]],
    ['rel!="urn:q:2"', [3]],
    ['rel>"a"', []],
    ['n==5;s=="abc"|low<0', [1, 2]],
    ['n==5;(s=="abc"|low<0)', [1]],
    ['deep.inner==2', [5]],
    ['deep.inner.below.observedAt==2024-01-01T00:00:00Z', [5]],
    ['deep.observedAt>2024-01-31T00:00:00Z', [5]],
    ['deep.link==urn:q:1', [5]],
    ['deep.other', []],
    ['o[a.b]=="deep"', [3]],
    ['o[list]==2', [3]],
    ['o[a.z]', []],
    ['label[fr]=="Grand"', [4]],
    ['label[es]', []],
    ['label[*]~="an"', [4]],
    ['mode=="open"', []],
    ['mode=="https://uri.etsi.org/ngsi-ld/default-context/open"', [5]],
    ['mode!="open"', [5]],
    ['list=="two"', [5]],
    ['all==urn:q:3', [5]],
  ])('%s shall find %j', async (q, expected) => {
    const got = await gateway.get(`${path}?type=Thing&q=${encoded(q)}`)
    expect([got.status, numbers(got.json())]).toEqual([200, expected])
    const body = { type: 'Query', entities: [{ type: 'Thing' }], q }
    const posted = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/query', body)
    expect([posted.status, numbers(posted.json())]).toEqual([200, expected])
  })

  it.each<[string, number[]]>([
    ['mode=="open"', [5]],
    ['mode==open', [5]],
    ['mode=="shut","open"', [5]],
    ['mode=="shut"', []],
    ['mode!="open"', []],
    ['mode=="https://uri.etsi.org/ngsi-ld/default-context/open"', [5]],
    ['mode=="open";n', []],
  ])('%s with expandValues=mode shall find %j', async (q, expected) => {
    const got = await gateway.get(`${path}?type=Thing&count=true&expandValues=mode&q=${encoded(q)}`)
    expect([got.status, numbers(got.json())]).toEqual([200, expected])
    expect(got.headers['ngsild-results-count']).toBe(String(expected.length))
  })

  it.each([
    'n=5',
    'n==',
    ';n',
    'n|',
    '(n',
    'n)',
    'n>1..5',
    'n>1,2',
    'n>true',
    's=="abc',
    'n===5',
    'n==1,',
    'n==..5',
  ])('%s shall be 400', async (q) => {
    const answer = await gateway.get(`${path}?type=Thing&q=${encoded(q)}`)
    expect(answer.status).toBe(400)
    expect(answer.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData')
  })
})

describe('a selection of types', () => {
  it.each([
    ['A,B', [1, 2, 3]],
    ['A|C', [1, 2, 3, 4]],
    ['(A;B)', [2]],
    ['(A;B)|C', [2, 3, 4]],
    ['A;B|C', [2, 3, 4]],
    ['A;(B|C)', [2]],
    ['(A;B),(B;C)', [2, 3]],
    ['https://uri.etsi.org/ngsi-ld/default-context/A', [1, 2]],
  ])('%s shall find %j', async (type, expected) => {
    expect(numbers((await gateway.get(`${path}?type=${encoded(type)}`)).json())).toEqual(expected)
  })
})

describe('a geo-query', () => {
  const box = [ring(-1, 11)]
  it.each([
    ['near;maxDistance==1000', 'Point', [0, 0], [1, 3, 4]],
    ['near;minDistance==1000', 'Point', [0, 0], [2, 5, 7, 8]],
    ['within', 'Polygon', box, [1, 2, 3, 4, 5]],
    ['within', 'Polygon', [...box, ring(4, 6)], [1, 4, 5]],
    ['contains', 'Point', [1, 1], [3, 4, 5]],
    ['contains', 'Point', [5, 5], [2, 3]],
    [
      'intersects',
      'LineString',
      [
        [-1, 1],
        [1, -1],
      ],
      [1, 3, 4],
    ],
    [
      'intersects',
      'MultiPoint',
      [
        [0, 0],
        [40, 40],
      ],
      [1, 3, 4, 8],
    ],
    ['intersects', 'MultiPolygon', [[ring(-1, 1)], [ring(29, 31)]], [1, 3, 4, 5, 7]],
    ['disjoint', 'Polygon', box, [7, 8]],
    [
      'equals',
      'LineString',
      [
        [10, 10],
        [0, 0],
      ],
      [3],
    ],
    [
      'equals',
      'MultiLineString',
      [
        [
          [20, 20],
          [21, 21],
        ],
        [
          [40, 40],
          [41, 41],
        ],
      ],
      [8],
    ],
    ['overlaps', 'Polygon', [ring(25, 35)], [7]],
  ])(
    '%s %s %j shall find %j, and nothing without a geometry',
    async (georel, geometry, coordinates, expected) => {
      const query = `georel=${encoded(georel)}&geometry=${geometry}&coordinates=${encoded(JSON.stringify(coordinates))}`
      const answer = await gateway.get(`${path}?type=Place&${query}`)
      expect([answer.status, numbers(answer.json())]).toEqual([200, expected])
      expect((await gateway.get(`${path}?type=Place&${query}&geoproperty=other`)).json()).toEqual([])
    },
  )

  it.each([
    'georel=near&geometry=Point&coordinates=[0,0]',
    'georel=touches&geometry=Point&coordinates=[0,0]',
    'georel=within&geometry=GeometryCollection&coordinates=[0,0]',
    'georel=within&geometry=Point&coordinates=0,0',
    'georel=within&geometry=LineString&coordinates=[[0,0]]',
    'georel=within&geometry=Point',
  ])('%s shall be 400', async (query) => {
    expect((await gateway.get(`${path}?type=Place&${query}`)).status).toBe(400)
  })
})
