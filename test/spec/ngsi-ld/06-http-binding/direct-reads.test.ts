/**
 * Direct reads [NGSI-LD 6.4.3.2, 6.5.3.1] return the same as the full routes, after every kind of write, and
 * leave unusual requests to them.
 */
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMetrics } from '#base/register/metrics.ts'
import { createDirectReads } from '#http/entities/direct-reads.ts'
import { createEntityReads } from '#http/entities/entity-reads.ts'
import { createAnswers } from '#http/request/response.ts'
import { createCoreContext } from '#ngsi-ld/context/context.ts'
import { type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { type HttpGateway, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
/** A header without effect that makes the request unusual. */
const long = { Prefer: 'respond-async' }

let gateway: HttpGateway
beforeAll(async () => {
  gateway = await startHttpGateway()
})
afterAll(() => gateway.close())

const numberOf = (value: number | string, observedAt?: string) => ({
  type: 'Property',
  value,
  ...(observedAt === undefined ? {} : { observedAt }),
})

/** Compares the responses of both paths; returns them. */
async function bothWays(
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ReturnType<HttpGateway['get']> {
  const before = await gateway.get(path, { ...headers, ...long })
  // Twice, so that cached prepared queries are used, too.
  const plain = [await gateway.get(path, headers), await gateway.get(path, headers)]
  const expected = await gateway.get(path, { ...headers, ...long })
  // Expired entities were removed meanwhile.
  if (before.text !== expected.text) return bothWays(path, headers)
  for (const { status, text, headers: told } of plain) {
    expect([status, text]).toEqual([expected.status, expected.text])
    expect({ ...told, date: '' }).toEqual({ ...expected.headers, date: '' })
  }
  return expected
}

const looks = [
  `${entities}/urn:r:1`,
  `${entities}/urn:r:1?options=keyValues`,
  `${entities}/urn:r:1?options=sysAttrs`,
  `${entities}/urn:r:1?attrs=b`,
  `${entities}/urn:r:1?type=Room`,
  `${entities}/urn:r:1?join=inline`,
  `${entities}/urn:r:1/`,
  `${entities}/urn:r:9`,
  `${entities}/..`,
  `${entities}?type=Room`,
  `${entities}?type=Room&limit=2`,
  `${entities}?type=Room&limit=2&offset=1&options=sysAttrs`,
  `${entities}?type=Room&count=true&pick=id,b`,
  `${entities}?type=Shed`,
  `${entities}?q=a%3E1`,
  `${entities}?q=a>1&orderBy=a`,
  `${entities}?type=Room&limit=2&pageKey=1`,
  `${entities}?type=Room&limit=x`,
  `${entities}?type=Room&nothing=1`,
  entities,
]
const asked = [{}, { Accept: 'application/ld+json' }, { 'NGSILD-Tenant': 'north' }, { 'If-None-Match': '*' }]

describe('a plain read', () => {
  const writes: readonly (readonly [string, string, string, unknown])[] = [
    ['created', 'POST', entities, { id: 'urn:r:1', type: 'Room', a: numberOf(1), b: numberOf('größer') }],
    [
      'created in a batch',
      'POST',
      '/ngsi-ld/v1/entityOperations/create',
      [
        { id: 'urn:r:2', type: 'Room', a: numberOf(5, '2026-01-01T00:00:00Z') },
        { id: 'urn:r:3', type: 'Room', a: numberOf(7) },
      ],
    ],
    ['patched', 'PATCH', `${entities}/urn:r:1/attrs`, { a: numberOf(2) }],
    ['observed', 'PATCH', `${entities}/urn:r:2/attrs`, { a: numberOf(6, '2026-01-02T00:00:00Z') }],
    ['of one more type', 'POST', `${entities}/urn:r:3/attrs`, { type: ['Room', 'Shed'], a: numberOf(8) }],
    [
      'replaced by another type',
      'PUT',
      `${entities}/urn:r:2`,
      { id: 'urn:r:2', type: 'Shed', a: numberOf(3) },
    ],
    ['deleted', 'DELETE', `${entities}/urn:r:3`, undefined],
    ['created again', 'POST', entities, { id: 'urn:r:3', type: 'Room', a: numberOf(4) }],
    ['deleted in a batch', 'POST', '/ngsi-ld/v1/entityOperations/delete', ['urn:r:2', 'urn:r:3']],
    [
      'over soon',
      'PATCH',
      `${entities}/urn:r:1`,
      { a: { ...numberOf(9), expiresAt: '2026-01-01T00:00:00Z' } },
    ],
  ]

  it.each(writes)(
    'returns the same as the full route after entities were %s',
    async (_, method, path, body) => {
      for (const headers of [{}, { 'NGSILD-Tenant': 'north' }]) {
        const { status } =
          body === undefined
            ? await gateway.ask(method, path, { headers })
            : await gateway.send(method, path, body, headers)
        expect(status).toBeLessThan(300)
      }
      for (const look of looks) for (const headers of asked) await bothWays(look, headers)
    },
  )

  it('lists the entities that have the type now, whatever was listed before', async () => {
    const rooms = async (): Promise<string[]> => {
      const ids: string[] = []
      for (const offset of [0, 2, 4]) {
        const page = await gateway.get(`${entities}?type=Hall&limit=2&offset=${offset}`)
        ids.push(...(page.json() as readonly { id: string }[]).map(({ id }) => id))
      }
      return ids
    }
    const create = (i: number, type = 'Hall') => gateway.send('POST', entities, { id: `urn:h:${i}`, type })
    expect(await rooms()).toEqual([])
    for (const i of [1, 2, 3]) {
      await create(i)
      expect(await rooms()).toEqual([1, 2, 3].slice(0, i).map((n) => `urn:h:${n}`))
    }
    await create(4, 'Hut')
    await gateway.ask('DELETE', `${entities}/urn:h:2`)
    expect(await rooms()).toEqual(['urn:h:1', 'urn:h:3'])
    await gateway.send('PUT', `${entities}/urn:h:4`, { id: 'urn:h:4', type: 'Hall' })
    expect(await rooms()).toEqual(['urn:h:1', 'urn:h:3', 'urn:h:4'])
    await gateway.send('PUT', `${entities}/urn:h:1`, { id: 'urn:h:1', type: 'Hut' })
    expect(await rooms()).toEqual(['urn:h:3', 'urn:h:4'])
  })

  it('returns the same as the full route for ids that end like other paths', async () => {
    for (const id of ['urn:s:1', 'urn:s:1/attrs', 'urn:s:1/', 'urn:s:1/attrs/a', 'http://s.example/1'])
      expect((await gateway.send('POST', entities, { id, type: 'Step' })).status).toBe(201)
    expect((await bothWays(`${entities}/urn:s:1/attrs`)).status).toBe(405)
    expect((await bothWays(`${entities}/urn:s:1/`)).json()).toMatchObject({ id: 'urn:s:1' })
    expect((await bothWays(`${entities}/urn:s:1/attrs/a`)).status).toBe(405)
    expect((await bothWays(`${entities}/http://s.example/1`)).json()).toMatchObject({
      id: 'http://s.example/1',
    })
  })

  it('requires the token if the listener does', async () => {
    const guarded = await startHttpGateway({ token: 'right' })
    try {
      const by = (token: string) => ({ headers: { 'X-Auth-Token': token } })
      const made = { body: { id: 'urn:r:1', type: 'Room' }, headers: { 'Content-Type': 'application/json' } }
      await guarded.ask('POST', entities, { ...made, headers: { ...made.headers, ...by('right').headers } })
      for (const path of [`${entities}/urn:r:1`, `${entities}?type=Room`]) {
        expect((await guarded.get(path)).status).toBe(401)
        expect((await guarded.ask('GET', path, by('wrong'))).status).toBe(401)
        expect((await guarded.ask('GET', path, by('right'))).status).toBe(200)
        expect((await guarded.get(path, { Authorization: 'Bearer right' })).status).toBe(200)
      }
    } finally {
      await guarded.close()
    }
  })

  it('includes context sources as soon as one is registered', async () => {
    const source = {
      id: 'urn:ngsi-ld:ContextSourceRegistration:1',
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Room' }] }],
      endpoint: 'http://127.0.0.1:1',
    }
    await bothWays(`${entities}?type=Room`)
    await gateway.send('POST', '/ngsi-ld/v1/csourceRegistrations', source)
    expect((await gateway.get(`${entities}?type=Room`)).headers['ngsild-warning']).toBeDefined()
    await gateway.ask('DELETE', `/ngsi-ld/v1/csourceRegistrations/${source.id}`)
    expect((await gateway.get(`${entities}?type=Room`)).headers['ngsild-warning']).toBeUndefined()
  })
})

interface Unusual {
  readonly what: string
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
}

const unusual: readonly Unusual[] = [
  { what: 'another method', method: 'HEAD' },
  { what: 'what is not there', url: `${entities}/urn:r:2` },
  { what: 'what is to be decoded', url: `${entities}/urn%3Ar:1` },
  { what: 'other resources', url: `${entities}/urn:r:1/attrs` },
  { what: 'linked entities', url: `${entities}/urn:r:1?join=flat` },
  { what: 'an entity map', url: `${entities}?type=Room&entityMap=true` },
  { what: 'mistakes', url: `${entities}?type=Room&limit=x` },
  { what: 'a context', headers: { link: '<http://x/y>; rel="http://www.w3.org/ns/json-ld#context"' } },
  { what: 'an unknown tenant', headers: { 'ngsild-tenant': 'none' } },
  { what: 'GeoJSON', headers: { accept: 'application/geo+json' } },
  { what: 'a preference', headers: { prefer: 'ngsi-ld=1.3' } },
  { what: 'a snapshot', headers: { 'ngsild-snapshot': 'urn:s:1' } },
  { what: 'a host that is none', headers: { host: 'a b' } },
]

describe('a direct read', () => {
  const { folder, remove } = temporaryFolder()
  let at: OpenBroker
  let direct: ReturnType<typeof createDirectReads>
  beforeAll(async () => {
    // Queries longer than a turn use the full route; on a busy machine, that may be any.
    setLimit('queryTurnMs', 60_000)
    at = await openBroker(folder)
    restoreLimits()
    const core = createCoreContext('1.8')
    direct = createDirectReads(
      {
        broker: at.tenants.broker,
        core,
        reads: createEntityReads(createAnswers({ core })),
        metrics: createMetrics(),
      },
      { defaultMediaType: 'application/json' },
    )
    await at.broker.create({ id: 'urn:r:1', type: 'Room' }, 'http')
  })
  afterAll(async () => {
    await at.close()
    remove()
  })
  const ask = (url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    direct({ method, url, headers: { host: 'a:9090', ...headers } } as unknown as IncomingMessage)

  it.each([
    `${entities}/urn:r:1`,
    `${entities}/urn:r:1?options=sysAttrs`,
    `${entities}?type=Room&limit=20&offset=0`,
  ])('serves %s', (url) => {
    expect(ask(url)).toMatchObject({ status: 200, body: expect.stringContaining('"urn:r:1"') })
  })

  it.each(unusual)('leaves $what to the full route', ({ url = `${entities}/urn:r:1`, headers, method }) => {
    expect(ask(url, headers, method)).toBeUndefined()
  })
})
