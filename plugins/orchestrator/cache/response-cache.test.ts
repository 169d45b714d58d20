/** The cache of responses, before brokers that count their reads. */
import { afterEach, describe, expect, it } from 'vitest'
import type { ForwardPort } from '#contract'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { environment } from '#test/kit/plugins.ts'
import { createMemoryStore } from './memory-store.ts'
import { createResponseCache } from './response-cache.ts'

const entities = '/ngsi-ld/v1/entities'

/** A broker whose responses count up, and a cache before it. */
function open({ isOwn = false, remoteMs = 2000 } = {}) {
  const state = { now: 10_000, reads: 0, change: 1 as number | undefined, until: Number.POSITIVE_INFINITY }
  const answers = {
    headers: {} as Record<string, string>,
    body: undefined as string | undefined,
    during: () => {},
  }
  const broker: ForwardPort = {
    address: 'http://broker',
    ...(isOwn && {
      validity: () => (state.change === undefined ? undefined : { change: state.change, until: state.until }),
    }),
    async forward() {
      const reads = ++state.reads
      answers.during()
      return new Response(answers.body ?? `[${reads}]`, {
        headers: { 'Content-Type': 'application/json', ...answers.headers },
      })
    },
  }
  const memory = createMemoryStore()
  const cache = createResponseCache({ broker, memory, copies: undefined, now: () => state.now }, { remoteMs })
  const direct = (target: string, headers: Record<string, string> = {}) =>
    cache.direct({ method: 'GET', target, headers: new Headers(headers) })
  const get = async (target = `${entities}?type=A`, headers: Record<string, string> = {}) => {
    const request = new Request(`http://x${target}`, { headers })
    const response = await cache.respond(
      { request, environment: environment() },
      { method: 'GET', target, headers: request.headers },
    )
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { state, answers, cache, get, direct, memory }
}

afterEach(restoreLimits)

describe('a cached response of this gateway', () => {
  it('is used until something changes', async () => {
    const { get, state } = open({ isOwn: true })
    expect((await get()).text).toBe('[1]')
    state.now += 3000
    const hit = await get()
    expect([hit.text, hit.headers.get('age'), hit.headers.get('cache-status')]).toEqual([
      '[1]',
      '3',
      'selvedge-orchestrator; hit',
    ])
    state.now += 1
    expect((await get()).headers.get('age')).toBe('4')
    state.change!++
    expect((await get()).text).toBe('[2]')
  })

  it('is not used after something expires, nor stored if something changes during the read', async () => {
    const { get, state, answers } = open({ isOwn: true })
    state.until = 10_500
    await get()
    state.now = 10_500
    expect((await get()).text).toBe('[2]')
    state.until = Number.POSITIVE_INFINITY
    answers.during = () => void state.change!++
    expect((await get()).text).toBe('[3]')
    answers.during = () => {}
    expect((await get()).text).toBe('[4]')
  })

  it('is not stored for a tenant with entities elsewhere', async () => {
    const { get, state } = open({ isOwn: true })
    state.change = undefined
    await get()
    expect((await get()).text).toBe('[2]')
  })
})

describe('a cached response of another broker', () => {
  it('is used for its time, or the shorter one that the broker states', async () => {
    const { get, state, answers } = open()
    await get()
    state.now += 1999
    expect((await get()).text).toBe('[1]')
    state.now += 1
    answers.headers = { 'Cache-Control': 'public, max-age=1' }
    expect((await get()).text).toBe('[2]')
    state.now += 1000
    expect((await get()).text).toBe('[3]')
  })

  it('adds its age to that which the broker stated', async () => {
    const { get, state, answers } = open()
    answers.headers = { Age: '100', 'Cache-Control': 'max-age=102' }
    await get()
    state.now += 1000
    expect((await get()).headers.get('age')).toBe('101')
  })

  it('is not stored under a tenant that the broker does not receive', async () => {
    const { get } = open()
    await get(`${entities}?type=A`, { 'NGSILD-Tenant': 'city', Connection: 'ngsild-tenant' })
    expect((await get(`${entities}?type=A`, { 'NGSILD-Tenant': 'city' })).text).toBe('[2]')
  })

  it('is not used after a client wrote through the proxy', async () => {
    const { get, cache, state } = open()
    await get()
    cache.noteWrite('')
    state.now++
    expect((await get()).text).toBe('[2]')
    cache.noteWrite('city')
    state.now++
    expect((await get()).text).toBe('[2]')
  })

  it('is not used if the cache is off', async () => {
    const { get } = open({ remoteMs: 0 })
    await get()
    expect((await get()).text).toBe('[2]')
  })

  it.each([
    ['no-store', { 'Cache-Control': 'no-store' }],
    ['no-cache', { 'Cache-Control': 'no-cache' }],
    ['private', { 'Cache-Control': 'private, max-age=9' }],
    ['an own cookie', { 'Set-Cookie': 'a=1' }],
    ['another choosing header', { Vary: 'Accept, X-Other' }],
    ['a warning', { 'NGSILD-Warning': '199 x "y"' }],
  ])('is not stored with %s', async (_, headers) => {
    const { get, answers } = open()
    answers.headers = headers
    await get()
    expect((await get()).text).toBe('[2]')
  })
})

describe('a direct response', () => {
  const target = `${entities}?type=A`

  it('equals that of a full request, and is given while it is valid', async () => {
    const { get, direct, state } = open({ isOwn: true })
    expect(direct(target)).toBeUndefined()
    await get()
    const full = await get()
    const reply = direct(target)!
    expect([reply.status, String(reply.body), reply.headers]).toEqual([
      full.status,
      full.text,
      Object.fromEntries(full.headers),
    ])
    const tag = { 'If-None-Match': reply.headers['etag']! }
    const known = await get(target, tag)
    expect(direct(target, tag)).toEqual({
      status: 304,
      headers: Object.fromEntries(known.headers),
      body: null,
    })
    for (const headers of [
      { 'Cache-Control': 'no-cache' },
      { 'NGSILD-Tenant': 'city' },
      { Authorization: 'x' },
    ])
      expect(direct(target, headers as unknown as Record<string, string>)).toBeUndefined()
    state.change!++
    expect(direct(target)).toBeUndefined()
  })

  it('is the stored buffer itself, with a length that the writer adds', async () => {
    const { get, direct, answers } = open()
    answers.headers = { 'Content-Length': '3' }
    await get()
    const [one, two] = [direct(target)!, direct(target)!]
    expect(one.body).toBe(two.body)
    expect(one.headers).not.toHaveProperty('content-length')
  })
})

describe('a cached response', () => {
  it.each([
    ['tenant', { 'NGSILD-Tenant': 'city' }],
    ['token', { Authorization: 'Bearer other' }],
    ['X-Auth-Token', { 'X-Auth-Token': 'other' }],
    ['representation', { Accept: 'application/geo+json' }],
    ['@context', { Link: '<http://c>; rel="http://www.w3.org/ns/json-ld#context"' }],
    ['cookie', { Cookie: 'a=1' }],
    ['language', { 'Accept-Language': 'de' }],
    ['encoding', { 'Accept-Encoding': 'br' }],
    ['preference', { Prefer: 'ngsi-ld=1.3' }],
  ])('is not sent to a client with another %s', async (_, headers) => {
    const { get } = open()
    await get()
    expect((await get(`${entities}?type=A`, headers)).text).toBe('[2]')
    expect((await get()).text).toBe('[1]')
  })

  it.each([
    ['no-cache', { 'Cache-Control': 'no-cache' }],
    ['max-age', { 'Cache-Control': 'max-age=0' }],
    ['a Via chain', { Via: '1.1 x' }],
    ['a snapshot', { 'NGSILD-Snapshot': 'urn:x' }],
    ['a range', { Range: 'bytes=0-1' }],
    ['a header that only this connection has', { Connection: 'Accept, NGSILD-Tenant' }],
  ])('is not used for a request with %s', async (_, headers) => {
    const { get } = open()
    await get()
    expect((await get(`${entities}?type=A`, headers)).text).toBe('[2]')
  })

  it('has an entity tag that gives 304 to a client that has it', async () => {
    const { get } = open()
    const tag = (await get()).headers.get('etag')!
    expect(tag).toMatch(/^W\/"[\w-]{22}"$/)
    const known = await get(`${entities}?type=A`, { 'If-None-Match': `"a", ${tag}` })
    expect([known.status, known.text, known.headers.get('etag')]).toEqual([304, '', tag])
    expect((await get(`${entities}?type=A`, { 'If-None-Match': '"a"' })).status).toBe(200)
  })

  it('is stored up to a size; a larger one arrives whole', async () => {
    setLimit('orchestratorCachedBytes', 10)
    const { get, answers, memory } = open()
    answers.body = 'x'.repeat(1000)
    expect((await get()).text).toBe(answers.body)
    expect(memory.status()).toEqual({ responses: 0, bytes: 0 })
  })

  it('is evicted if the others need its place', async () => {
    setLimit('orchestratorCacheBytes', 2000)
    const { get, memory } = open()
    for (const type of 'ABCDEFG') await get(`${entities}?type=${type}`)
    expect(memory.status().bytes).toBeLessThanOrEqual(2000)
    expect((await get(`${entities}?type=G`)).text).toBe('[7]')
    expect((await get(`${entities}?type=A`)).text).toBe('[8]')
  })
})
