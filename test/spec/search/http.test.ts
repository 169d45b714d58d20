/**
 * GraphQL over HTTP with standard clients, and rejected documents: too large, too deep, too expensive or
 * cyclic.
 */
import { getIntrospectionQuery } from 'graphql'
import { GraphQLClient } from 'graphql-request'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { workTime } from '#test/kit/calm-time.ts'
import {
  type Answered,
  fieldEntities,
  platformOf,
  type SearchSite,
  startSearchSite,
} from '#test/kit/search-site.ts'

let site: SearchSite
let endpoint: string

beforeAll(async () => {
  site = await startSearchSite({ SELVEDGE_SEARCH_VERSION: 'abc123', SELVEDGE_SEARCH_CORS: 'true' })
  endpoint = `${site.url}/search/graphql`
  await site.create([
    platformOf('d0', ['Temperature'], [10, 50]),
    ...fieldEntities({ device: 'd0', field: 'Temperature', value: 21.5 }),
  ])
})

afterAll(() => site.close())

const post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(endpoint, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

describe('the endpoint', () => {
  it('serves graphql-request', async () => {
    const client = new GraphQLClient(endpoint)
    const query = 'query Named($label: String) { platforms(label: $label) { label hosts { id } } }'
    expect(await client.request(query, { label: 'platform d0' })).toEqual({
      platforms: [{ label: 'platform d0', hosts: [{ id: 'urn:ngsi-ld:Sensor:d0:Temperature' }] }],
    })
    await expect(client.request('{ platforms { nothing } }')).rejects.toThrow('Cannot query field "nothing"')
  })

  it('serves GET with query, variables and operationName', async () => {
    const query = 'query A { platforms { id } } query B($id: String) { platforms(id: $id) { label } }'
    const search = new URLSearchParams({
      query,
      operationName: 'B',
      variables: JSON.stringify({ id: 'urn:ngsi-ld:Platform:d0' }),
    })
    const answer = await fetch(`${endpoint}?${search}`)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(await answer.json()).toMatchObject({ data: { platforms: [{ label: 'platform d0' }] } })
  })

  it('answers in the accepted media type; errors have status 200 in application/json', async () => {
    const media = 'application/graphql-response+json'
    const modern = await post({ query: '{ platforms { id } }' }, { Accept: media })
    expect([modern.status, modern.headers.get('content-type')]).toEqual([200, `${media}; charset=utf-8`])
    const wrong = await post({ query: '{ nonsense }' }, { Accept: media })
    expect(wrong.status).toBe(400)
    const plain = await post({ query: '{ nonsense }' })
    expect([plain.status, plain.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ])
    const other = await post({ query: '{ platforms { id } }' }, { Accept: 'text/html' })
    expect(other.status).toBe(406)
  })

  it('serves HEAD as GET, without the body', async () => {
    const head = (query: string, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${endpoint}?query=${encodeURIComponent(query)}`, { method: 'HEAD', headers })
    const answer = await head('{ platforms { id } }')
    expect([answer.status, await answer.text()]).toEqual([200, ''])
    expect(answer.headers.get('content-type')).toContain('application/json')
    expect((await head('{ nothing }', { Accept: 'application/graphql-response+json' })).status).toBe(400)
  })

  it('returns the version label as a JSON string', async () => {
    expect(await (await fetch(`${site.url}/search/version`)).json()).toBe('abc123')
  })

  it('permits requests from pages of other origins', async () => {
    const answer = await fetch(endpoint, {
      method: 'OPTIONS',
      headers: { Origin: 'https://elsewhere.example', 'Access-Control-Request-Method': 'POST' },
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toContain('Content-Type')
    expect(answer.headers.get('access-control-allow-methods')).toBe('GET, POST')
    expect(answer.headers.get('access-control-max-age')).toBe('600')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  it.each([
    ['no JSON', '{', 400, 'Unparsable JSON body'],
    ['no query', {}, 400, 'Missing query'],
    ['a list of operations', [{ query: '{ platforms { id } }' }], 400, 'one operation per request'],
    [
      'variables that are a list',
      { query: '{ platforms { id } }', variables: [1] },
      400,
      'Invalid variables',
    ],
  ])('refuses %s', async (_what, body, status, reason) => {
    const answer = await post(body)
    expect(answer.status).toBe(status)
    const { errors } = (await answer.json()) as Answered
    expect(errors?.[0]?.message).toContain(reason)
  })

  it.each([
    [
      'graphql',
      { 'Content-Type': 'text/plain' },
      '{ platforms { id } }',
      415,
      'Content-Type: application/json',
    ],
    ['graphql', { Accept: 'text/event-stream' }, '{ platforms { id } }', 406, 'graphql/stream'],
    ['graphql', {}, 'subscription { platforms { id } }', 200, 'graphql/stream'],
    [
      'graphql/stream',
      { 'Content-Type': 'text/plain', Accept: 'text/event-stream' },
      '{ platforms { id } }',
      415,
      'Content-Type: application/json',
    ],
    [
      'graphql/stream',
      { Accept: '*/*' },
      'subscription { platforms { id } }',
      406,
      'Accept: text/event-stream',
    ],
  ])('explains the correct request, at %s with %o', async (path, headers, query, status, what) => {
    const answer = await fetch(`${site.url}/search/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    })
    expect(answer.status).toBe(status)
    const { errors } = (await answer.json()) as Answered
    expect(errors?.[0]?.message).toContain(what)
  })

  it('rejects other methods, media types and paths', async () => {
    expect((await fetch(endpoint, { method: 'DELETE' })).status).toBe(405)
    expect((await fetch(`${endpoint}/stream`, { method: 'PUT' })).status).toBe(405)
    expect((await post('query={a}', { 'Content-Type': 'application/x-www-form-urlencoded' })).status).toBe(
      415,
    )
    expect((await fetch(`${site.url}/search/nothing`)).status).toBe(404)
  })
})

describe('a query that is too expensive', () => {
  const refusal = async (query: string, variables?: object): Promise<string> => {
    const worked = workTime()
    const { errors, data } = await site.ask(query, variables)
    expect(data).toBeUndefined()
    // Rejections take little time.
    expect(worked()).toBeLessThan(5000)
    return errors?.map(({ message }) => message).join('; ') ?? ''
  }
  const nested = (levels: number): string =>
    levels === 0 ? 'id' : `isHostedBy { hosts { ${nested(levels - 1)} } }`

  it('is rejected for its depth', async () => {
    expect(await refusal(`{ sensors { ${nested(8)} } }`)).toContain('entities; at most 12')
  })

  it('is rejected for its maximum size, by literals and by variables', async () => {
    expect(await refusal(`{ sensors(limit: 10000) { ${nested(2)} } }`)).toContain('may return')
    const query = `query ($n: Int) { sensors(limit: $n) { ${nested(2)} } }`
    expect(await refusal(query, { n: 10_000 })).toContain('may return')
    expect((await site.ask(query, { n: 5 })).errors).toBeUndefined()
  })

  it('is rejected for the default of a variable as for the same literal', async () => {
    const query = `query ($n: Int = 10000) { sensors(limit: $n) { ${nested(2)} } }`
    expect(await refusal(query)).toContain('objects; at most 100000')
    expect((await site.ask(query, { n: 5 })).errors).toBeUndefined()
    expect((await site.ask(query, { n: 'many' })).errors?.[0]?.message).toContain('"$n" has invalid value')
  })

  it('is rejected for the number of values, also with aliases', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `a${index}: id`).join(' ')
    const refused = 'may return 600001 values; at most 200000'
    expect(await refusal(`{ streams(limit: 2000) { ${names} } }`)).toContain(refused)
    expect(await refusal(`{ streams(limit: 2000) { ...A } } fragment A on IoTStream { ${names} }`)).toContain(
      refused,
    )
    const edges = `{ streamsConnection(first: 2000) { edges { node { ${names} } } } }`
    expect(await refusal(edges)).toContain('values; at most 200000')
    expect((await site.ask(`{ streams(limit: 20) { ${names} } }`)).errors).toBeUndefined()
  })

  it('is rejected for a thousand aliases', async () => {
    const aliases = Array.from({ length: 999 }, (_, index) => `a${index}: sensors(limit: 200) { id }`)
    expect(await refusal(`{ ${aliases.join(' ')} }`)).toMatch(/may return|token/)
    const names = Array.from({ length: 3000 }, (_, index) => `a${index}: id`)
    expect(await refusal(`{ sensors { ${names.join(' ')} } }`)).toContain('token')
  })

  it('is rejected for fragments that are cyclic or expand exponentially', async () => {
    const cyclic = '{ sensors { ...A } } fragment A on Sensor { isHostedBy { hosts { ...A } } }'
    expect(await refusal(cyclic)).toContain('Cannot spread fragment "A" within itself')
    const each = Array.from(
      { length: 11 },
      (_, level) =>
        `fragment F${level} on ObservableProperty { ${level === 10 ? 'id' : `isObservedBy { a: observes { ...F${level + 1} } b: observes { ...F${level + 1} } }`} }`,
    )
    expect(await refusal(`{ observableProperties { ...F0 } } ${each.join('\n')}`)).toMatch(/nests|may return/)
  })

  it('is rejected for its size before it is parsed', async () => {
    expect(await refusal(`{ sensors { id } } #${'x'.repeat(70_000)}`)).toContain('bytes; at most 65536')
    expect(await refusal(`{ ${'sensors { id } '.repeat(1500)} }`)).toContain('tokens')
  })

  it('is rejected if it has several operations and names none', async () => {
    expect(await refusal('query A { sensors { id } } query B { sensors { id } }')).toContain('operationName')
  })

  it('gets suggestions for misspelled names', async () => {
    expect(await refusal('{ sensorz { id } }')).toContain('Did you mean "sensors"')
    expect(await refusal('{ sensors(labl: "x") { id } }')).toContain('Did you mean "label"')
  })

  it('stops at the limit of requests per operation', async () => {
    const aliases = Array.from({ length: 450 }, (_, index) => `a${index}: sensors { id }`)
    const { errors } = await site.ask(`{ ${aliases.join(' ')} }`)
    expect(errors?.[0]?.message).toContain('more than 400 requests')
  })
})

describe('a WebSocket from a page of another origin', () => {
  const opened = (url: string, origin?: string): Promise<string> =>
    new Promise((resolve) => {
      const at = `${url.replace('http', 'ws')}/search/graphql`
      const socket = new WebSocket(at, 'graphql-transport-ws', origin === undefined ? {} : { origin })
      socket.on('open', () => {
        socket.close()
        resolve('open')
      })
      socket.on('error', ({ message }) => resolve(message))
    })

  it('is accepted or rejected like HTTP requests from that page', async () => {
    expect(await opened(site.url, 'https://elsewhere.example')).toBe('open')
    const closed = await startSearchSite()
    expect(await opened(closed.url, 'https://elsewhere.example')).toContain('403')
    expect(await opened(closed.url, 'null')).toContain('403')
    expect(await opened(closed.url, closed.url.replace(/:\d+$/, ':1'))).toContain('403')
    expect(await opened(closed.url, closed.url)).toBe('open')
    expect(await opened(closed.url)).toBe('open')
    await closed.close()
  })
})

describe('introspection', () => {
  it('can be disabled, which also disables suggestions', async () => {
    const closed = await startSearchSite({
      SELVEDGE_SEARCH_INTROSPECTION: 'false',
    })
    const { errors } = await closed.ask('{ __schema { types { name } } }')
    expect(errors?.[0]?.message).toContain('introspection')
    const wrong = await closed.ask('{ sensorz { id } }')
    expect(wrong.errors?.[0]?.message).not.toContain('Did you mean')
    const answer = await fetch(`${closed.url}/search/version`)
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    await closed.close()
  })

  it('is limited when enabled', async () => {
    const deep =
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }'
    expect((await site.ask(deep)).errors?.[0]?.message).toContain('introspection depth')
    const whole = getIntrospectionQuery({ inputValueDeprecation: true, specifiedByUrl: true })
    expect((await site.ask(whole)).errors).toBeUndefined()
    const [, shape = ''] = /__schema (\{.*\})\s*\}\s*fragment FullType/s.exec(whole) ?? []
    const many = Array.from({ length: 60 }, (_, index) => `a${index}: __schema ${shape}`)
    const all = whole.replace(`__schema ${shape}`, many.join(' '))
    const { errors, data } = await site.ask(all)
    expect(data).toBeUndefined()
    expect(errors?.[0]?.message).toContain('values; at most 200000')
  })
})
