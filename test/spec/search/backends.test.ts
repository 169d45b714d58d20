/**
 * Search backends: this gateway's own broker, its ranking, or another broker by address; the number of
 * requests; and error messages of failing backends.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BrokerPort, BrokerRequest } from '#contract'
import { createEngine } from '#plugins/search/transports/engine.ts'
import { fieldEntities, idOf, platformOf, type SearchSite, startSearchSite } from '#test/kit/search-site.ts'

let site: SearchSite

beforeAll(async () => {
  site = await startSearchSite()
  const devices = Array.from({ length: 150 }, (_, index) => `d${index}`)
  await site.create([
    ...devices.map((device, index) => platformOf(device, ['T'], [10 + index / 1000, 50])),
    ...devices.flatMap((device, index) =>
      fieldEntities({ device, field: 'T', value: index, completeness: ((index * 7) % 150) / 150 }),
    ),
  ])
})

afterAll(() => site.close())

const weights = '[{ name: "qoi:hasQuality.qoi:completeness", value: 1 }]'

describe('ranking', () => {
  it('uses the ranking component: best first, with the score', async () => {
    const { streams } = await site.data<{ streams: { id: string; rankScore: number }[] }>(
      `{ streams(ranking: ${weights}, limit: 3) { id rankScore quality { completeness { rated } } } }`,
    )
    expect(streams.map(({ rankScore }) => Math.round(rankScore * 150))).toEqual([149, 148, 147])
    const next = await site.data<{ streams: { rankScore: number }[] }>(
      `{ streams(ranking: ${weights}, limit: 2, offset: 3) { rankScore } }`,
    )
    expect(next.streams.map(({ rankScore }) => Math.round(rankScore * 150))).toEqual([146, 145])
  })

  it('ranks results of nested criteria, also over several queries', async () => {
    const { streams } = await site.data<{ streams: { rankScore: number }[] }>(
      `{ streams(ranking: ${weights}, generatedBy: { observes: { label: "t" } }, limit: 4, offset: 1) { rankScore } }`,
    )
    expect(streams.map(({ rankScore }) => Math.round(rankScore * 150))).toEqual([148, 147, 146, 145])
  })

  it('pages by cursor in the order of the score', async () => {
    const { streamsConnection } = await site.data<{
      streamsConnection: {
        nodes: { rankScore: number }[]
        pageInfo: { hasNextPage: boolean }
        totalCount: number
      }
    }>(
      `{ streamsConnection(ranking: ${weights}, first: 2) { nodes { rankScore } pageInfo { hasNextPage } totalCount } }`,
    )
    expect(streamsConnection).toMatchObject({ pageInfo: { hasNextPage: true }, totalCount: 150 })
    expect(Math.round(streamsConnection.nodes[1]!.rankScore * 150)).toBe(148)
  })

  it('measures proximity from rankPoint or the point of near, scaled by rankDistance', async () => {
    const ranked = (more: string): Promise<{ platforms: { id: string; rankScore: number }[] }> =>
      site.data(
        `{ platforms(ranking: [{ name: "@proximity", value: 1 }], limit: 1, ${more}) { id rankScore } }`,
      )
    const [first] = (await ranked('rankPoint: { lon: 10.1, lat: 50 }')).platforms
    expect([first?.id, first?.rankScore]).toEqual([idOf('Platform', 'd100'), 1])
    const near = await ranked('near: { lon: 10.02, lat: 50, maxDistance: 5000 }')
    expect(near.platforms[0]?.id).toBe(idOf('Platform', 'd20'))
    const at = (distance: number): string =>
      `rankPoint: { lon: 10.101, lat: 50.01 }, rankDistance: ${distance}`
    const [low] = (await ranked(at(100))).platforms
    const [high] = (await ranked(at(100_000))).platforms
    expect(low!.rankScore).toBeLessThan(0.3)
    expect(high!.rankScore).toBeGreaterThan(0.8)
  })

  it.each([
    ['[{ name: "@proximity", value: 1 }]', 'requires rankPoint or near'],
    [
      '[{ name: "@proximity", value: 1 }], rankPoint: { lon: 400, lat: 0 }',
      'rankPoint: 400, 0 is not a valid place',
    ],
    ['[{ name: "@freshness", value: 1 }], rankAge: 0', 'rankAge must be a number above 0'],
    ['[], rankDistance: 5', 'rankDistance requires ranking'],
    ['[{ name: "a..b", value: 1 }]', 'ranking: '],
  ])('reports a client error: %s', async (ranking, reason) => {
    const { errors } = await site.ask(`{ platforms(ranking: ${ranking}) { id } }`)
    expect(errors?.[0]?.message).toContain(reason)
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_REQUEST' })
  })

  it('passes on warnings of the ranking', async () => {
    const query = (name: string): string => `{ platforms(ranking: [{ name: "${name}", value: 1 }]) { id } }`
    const wrong = await site.ask(query('nonsense'))
    expect(wrong.extensions?.warnings).toEqual([
      expect.stringContaining('nonsense is missing or not a number in 150 of 150'),
    ])
    const right = await site.ask(`{ streams(ranking: ${weights}) { id } }`)
    expect(right.extensions).not.toHaveProperty('warnings')
  })

  it('rejects criteria without a weight', async () => {
    const { errors } = await site.ask('{ streams(ranking: [{ name: "x" }]) { id } }')
    expect(errors?.[0]?.message).toContain('requires a name and a value')
  })
})

describe('requests to the broker', () => {
  /** The gateway's broker with a record of all requests. */
  function recorded(): { readonly port: BrokerPort; readonly requests: BrokerRequest[] } {
    const requests: BrokerRequest[] = []
    const port: BrokerPort = {
      address: site.url,
      async exchange(request) {
        requests.push(request)
        const answer = await fetch(site.url + request.path, { headers: request.headers ?? {} })
        return {
          status: answer.status,
          headers: Object.fromEntries(answer.headers),
          text: await answer.text(),
        }
      },
    }
    return { port, requests }
  }

  async function countOf(query: string): Promise<number> {
    const { port, requests } = recorded()
    const settings = { introspection: true, timeoutMs: 10_000 }
    const engine = await createEngine({ broker: port, ranking: port, changes: undefined }, settings, [])
    const request = new Request(`http://x/graphql?query=${encodeURIComponent(query)}`)
    const environment = { body: async () => Buffer.alloc(0), signal: new AbortController().signal }
    const answer = await engine.http(request, environment)
    expect(((await answer.json()) as { errors?: unknown }).errors).toBeUndefined()
    engine.close()
    return requests.length
  }

  it('are one per level of a hundred entities, not one per entity', async () => {
    const query = (limit: number): string => `{ streams(limit: ${limit}) { generatedBy { isHostedBy { id } }
      observes { label } observation { hasSimpleResult } quality { completeness { rated } } } }`
    expect(await countOf(query(1))).toBe(6)
    expect(await countOf(query(100))).toBe(6)
    expect(await countOf(query(150))).toBe(11)
  })

  it('are few for nested criteria, only as many as the page needs', async () => {
    const three = (limit: number): string =>
      `{ streamObservations(belongsTo: { generatedBy: { observes: { label: "t" } } }, limit: ${limit}) { id } }`
    expect(await countOf(three(5))).toBe(4)
    expect(await countOf(three(150))).toBeLessThanOrEqual(12)
  })
})

describe('criteria that each match many entities', () => {
  it('are combined, so that all hold and no entity is returned twice', async () => {
    const query = (limit: number, offset: number): string =>
      `{ sensors(observes: { label: "t" }, isHostedBy: { search: "platform d1" }, madeObservation: { hasSimpleResult: { gte: 15 } },
          limit: ${limit}, offset: ${offset}) { id } }`
    const all = await site.data<{ sensors: { id: string }[] }>(query(200, 0))
    const wanted = Array.from({ length: 150 }, (_, index) => index).filter(
      (index) => String(index).startsWith('1') && index >= 15,
    )
    expect(new Set(all.sensors.map(({ id }) => id))).toEqual(
      new Set(wanted.map((index) => idOf('Sensor', `d${index}`, 'T'))),
    )
    expect(all.sensors).toHaveLength(wanted.length)
    const page = await site.data<{ sensors: { id: string }[] }>(query(7, 10))
    expect(page.sensors).toEqual(all.sensors.slice(10, 17))
    const { sensorsConnection } = await site.data<{ sensorsConnection: { totalCount: number } }>(
      `{ sensorsConnection(observes: { label: "t" }, isHostedBy: { search: "platform d1" }) { totalCount } }`,
    )
    expect(sensorsConnection.totalCount).toBe(61)
  })
})

describe('the index', () => {
  it('can be selected as the backend', async () => {
    const indexed = await startSearchSite({
      SELVEDGE_SEARCH_BACKEND: 'indexing',
      SELVEDGE_INDEXING_ENABLED: 'true',
      SELVEDGE_RANKING_BACKEND: 'indexing',
    })
    await indexed.create([
      platformOf('d0', ['T'], [10, 50]),
      ...fieldEntities({ device: 'd0', field: 'T', value: 4, completeness: 0.9 }),
    ])
    const query = `{ streams(generatedBy: { observes: { label: "t" } }, ranking: ${weights}) {
      rankScore quality { completeness { rated } } observation { hasSimpleResult } generatedBy { isHostedBy { label } } } }`
    await expect
      .poll(async () => (await indexed.ask(query)).data)
      .toEqual({
        streams: [
          {
            rankScore: 0.9,
            quality: { completeness: { rated: 0.9 } },
            observation: { hasSimpleResult: 4 },
            generatedBy: { isHostedBy: { label: 'platform d0' } },
          },
        ],
      })
    await indexed.close()
  })
})

describe('another broker', () => {
  it('can be the backend by its address, without subscriptions', async () => {
    const other = await startSearchSite({ SELVEDGE_SEARCH_BACKEND: `${site.url}/ngsi-ld/` })
    const query = `{ platforms(id: "${idOf('Platform', 'd3')}") { label hosts { madeObservation { hasSimpleResult } } } }`
    expect(await other.data(query)).toEqual({
      platforms: [{ label: 'platform d3', hosts: [{ madeObservation: { hasSimpleResult: 3 } }] }],
    })
    const stream = await fetch(`${other.url}/search/graphql/stream`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify({ query: 'subscription { platforms { id } }' }),
    })
    expect(await stream.text()).toContain('another broker')
    const ranked = await other.ask(`{ streams(ranking: ${weights}) { id } }`)
    expect(ranked.errors?.[0]?.message).toMatch(/answered \d+/)
    await other.close()
  })

  describe('that fails', () => {
    let server: Server
    let broken: SearchSite
    let status = 500
    let body = ''

    beforeAll(async () => {
      server = createServer((_request, response) => {
        if (status === 0) return
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(body)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      broken = await startSearchSite({
        SELVEDGE_SEARCH_BACKEND: `http://127.0.0.1:${port}`,
        SELVEDGE_SEARCH_TIMEOUT_MS: '300',
      })
    })

    afterAll(async () => {
      await broken.close()
      server.closeAllConnections()
      server.close()
    })

    it.each([
      ['an error', 503, '{"title":"Busy","detail":"come back"}', 503, 'answered 503: Busy: come back'],
      ['no JSON', 200, '<html>', 502, 'not a list of entities'],
      ['no entities', 200, '{"a":1}', 502, 'not a list of entities'],
      ['nothing', 0, '', 504, 'no answer within'],
    ])(
      'by answering %s is an error of GraphQL with its status',
      async (_what, answered, text, expectedStatus, reason) => {
        ;[status, body] = [answered, text]
        const { data, errors } = await broken.ask('{ platforms { id } }')
        expect(data).toEqual({ platforms: null })
        expect(errors?.[0]).toMatchObject({
          path: ['platforms'],
          extensions: { code: 'BACKEND_FAILED', status: expectedStatus },
          message: expect.stringContaining(reason) as string,
        })
      },
    )
  })
})
