/**
 * Ranking over a real gateway: its own repository, another broker by HTTP, and brokers that fail. Examples
 * are those of the original component and of the specification.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { platformContextPath } from '#broker/contexts/context-resolver.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-ranking-'))
const qoi = 'https://w3id.org/iot/qoi#'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const streamType = encodeURIComponent(`${iotStream}IotStream`)
const rankScore = 'http://iotcrawler.eu/rankScore'
const property = (value: unknown, more = {}): object => ({ type: 'Property', value, ...more })
const rated = (value: number): object => property('NA', { [`${qoi}hasRatedValue`]: property(value) })

type Entity = Readonly<Record<string, never>>
let site: GatewayInside
let elsewhere: GatewayInside
/** The server behind `failing`. */
let failing: Server
let broken: GatewayInside
let patient: GatewayInside
let own: HttpClient

const rankingOf = ({ httpPort }: GatewayInside): HttpClient =>
  httpClient(`http://127.0.0.1:${httpPort}/ranking`)

const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function start(name: string, env: Record<string, string>): Promise<GatewayInside> {
  return startGatewayInside(mkdtempSync(join(folder, name)), env)
}

beforeAll(async () => {
  failing = createServer((request, response) => {
    const what = new URL(request.url!, 'http://a').searchParams.get('type')
    if (what === 'Garbage') response.end('<html>')
    else if (what === 'Huge') response.end(`[${' '.repeat(limits.sourceAnswerBytesMax.value)}]`)
    else if (what === 'Refused')
      response.writeHead(418, { 'Content-Type': 'application/json', 'X-Kept': 'yes' }).end('{"title":"no"}')
    // Other requests are never answered.
  })
  await new Promise<void>((resolve) => failing.listen(0, '127.0.0.1', resolve))
  site = await start('site-', { SELVEDGE_RANKING_BACKEND: 'mdr' })
  elsewhere = await start('elsewhere-', { INDEXER_URL: `http://127.0.0.1:${site.httpPort}` })
  broken = await start('broken-', {
    INDEXER_URL: addressOf(failing),
    SELVEDGE_RANKING_TIMEOUT_MS: '400',
  })
  // Its limit on bytes applies before its time limit.
  patient = await start('patient-', { INDEXER_URL: addressOf(failing) })
  own = rankingOf(site)
  const streams = Array.from({ length: 120 }, (_, n) => ({
    id: `urn:ngsi-ld:IotStream:s:${n}`,
    type: `${iotStream}IotStream`,
    [`${qoi}hasQuality`]: { type: 'Relationship', object: `urn:ngsi-ld:QoI:urn:ngsi-ld:IotStream:s:${n}` },
    name: property(`stream ${n}`),
    level: property(n % 10),
  }))
  const qualities = streams.map(({ id }, n) => ({
    id: `urn:ngsi-ld:QoI:${id}`,
    type: `${qoi}Quality`,
    [`${qoi}completeness`]: rated(((n * 7) % 120) / 120),
    [`${qoi}age`]: property('NA', { [`${qoi}hasAbsoluteValue`]: property(n) }),
  }))
  const examples = [
    { id: 'urn:x:A', type: 'Example', completeness: property(0.88), timeliness: property(0.92) },
    { id: 'urn:x:B', type: 'Example', completeness: property(0.92), timeliness: property(0.88) },
  ]
  const made = await site.send('POST', '/ngsi-ld/v1/entityOperations/create', [
    ...streams,
    ...qualities,
    ...examples,
  ])
  expect(made.status).toBe(201)
})
afterAll(async () => {
  await Promise.all([site, elsewhere, broken, patient].map((gateway) => gateway.close()))
  failing.closeAllConnections()
  failing.close()
  rmSync(folder, { recursive: true, force: true })
})

const query = '/ngsi-ld/v1/entities'
const scores = (entities: readonly Entity[]): unknown[] => entities.map((one) => [one['id'], one[rankScore]])

describe('weights', () => {
  it.each([
    ['rankWeights[completeness]=0.4&rankWeights[timeliness]=0.6', 'urn:x:A', 0.904],
    ['rankWeights%5Bcompleteness%5D=0.4&rankWeights%5Btimeliness%5D=0.6', 'urn:x:A', 0.904],
    ['rankWeights[completeness]=0.8&rankWeights[timeliness]=0.2', 'urn:x:B', 0.912],
    ['weights=completeness:0.8,timeliness:0.2', 'urn:x:B', 0.912],
    [`weights=${encodeURIComponent('{"completeness":0.8,"timeliness":0.2}')}`, 'urn:x:B', 0.912],
  ])('from the documentation rank: %s', async (weights, best, score) => {
    for (const client of [own, rankingOf(elsewhere)]) {
      const answer = await client.get(`${query}?type=Example&${weights}`)
      expect([answer.status, answer.headers['ngsild-warning']]).toEqual([200, undefined])
      const [first] = answer.json() as Entity[]
      expect([first!['id'], first![rankScore]]).toEqual([best, { type: 'Property', value: score }])
    }
  })

  it('change no entity if there are none', async () => {
    const plain = await site.get(`${query}?type=Example`)
    for (const client of [own, rankingOf(elsewhere)]) {
      const answer = await client.get(`${query}?type=Example`)
      expect(answer.text).toBe(plain.text)
      expect(answer.headers['content-type']).toBe(plain.headers['content-type'])
      expect(answer.headers['link']).toBe(plain.headers['link'])
    }
  })

  it('that are missing make the other ranking options ineffective, with a warning', async () => {
    const answer = await own.get(`${query}?type=Example&normalise=minmax&explain=true`)
    expect(answer.status).toBe(200)
    expect(answer.headers['ngsild-warning']).toBe(
      '299 selvedge-ranking "no effect without weights: normalise, explain"',
    )
  })

  it.each([
    'weights=completeness:high',
    'weights=:1',
    'rankWeights[completeness]=x',
    'weights=completeness:1e999',
  ])('that are invalid are rejected: %s', async (weights) => {
    const answer = await own.get(`${query}?type=Example&${weights}`)
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({
      type: 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData',
      detail: expect.stringMatching(/completeness|empty/),
    })
  })
})

describe('a ranked list of streams by their quality', () => {
  const weights = 'weights=qoi:hasQuality.qoi:completeness:1'

  it('is ordered over all streams, page by page', async () => {
    const order = Array.from({ length: 120 }, (_, n) => n).sort((a, b) => ((b * 7) % 120) - ((a * 7) % 120))
    const seen: string[] = []
    let path: string | undefined = `${query}?type=${streamType}&${weights}&limit=50&count=true`
    while (path !== undefined) {
      const answer = await own.get(path)
      expect([answer.status, answer.headers['ngsild-results-count']]).toEqual([200, '120'])
      seen.push(...(answer.json() as { id: string }[]).map(({ id }) => id))
      const next = /<([^<>]*)>;rel="next"/.exec(answer.headers['link'] ?? '')?.[1]
      path = next === undefined ? undefined : `${query}${next}`
    }
    expect(seen).toEqual(order.map((n) => `urn:ngsi-ld:IotStream:s:${n}`))
  })

  it('is the same over another broker, by full IRIs, and by short names with a context', async () => {
    const context = `<http://127.0.0.1:${site.httpPort}${platformContextPath}>; rel="http://www.w3.org/ns/json-ld#context"`
    const expected = scores((await own.get(`${query}?type=${streamType}&${weights}&limit=5`)).json())
    expect(expected).toHaveLength(5)
    const full = encodeURIComponent(`${qoi}hasQuality.${qoi}completeness`)
    const remote = await rankingOf(elsewhere).get(
      `${query}?type=${streamType}&rankWeights[${full}]=1&limit=5`,
    )
    expect(scores(remote.json())).toEqual(expected)
    const short = await own.get(`${query}?type=IotStream&weights=hasQuality.completeness:1&limit=5`, {
      Link: context,
    })
    expect(scores(short.json())).toEqual(expected)
    expect(short.headers['link']).toContain(platformContextPath)
  })

  it('is equal when its entities are read again at the end', async () => {
    const paths = [
      `type=${streamType}&limit=7&offset=3`,
      `type=${streamType}&limit=0&count=true`,
      `type=${streamType}&q=level%3E3&options=concise&explain=true&normalise=minmax`,
      `type=${streamType}&attrs=name&options=keyValues`,
      `type=${streamType}&omit=id,type&limit=3`,
      `type=${streamType}&pick=name,id&limit=3`,
      `type=${streamType}&idPattern=s:1&limit=30`,
      `id=urn:x:A,urn:x:B,urn:ngsi-ld:IotStream:s:3`,
      `type=${streamType}&join=flat&limit=100&offset=100`,
      `type=${streamType}&join=inline&limit=2`,
      `type=${streamType}&orderBy=level&limit=12`,
    ]
    const made = await site.get(`${query}?type=${streamType}&limit=60&entityMap=true`)
    const map = { 'NGSILD-EntityMap': made.headers['ngsild-entitymap'] as string }
    const read = async (): Promise<unknown[]> => {
      const answers = [
        ...paths.map((path) => own.get(`${query}?${path}&${weights},level:1`)),
        ...['application/ld+json', 'application/geo+json'].map((Accept) =>
          own.get(`${query}?type=${streamType}&limit=4&${weights}`, { Accept }),
        ),
        own.get(`${query}?${weights}&limit=70`, map),
      ]
      return (await Promise.all(answers)).map(({ status, headers: { date: _, ...headers }, text }) => ({
        status,
        headers,
        text,
      }))
    }
    const held = await read()
    setLimit('rankingHeldBytes', 0)
    try {
      expect(held.map((one) => (one as { status: number }).status)).toEqual(held.map(() => 200))
      expect(await read()).toEqual(held)
    } finally {
      restoreLimits()
    }
  })

  it('shows only the requested members, and ranks by others', async () => {
    const answer = await own.get(
      `${query}?type=${streamType}&weights=level:0.1,qoi:hasQuality.qoi:completeness:1&attrs=name&options=keyValues&limit=1`,
    )
    const [first] = answer.json() as Entity[]
    expect(Object.keys(first!).toSorted()).toEqual([rankScore, 'id', 'name', 'type'].toSorted())
    expect(first![rankScore]).toBeGreaterThan(1.5)
  })

  it('can be normalized, with small values ranked high', async () => {
    const answer = await own.get(
      `${query}?type=${streamType}&weights=-qoi:hasQuality.qoi:age:1&normalise=minmax&limit=2&explain=true`,
    )
    const [first, second] = answer.json() as Entity[]
    expect([first!['id'], second!['id']]).toEqual(['urn:ngsi-ld:IotStream:s:0', 'urn:ngsi-ld:IotStream:s:1'])
    expect(first![rankScore]).toEqual({
      type: 'Property',
      value: 1,
      'urn:selvedge:ns:rankTerms': {
        type: 'Property',
        value: [
          {
            name: 'qoi:hasQuality.qoi:age',
            weight: 1,
            value: 0,
            share: 1,
            smallIsGood: true,
            least: 0,
            most: 119,
          },
        ],
      },
    })
  })
})

describe('the backend', () => {
  it('returns single entities unchanged', async () => {
    const answer = await rankingOf(elsewhere).get(`${query}/urn:x:A`)
    expect(answer.text).toBe((await site.get(`${query}/urn:x:A`)).text)
    expect((await own.get(`${query}/urn:x:nobody`)).status).toBe(404)
  })

  it('receives the headers of the client', async () => {
    const answer = await rankingOf(elsewhere).get(`${query}?type=Example&weights=completeness:1`, {
      'NGSILD-Tenant': 'nobody',
      Accept: 'application/ld+json',
    })
    expect([answer.status, answer.headers['ngsild-tenant']]).toEqual([404, 'nobody'])
    const ld = await own.get(`${query}?type=Example&weights=completeness:1`, {
      Accept: 'application/ld+json',
    })
    expect(ld.headers['content-type']).toBe('application/ld+json')
    expect(ld.json()).toMatchObject([{ '@context': expect.anything() }, { '@context': expect.anything() }])
  })

  it('has its errors passed on', async () => {
    for (const more of ['', '&weights=a:1']) {
      const answer = await rankingOf(broken).get(`${query}?type=Refused${more}`)
      expect([answer.status, answer.text, answer.headers['x-kept']]).toEqual([418, '{"title":"no"}', 'yes'])
    }
    const bad = await own.get(`${query}?type=Example&weights=completeness:1&q=((`)
    expect(bad.status).toBe(400)
    expect(bad.json()).toMatchObject({ type: 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData' })
  })

  it('leads to 504 if it does not answer', async () => {
    for (const more of ['', '&weights=a:1']) {
      const answer = await rankingOf(broken).get(`${query}?type=Silent${more}`)
      expect(answer.status).toBe(504)
      expect(answer.json()).toMatchObject({
        type: 'https://uri.etsi.org/ngsi-ld/errors/InternalError',
        title: 'Timeout',
        detail: expect.any(String),
      })
    }
  })

  it('leads to 502 if its response is too large', async () => {
    for (const more of ['', '&weights=a:1']) {
      const answer = await rankingOf(patient).get(`${query}?type=Huge${more}`)
      expect([answer.status, answer.json()]).toMatchObject([502, { title: 'Request failed' }])
    }
  })

  it('leads to 500 if its response is garbage', async () => {
    const answer = await rankingOf(broken).get(`${query}?type=Garbage&weights=a:1`)
    expect(answer.status).toBe(500)
    expect(answer.json()).toMatchObject({ title: 'Request failed' })
  })
})

describe('the index as backend', () => {
  it('is ranked by default', async () => {
    const gateway = await start('index-', {})
    try {
      const made = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', [
        ...[1, 2, 3].flatMap((n) => [
          {
            id: `urn:ngsi-ld:IotStream:i:${n}`,
            type: `${iotStream}IotStream`,
            [`${iotStream}generatedBy`]: { type: 'Relationship', object: `urn:ngsi-ld:Sensor:i:${n}` },
            [`${qoi}hasQuality`]: { type: 'Relationship', object: `urn:ngsi-ld:QoI:i:${n}` },
          },
          {
            id: `urn:ngsi-ld:Sensor:i:${n}`,
            type: 'http://www.w3.org/ns/sosa/Sensor',
            location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [8 + n / 100, 50] } },
          },
          { id: `urn:ngsi-ld:QoI:i:${n}`, type: `${qoi}Quality`, [`${qoi}completeness`]: rated(n / 4) },
        ]),
      ])
      expect(made.status).toBe(201)
      const near = 'georel=near;maxDistance==1000&geometry=Point&coordinates=%5B8.02,50%5D'
      const weights = 'weights=qoi:hasQuality.qoi:completeness:0.5,iot-stream:generatedBy.@proximity:0.5'
      const answer = await vi.waitFor(async () => {
        const found = await rankingOf(gateway).get(`${query}?type=${streamType}&${near}&${weights}&limit=2`, {
          'Selvedge-Index-Position': 'latest',
        })
        expect(found.status).toBe(200)
        return found
      })
      expect(answer.headers['selvedge-answered-by']).toBe('index')
      expect(scores(answer.json())).toEqual([
        ['urn:ngsi-ld:IotStream:i:2', { type: 'Property', value: 0.75 }],
        ['urn:ngsi-ld:IotStream:i:3', { type: 'Property', value: expect.closeTo(0.666, 2) }],
      ])
    } finally {
      await gateway.close()
    }
  })
})

it('ranks entities of its own process one request at a time', async () => {
  setLimit('rankingWaitingMax', 0)
  const gateway = await start('serial-', { SELVEDGE_RANKING_BACKEND: 'mdr' })
  try {
    const entities = Array.from({ length: 1000 }, (_, n) => ({
      id: `urn:x:serial:${n}`,
      type: 'Serial',
      n: property(n),
    }))
    await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    const path = `${query}?type=Serial&weights=n:1`
    // Two requests overlap when the second arrives before the first is answered.
    await vi.waitFor(
      async () => {
        const answers = await Promise.all([1, 2].map(() => rankingOf(gateway).get(path)))
        expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 503])
      },
      { timeout: 20_000 },
    )
  } finally {
    restoreLimits()
    await gateway.close()
  }
})

describe('other routes of the ranking', () => {
  it('are health, a description and a page', async () => {
    expect((await own.get('/api/health')).json()).toEqual({ status: 'UP' })
    const description = (await own.get('/spec')).json() as { paths: object }
    expect(Object.keys(description.paths)).toContain('/ngsi-ld/v1/entities')
    const page = await own.get('/')
    expect(page.headers['content-type']).toContain('text/html')
    expect(page.text).not.toMatch(/(?:src|href)="https?:/)
  })

  it('are read only', async () => {
    const answer = await own.send('POST', query, {})
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD'])
    expect((await own.get('/ngsi-ld/v1/nothing')).status).toBe(404)
  })
})
