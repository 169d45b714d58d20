/** Ranked lists over brokers with different paging: order, requests to the broker, and warnings. */
import { describe, expect, it } from 'vitest'
import type { BrokerAnswer, BrokerPort, Json } from '#contract'
import { compilePlatformContext } from '#ngsi-ld/context/platform-context.ts'
import { rankedAnswer } from './answer.ts'
import { createBackend } from './backend.ts'
import { parseRankedQuery, splitQuery } from './ranked-query.ts'
import { createRanking } from './ranking.ts'

type Entities = readonly { readonly id: string; readonly [name: string]: Json }[]
const qoi = 'https://w3id.org/iot/qoi#'
const score = 'http://iotcrawler.eu/rankScore'
const property = (value: Json, more = {}): Json => ({ type: 'Property', value, ...more })
const link = (object: Json): Json => ({ type: 'Relationship', object })

interface Habits {
  /** Largest page; larger ones are refused. */
  readonly most?: number
  /** Whether pages are linked. */
  readonly isLinked?: boolean
  readonly answer?: (path: string) => BrokerAnswer | undefined
}

/** A remote broker that supports id, attrs, limit and offset. */
function brokerOf(entities: Entities, { most = 1000, isLinked = true, answer }: Habits = {}) {
  const paths: string[] = []
  const port: BrokerPort = {
    address: 'http://broker.example',
    async exchange({ path }) {
      paths.push(path)
      const special = answer?.(path)
      if (special !== undefined) return special
      const given = new URL(path, 'http://broker.example').searchParams
      const limit = Number(given.get('limit') ?? 20)
      if (limit > most) return { status: 403, headers: {}, text: '{"title":"too many results"}' }
      const ids = given.get('id')?.split(',')
      const names = given.get('attrs')?.split(',')
      const found = entities.filter(
        (one) =>
          (ids?.includes(one.id) ?? one['type'] !== 'Other') && (names?.some((name) => name in one) ?? true),
      )
      const offset = Number(given.get('offset') ?? 0)
      const isMore = isLinked && offset + limit < found.length
      given.set('offset', String(offset + limit))
      const links = [
        '<http://a.example/c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"',
        ...(isMore ? [`</ngsi-ld/v1/entities?${given}>;rel="next";type="application/json"`] : []),
      ]
      return {
        status: 200,
        headers: { 'content-type': 'application/json', link: links.join(', '), 'x-kept': 'yes' },
        text: JSON.stringify(found.slice(offset, offset + limit)),
      }
    },
  }
  return { port, paths }
}

const now = Date.parse('2026-01-01T12:00:00Z')
const clock = { now: () => now, monotonic: () => now }

async function ask(broker: { port: BrokerPort }, query: string) {
  const parsed = parseRankedQuery(splitQuery(query))
  const context = compilePlatformContext('http://a.example/platform.jsonld')
  const ranking = createRanking({
    backend: createBackend(broker.port, clock.now),
    clock: clock as never,
    context: () => context,
  })
  const signal = new AbortController().signal
  const found = await ranking.rank(parsed, { headers: { accept: '*/*' }, signal, until: now + 5000 })
  if (found.kind !== 'ranked') return { found }
  const response = rankedAnswer(parsed, found)
  const body = (await response.json()) as { id: string; [name: string]: Json }[]
  return { found, body, headers: response.headers, ids: Array.isArray(body) ? body.map(({ id }) => id) : [] }
}

const scoreIn = (entity: { [name: string]: Json }) => (entity[score] as { value: number }).value

describe('a ranked list', () => {
  const streams: Entities = [
    { id: 'urn:x:1', type: 'S', completeness: property(0.88), timeliness: property(0.92) },
    { id: 'urn:x:2', type: 'S', completeness: property(0.92), timeliness: property(0.88) },
  ]

  it('has the scores of the documented examples, the best first', async () => {
    const { body } = await ask(
      brokerOf(streams),
      'type=S&rankWeights[completeness]=0.8&rankWeights%5Btimeliness%5D=0.2',
    )
    expect(body?.map((one) => [one.id, one[score]])).toEqual([
      ['urn:x:2', { type: 'Property', value: 0.912 }],
      ['urn:x:1', { type: 'Property', value: 0.888 }],
    ])
    const again = await ask(brokerOf(streams), 'type=S&weights=completeness:0.4,timeliness:0.6')
    expect(again.body?.map(scoreIn)).toEqual([0.904, 0.896])
  })

  it.each(['', '&normalise=minmax'])(
    'keeps the order of the backend for equal scores, over pages of client and backend%s',
    async (normalise) => {
      // 250 entities are three pages of a backend with at most 100 per page; the ids are not in order.
      const equal: Entities = Array.from({ length: 250 }, (_, n) => ({
        id: `urn:x:${(n * 7) % 250}`,
        level: property(n % 2),
      }))
      const expected = [1, 0].flatMap((value) => equal.filter((_, n) => n % 2 === value)).map(({ id }) => id)
      const listed: string[] = []
      for (let offset = 0; offset < 250; offset += 60) {
        const query = `weights=level:1&limit=60&offset=${offset}${normalise}`
        listed.push(...(await ask(brokerOf(equal, { most: 100 }), query)).ids!)
      }
      expect(listed).toEqual(expected)
    },
  )

  it('sends the backend only its own parameters', async () => {
    const broker = brokerOf(streams)
    await ask(broker, 'type=S&weights=completeness:1&q=a%3E1&limit=1&offset=1&explain=true&normalise=minmax')
    expect(broker.paths).toEqual(['/ngsi-ld/v1/entities?type=S&q=a%3E1&limit=100'])
  })

  it('warns if an inverted value is outside 0 to 1', async () => {
    const timed = [60, 2].map((every) => ({ id: `urn:x:${every}`, every: property(every) }))
    const slow: Entities = [{ id: 'urn:x:none' }, ...timed]
    const plain = await ask(brokerOf(slow), 'weights=-every:1')
    expect(plain.headers?.get('NGSILD-Warning')).toContain(
      '-every is outside 0 to 1 in 2 of 3 entities: use normalise=minmax',
    )
    const { ids, headers } = await ask(brokerOf(slow), 'weights=-every:1&normalise=minmax')
    expect(ids?.[0]).toBe('urn:x:2')
    expect(headers?.get('NGSILD-Warning')).not.toContain('outside')
    const fitting = await ask(brokerOf([{ id: 'urn:x:1', every: property(0.5) }]), 'weights=-every:1')
    expect(fitting.headers?.get('NGSILD-Warning') ?? '').not.toContain('outside')
  })

  it('warns of missing values and of weights that do not add up to 1, and never returns NaN', async () => {
    const odd: Entities = [
      ...streams,
      { id: 'urn:x:3', type: 'S', completeness: property('NA') },
      { id: 'urn:x:4', type: 'S' },
    ]
    const { body, headers } = await ask(brokerOf(odd), 'weights=completeness:0.4,timeliness:0.7')
    expect(body?.map(scoreIn)).toEqual([0.996, 0.984, 0, 0])
    const warning = headers?.get('NGSILD-Warning')
    expect(warning).toContain('299 selvedge-ranking "the weights add up to 1.1')
    expect(warning).toContain('completeness is missing or not a number in 2 of 4 entities')
  })

  it('passes on headers and links other than paging', async () => {
    const { headers } = await ask(brokerOf(streams), 'type=S&limit=1&weights=completeness:1&count=true')
    expect(headers?.get('x-kept')).toBe('yes')
    expect(headers?.get('NGSILD-Results-Count')).toBe('2')
    expect(headers?.get('Link')).toBe(
      '<http://a.example/c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json", ' +
        '<?weights=completeness:1&type=S&limit=1&offset=1&count=true>;rel="next";type="application/json"',
    )
  })

  it('explains each share', async () => {
    const { body } = await ask(
      brokerOf(streams),
      'weights=completeness:0.5,-timeliness:0.25,x:0.25&explain=true&limit=1',
    )
    const { 'urn:selvedge:ns:rankTerms': terms } = body![0]![score] as never
    expect((terms as { value: Json }).value).toEqual([
      { name: 'completeness', weight: 0.5, value: 0.92, share: 0.46 },
      { name: 'timeliness', weight: 0.25, value: 0.88, share: 0.03, smallIsGood: true },
      { name: 'x', weight: 0.25, share: 0, missing: true },
    ])
  })

  it('has plain scores in simplified format', async () => {
    const bare: Entities = [{ id: 'urn:x:1', type: 'S', speed: 3, level: '0.5^^xsd:double' }]
    const { body } = await ask(brokerOf(bare), 'weights=speed:0.5,level:0.5&options=keyValues&explain=true')
    expect(body?.[0]?.[score]).toBe(1.75)
    expect(body?.[0]?.['urn:selvedge:ns:rankTerms']).toHaveLength(2)
  })

  it('is a feature collection for GeoJSON', async () => {
    const feature = {
      type: 'Feature',
      id: 'urn:x:1',
      geometry: null,
      properties: { type: 'S', a: property(2) },
    }
    const text = JSON.stringify({ type: 'FeatureCollection', features: [feature], '@context': 'x' })
    const answer = () => ({ status: 200, headers: { 'content-type': 'application/geo+json' }, text })
    const { body } = await ask(brokerOf([], { answer }), 'weights=a:1')
    const properties = { ...feature.properties, [score]: { type: 'Property', value: 2 } }
    expect(body).toEqual({
      type: 'FeatureCollection',
      '@context': 'x',
      features: [{ ...feature, properties }],
    })
  })
})

describe('names', () => {
  it.each(['completeness', 'qoi:completeness', `${qoi}completeness`])('%s is the same name', async (name) => {
    for (const key of ['completeness', 'qoi:completeness', `${qoi}completeness`]) {
      const { body } = await ask(
        brokerOf([{ id: 'urn:x:1', [key]: property(0.5) }]),
        `weights=${encodeURIComponent(name)}:1`,
      )
      expect(body?.map(scoreIn)).toEqual([0.5])
    }
  })

  it('that are an entire key take precedence over paths', async () => {
    const { body } = await ask(
      brokerOf([{ id: 'urn:x:1', 'a.b': property(0.5), a: property(1, { b: property(2) }) }]),
      'weights=a.b:1',
    )
    expect(body?.map(scoreIn)).toEqual([0.5])
  })

  it('can address sub-attributes', async () => {
    const { body } = await ask(
      brokerOf([{ id: 'urn:x:1', a: property(1, { b: property(2) }) }]),
      'weights=a.b:1',
    )
    expect(body?.map(scoreIn)).toEqual([2])
  })
})

describe('paths through relationships', () => {
  const rated = (value: number): Json => property('NA', { [`${qoi}hasRatedValue`]: property(value) })
  const site = (count: number): Entities => [
    ...Array.from({ length: count }, (_, n) => ({
      id: `urn:s:${n}`,
      [`${qoi}hasQuality`]: link(`urn:q:${n}`),
    })),
    ...Array.from({ length: count }, (_, n) => ({
      id: `urn:q:${n}`,
      type: 'Other',
      [`${qoi}completeness`]: rated((n * 7) % count),
      [`${qoi}age`]: property('NA', { [`${qoi}hasAbsoluteValue`]: property(String(n)) }),
    })),
  ]
  const weights = 'weights=qoi:hasQuality.qoi:completeness:1,qoi:hasQuality.qoi:age:0'

  it('read rated values, many entities per request', async () => {
    const broker = brokerOf(site(250))
    const { ids, headers } = await ask(broker, `${weights}&limit=3`)
    const expected = Array.from({ length: 250 }, (_, n) => n).sort(
      (a, b) => ((b * 7) % 250) - ((a * 7) % 250) || a - b,
    )
    expect(ids).toEqual(expected.slice(0, 3).map((n) => `urn:s:${n}`))
    expect(headers?.get('NGSILD-Warning')).toBeNull()
    // For each of two pages of streams, its batches of qualities for both terms.
    expect(broker.paths).toHaveLength(2 + 1 + 2)
  })

  it('use the mean of several targets, and count entities without a value as missing', async () => {
    const several: Entities = [
      { id: 'urn:s:1', hasQuality: link(['urn:q:1', 'urn:q:2']) },
      { id: 'urn:s:2', hasQuality: [link('urn:q:2'), link('urn:q:none')] },
      { id: 'urn:s:3', hasQuality: link('urn:ngsi-ld:Quality:noqualityyet') },
      ...[1, 2].map((n) => ({ id: `urn:q:${n}`, type: 'Other', [`${qoi}age`]: property(n) })),
    ]
    const { body, headers } = await ask(brokerOf(several), 'weights=hasQuality.age:1')
    expect(body?.map((one) => [one.id, scoreIn(one)])).toEqual([
      ['urn:s:2', 2],
      ['urn:s:1', 1.5],
      ['urn:s:3', 0],
    ])
    expect(headers?.get('NGSILD-Warning')).toContain('in 1 of 3 entities')
  })

  it('read linked entities that are inlined in the response', async () => {
    const joined = {
      id: 'urn:s:1',
      hasQuality: { type: 'Relationship', object: 'urn:q:1', entity: { id: 'urn:q:1', age: property(4) } },
    }
    const broker = brokerOf([joined])
    expect((await ask(broker, 'weights=hasQuality.age:1&join=inline')).body?.map(scoreIn)).toEqual([4])
    expect(broker.paths).toHaveLength(1)
  })

  it('warn why linked entities could not be read', async () => {
    const answer = (path: string) =>
      path.includes('id=') ? { status: 503, headers: {}, text: '' } : undefined
    const { headers } = await ask(brokerOf(site(2), { answer }), weights)
    expect(headers?.get('NGSILD-Warning')).toContain(
      'entities linked by qoi:hasQuality could not be read: status 503',
    )
  })

  it('read attributes that the client does not request', async () => {
    const stations: Entities = [
      { id: 'urn:x:1', name: property('a'), level: property(1) },
      { id: 'urn:x:2', name: property('b'), level: property(2) },
    ]
    const answer = (path: string) =>
      path.includes('id=')
        ? undefined
        : { status: 200, headers: {}, text: JSON.stringify(stations.map(({ id, name }) => ({ id, name }))) }
    const { body } = await ask(brokerOf(stations, { answer }), 'weights=level:1&attrs=name')
    expect(body?.map((one) => [one.id, scoreIn(one), one['level']])).toEqual([
      ['urn:x:2', 2, undefined],
      ['urn:x:1', 1, undefined],
    ])
  })
})

describe('computed criteria', () => {
  const place = (...coordinates: number[]): Json => ({
    type: 'GeoProperty',
    value: { type: 'Point', coordinates },
  })

  it('proximity is one half at the given distance', async () => {
    const places: Entities = [
      { id: 'urn:x:far', location: place(8, 50) },
      { id: 'urn:x:here', location: place(8, 49) },
      { id: 'urn:x:none' },
    ]
    const { body } = await ask(
      brokerOf(places),
      'weights=@proximity:1&rankPoint=8,49&rankDistance=111194.926645',
    )
    expect(body?.map((one) => one.id)).toEqual(['urn:x:here', 'urn:x:far', 'urn:x:none'])
    expect(body?.map(scoreIn)).toEqual([1, expect.closeTo(0.5, 6), 0])
  })

  it('freshness works for an entity or an attribute', async () => {
    const at = (minutes: number) => new Date(now - minutes * 60_000).toISOString()
    const aged: Entities = [
      { id: 'urn:x:old', a: property(1, { observedAt: at(60) }) },
      { id: 'urn:x:new', a: property(1, { observedAt: at(0) }), b: property(1, { observedAt: at(600) }) },
      { id: 'urn:x:text', resultTime: property(at(180)) },
    ]
    const { body } = await ask(brokerOf(aged), 'weights=@freshness:1')
    expect(body?.map((one) => [one.id, scoreIn(one)])).toEqual([
      ['urn:x:new', 1],
      ['urn:x:old', 0.5],
      ['urn:x:text', 0.25],
    ])
    expect((await ask(brokerOf(aged), 'weights=b.@freshness:1&rankAge=36000')).body?.map(scoreIn)).toEqual([
      0.5, 0, 0,
    ])
  })

  it('availability compares with the update interval', async () => {
    const at = (seconds: number) => new Date(now - seconds * 1000).toISOString()
    const every = property(10, { [`${qoi}unit`]: property('min') })
    const streams: Entities = [
      { id: 'urn:x:silent', a: property(1, { observedAt: at(2400) }), [`${qoi}updateinterval`]: every },
      { id: 'urn:x:recent', a: property(1, { observedAt: at(1100) }), [`${qoi}updateinterval`]: every },
      {
        id: 'urn:x:ended',
        a: property(1, { observedAt: at(1) }),
        'http://purl.org/iot/ontology/iot-stream#streamEnd': property(at(5)),
      },
    ]
    const { body } = await ask(brokerOf(streams), 'weights=@availability:1')
    expect(body?.map((one) => [one.id, scoreIn(one)])).toEqual([
      ['urn:x:recent', 1],
      ['urn:x:silent', 0.5],
      ['urn:x:ended', 0],
    ])
  })
})

describe('candidates', () => {
  const many = (count: number): Entities =>
    Array.from({ length: count }, (_, n) => ({ id: `urn:x:${n}`, level: property((n * 37) % count) }))

  it.each([
    ['with links', { isLinked: true }, 4],
    ['without links', { isLinked: false }, 4],
    ['with small pages', { most: 500 }, 7],
    ['with small pages and no links', { most: 100, isLinked: false }, 28],
  ])('are all ranked, for every kind of paging: %s', async (_, habits, requests) => {
    const broker = brokerOf(many(2500), habits)
    const { ids, found } = await ask(broker, 'weights=level:1&limit=2&offset=1')
    expect(found).toMatchObject({ count: 2500 })
    const order = Array.from({ length: 2500 }, (_, n) => n).sort(
      (a, b) => ((b * 37) % 2500) - ((a * 37) % 2500),
    )
    expect(ids).toEqual(order.slice(1, 3).map((n) => `urn:x:${n}`))
    expect(broker.paths).toHaveLength(requests)
  })

  it.each([true, false])('are read in pages of limited size (with links: %s)', async (isLinked) => {
    const large = many(300).map((one, n) => ({ ...one, text: 'x'.repeat(n < 200 ? 16_000 : 10) }))
    const broker = brokerOf(large, { isLinked })
    const { found } = await ask(broker, 'weights=level:1&limit=2')
    expect(found).toMatchObject({ count: 300 })
    const sizes = broker.paths.map((path) => Number(/limit=(\d+)/.exec(path)?.[1]))
    // 256 kB are 16 of the large entities; the last of these are on a page with small ones. At last, the two
    // entities of the answer are read again.
    expect(sizes).toEqual([100, ...Array<number>(7).fill(16), expect.any(Number), 1000, 2])
  })

  it.each(['', '&normalise=minmax'])(
    'that are large are not kept: those of the answer are read again as they are now%s',
    async (normalise) => {
      // 3 MB in 31 pages. Meanwhile one of the answer is deleted, and another one changes.
      const large = Array.from({ length: 300 }, (_, n) => ({
        id: `urn:x:${n}`,
        level: property(n),
        text: 'x'.repeat(10_000),
      }))
      const changed = { id: 'urn:x:297', level: property(7) }
      const answer = (path: string) =>
        path.includes('?id=')
          ? { status: 200, headers: {}, text: JSON.stringify([changed, large[299]]) }
          : undefined
      const broker = brokerOf(large, { answer })
      const { body, found, headers } = await ask(broker, `type=S&q=level&weights=level:1&limit=3${normalise}`)
      expect(found).toMatchObject({ count: 300 })
      const scored = (n: number): number => (normalise === '' ? n : n / 299)
      expect(body?.map((one) => [one.id, one['level'], scoreIn(one)])).toEqual([
        ['urn:x:299', property(299), scored(299)],
        ['urn:x:297', property(7), expect.closeTo(scored(297), 9)],
      ])
      expect(headers?.get('NGSILD-Warning')).toBe(
        '299 selvedge-ranking "missing here, deleted or changed while ranked: 1"',
      )
      expect(broker.paths.filter((path) => path.includes('?id='))).toEqual([
        '/ngsi-ld/v1/entities?id=urn:x:299,urn:x:298,urn:x:297&type=S&q=level&limit=3',
      ])
    },
  )

  it('are missing if those of the answer cannot be read again', async () => {
    const large = Array.from({ length: 60 }, (_, n) => ({ id: `urn:x:${n}`, text: 'x'.repeat(10_000) }))
    const answer = (path: string) =>
      path.includes('id=') ? { status: 503, headers: {}, text: '' } : undefined
    expect((await ask(brokerOf(large, { answer }), 'weights=level:1')).found).toMatchObject({
      kind: 'unanswered',
      reason: 'status 503',
    })
  })

  it('are normalized over all pages', async () => {
    const { body } = await ask(brokerOf(many(2500)), 'weights=level:1&limit=2&normalise=minmax')
    expect(body?.map(scoreIn)).toEqual([1, expect.closeTo(2498 / 2499, 9)])
  })

  it('above the limit are rejected', async () => {
    await expect(ask(brokerOf(many(10_001)), 'weights=level:1')).rejects.toMatchObject({
      code: 'ngsi-ld.too-many-results',
    })
  })

  it('of a broker that repeats entities are read only once', async () => {
    const page = many(1000)
    const answer = () => ({
      status: 200,
      headers: { link: '</ngsi-ld/v1/entities?offset=1000>;rel="next"' },
      text: JSON.stringify(page),
    })
    expect((await ask(brokerOf([], { answer }), 'weights=level:1')).found).toMatchObject({ count: 1000 })
  })

  it.each([
    [{ status: 404, headers: { a: 'b' }, text: '{"title":"no"}' }, 'refused'],
    [{ failure: 'timeout', reason: 'no answer' }, 'unanswered'],
    [{ failure: 'unreachable', reason: 'no route' }, 'unanswered'],
    [{ status: 200, headers: {}, text: '<html>' }, 'unreadable'],
    [{ status: 200, headers: {}, text: '{"a":1}' }, 'unreadable'],
    [{ status: 200, headers: {}, text: '[1]' }, 'unreadable'],
  ] as const)('are missing if the backend answers %j', async (answer, kind) => {
    expect((await ask(brokerOf([], { answer: () => answer }), 'weights=a:1')).found).toMatchObject({ kind })
  })
})
