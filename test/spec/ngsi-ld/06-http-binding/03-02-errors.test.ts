/** Errors of the HTTP binding [NGSI-LD 5.5.2, 5.5.3, 6.3.2, 6.3.3]: status, body, and headers beside them. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const entities = '/ngsi-ld/v1/entities'

describe('every error', () => {
  it.each([
    ['GET', '/nowhere', 404],
    ['GET', '/ngsi-ld/v1', 404],
    ['GET', `${entities}/urn:x:1`, 404],
    ['PUT', entities, 405],
    ['GET', `${entities}/%E0%A4%A`, 400],
  ])('%s %s shall have a JSON body with type, title, detail and status', async (method, path, status) => {
    const answer = await gateway.ask(method, path)
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.headers['link']).toBeUndefined()
    expect(answer.json()).toEqual({
      type: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
      status,
    })
  })
})

describe('a method that a path does not support', () => {
  it.each([
    [entities, 'GET, POST, DELETE, HEAD, OPTIONS'],
    [`${entities}/urn:x:1`, 'GET, PATCH, PUT, DELETE, HEAD, OPTIONS'],
    [`${entities}/urn:x:1/attrs/`, 'POST, PATCH, OPTIONS'],
    [`${entities}/urn:x:1/attrs/a`, 'PATCH, PUT, DELETE, OPTIONS'],
    ['/ngsi-ld/v1/entityOperations/upsert', 'POST, OPTIONS'],
    ['/ngsi-ld/v1/subscriptions', 'GET, POST, HEAD, OPTIONS'],
    ['/ngsi-ld/v1/subscriptions/urn:x:1', 'GET, PATCH, DELETE, HEAD, OPTIONS'],
    ['/ngsi-ld/v1/temporal/entities/urn:x:1', 'GET, DELETE, HEAD, OPTIONS'],
    ['/ngsi-ld/v1/snapshots', 'GET, POST, DELETE, HEAD, OPTIONS'],
    ['/senml', 'POST, OPTIONS'],
    ['/health/live', 'GET, HEAD, OPTIONS'],
  ])('shall be 405 at %s with Allow', async (path, allow) => {
    const refused = await gateway.ask(allow.includes('PUT') ? 'POST' : 'PUT', path)
    expect([refused.status, refused.headers['allow']]).toEqual([405, allow])
    const asked = await gateway.ask('OPTIONS', path)
    expect([asked.status, asked.headers['allow'], asked.text]).toEqual([204, allow, ''])
  })

  it('shall be 405 also at a list with a trailing slash', async () => {
    for (const path of ['/ngsi-ld/v1/subscriptions', '/ngsi-ld/v1/temporal/entities', entities]) {
      for (const method of ['PATCH', 'PUT']) {
        const [refused, slashed] = [await gateway.ask(method, path), await gateway.ask(method, `${path}/`)]
        expect([path, slashed.status, slashed.headers['allow']]).toEqual([
          path,
          405,
          refused.headers['allow'],
        ])
      }
    }
  })

  it('shall be 405 or 400 for every method name', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'SEARCH', 'LOCK']) {
      expect([method, (await gateway.ask(method, entities)).status]).toEqual([method, 405])
    }
  })
})

it('HEAD shall answer as GET does, without a body', async () => {
  await gateway.send('POST', entities, { id: 'urn:x:head', type: 'T' })
  const head = await gateway.ask('HEAD', `${entities}/urn:x:head`)
  expect([head.status, head.headers['content-type'], head.text]).toEqual([200, 'application/json', ''])
  expect((await gateway.ask('HEAD', `${entities}/urn:x:none`)).status).toBe(404)
})

describe('a body of an unsupported media type', () => {
  it.each([
    undefined,
    'text/plain',
    'application/xml',
    'application/json; charset=latin1',
    'application/merge-patch+json',
    'json',
  ])('shall be 415 for %s', async (type) => {
    const headers = type === undefined ? {} : { 'Content-Type': type }
    const answer = await gateway.ask('POST', entities, { body: '{"id":"urn:x:1","type":"T"}', headers })
    expect(answer.status).toBe(415)
    expect(answer.headers['accept']).toContain('application/json')
    expect(answer.headers['accept']).toContain('application/ld+json')
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.json()).toMatchObject({
      status: 415,
      detail: expect.stringMatching(/Content-Type .*; send application\/json or application\/ld\+json$/),
    })
  })
})

it('a request without a length shall be 411 if a body is required, also with chunks', async () => {
  const ask = async (path: string, more: readonly string[] = [], body = ''): Promise<string> => {
    const socket = connect(gateway.port, '127.0.0.1')
    const lines = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
      'Content-Type: application/json',
      ...more,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
    return text(socket)
  }
  const chunk = `1d\r\n{"id":"urn:x:1","type":"Room"}\r\n0\r\n\r\n`
  expect(await ask(entities, ['Transfer-Encoding: chunked'], chunk)).toMatch(/^HTTP\/1.1 411/)
  const refused = await ask(entities)
  expect(refused).toMatch(/^HTTP\/1.1 411 Length Required\r\n/)
  expect(refused).not.toMatch(/content-type/i)
  expect(refused.endsWith('\r\n\r\n')).toBe(true)
  expect(await ask('/ngsi-ld/v1/jsonldContexts')).toMatch(/^HTTP\/1.1 411/)
  expect(await ask('/ngsi-ld/v1/snapshots/urn:x:1/clone')).toMatch(/^HTTP\/1.1 404/)
})

it('a gzip body shall be read, one in another content coding shall be 415 with the supported codings', async () => {
  const create = (body: unknown, coding: string) =>
    gateway.ask('POST', entities, {
      body,
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': coding },
    })
  const refused = await create(brotliCompressSync('{"id":"urn:x:br","type":"T"}'), 'br')
  expect([refused.status, refused.headers['accept-encoding']]).toEqual([415, 'gzip, identity'])
  expect((await create({ id: 'urn:x:plain', type: 'T' }, 'Identity')).status).toBe(201)
  const packed = gzipSync('{"id":"urn:x:gzip","type":"T"}')
  expect((await create(packed, 'GZip')).status).toBe(201)
  expect((await gateway.get(`${entities}/urn:x:gzip`)).json()).toEqual({ id: 'urn:x:gzip', type: 'T' })
  for (const broken of [packed.subarray(0, packed.length - 9), Buffer.from('{"id":"urn:x:no","type":"T"}')])
    expect((await create(broken, 'gzip')).status).toBe(400)
})

it('a small body that unzips to more than the limit shall be 413, long before it is unzipped', async () => {
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
  const layer = gzipSync(Buffer.alloc(200 * 1024 * 1024))
  const before = process.memoryUsage().rss
  const answer = await gateway.ask('POST', entities, { body: layer, headers })
  expect(answer.status).toBe(413)
  expect(process.memoryUsage().rss - before).toBeLessThan(120 * 1024 * 1024)
  expect((await gateway.get(`${entities}?type=T&limit=1`)).status).toBe(200)
})

it('a byte order mark before a body shall be accepted', async () => {
  const body = '\ufeff{"id":"urn:x:bom","type":"T"}'
  const headers = { 'Content-Type': 'application/json' }
  expect((await gateway.ask('POST', entities, { body, headers })).status).toBe(201)
})

it('a body larger than allowed shall be 413, with or without a length, and the gateway continues', async () => {
  const headers = { 'Content-Type': 'application/json' }
  const large = Buffer.alloc(9 * 1024 * 1024, ' ')
  const announced = await gateway
    .ask('POST', entities, { body: large, headers })
    .catch((error: Error) => error)
  // The connection may be closed while the client is still sending; a response that arrives is 413.
  if (!(announced instanceof Error)) expect(announced.status).toBe(413)
  const chunked = await gateway
    .ask('POST', entities, {
      body: large,
      headers: { ...headers, 'Transfer-Encoding': 'chunked', 'Content-Length': undefined as never },
    })
    .catch((error: Error) => error)
  if (!(chunked instanceof Error)) expect(chunked.status).toBe(411)
  expect((await gateway.get('/health/live')).status).toBe(200)
})

it('a too large body with Expect: 100-continue shall be refused before it is sent', async () => {
  const answer = await gateway
    .ask('POST', entities, {
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': String(50 * 1024 * 1024),
        Expect: '100-continue',
      },
    })
    .catch((error: Error) => error)
  expect(answer).toHaveProperty('status', 413)
})

it('a body of legal size with Expect: 100-continue shall be sent', async () => {
  const socket = connect(gateway.port, '127.0.0.1')
  const body = JSON.stringify({ id: 'urn:permitted:1', type: 'T' })
  const head = ['POST /ngsi-ld/v1/entities HTTP/1.1', 'Host: localhost', 'Content-Type: application/json']
  socket.write([...head, `Content-Length: ${body.length}`, 'Expect: 100-continue', '', ''].join('\r\n'))
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 100 /)
  socket.write(body)
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 201 /)
  socket.destroy()
})

it('an internal error shall be 500 with an id under which the log has the details', async () => {
  const broken = gatewayWithBrokenIntake
  const answer = await broken.ask('POST', '/senml', {
    body: '[]',
    headers: { 'Content-Type': 'application/senml+json' },
  })
  expect(answer.status).toBe(500)
  const { type, detail, instance } = answer.json() as { type: string; detail: string; instance: string }
  expect(type).toBe('https://uri.etsi.org/ngsi-ld/errors/InternalError')
  expect(answer.text).not.toContain('secret cause')
  const id = instance.replace('urn:uuid:', '')
  expect(detail).toContain(id)
  const line = broken.logLines.find((text) => text.includes(id))!
  expect(JSON.parse(line)).toMatchObject({
    level: 'error',
    event: 'gateway.internal-error',
    error: { message: 'secret cause' },
  })
})

const gatewayWithBrokenIntake = gatewayOfFile({
  takeFrame: () => Promise.reject(new TypeError('secret cause')),
})

describe('a @context', () => {
  const link = (url: string) => ({
    Link: `<${url}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`,
  })
  it('in a body of application/json shall be 400', async () => {
    const body = {
      '@context': 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context.jsonld',
      id: 'urn:x:1',
      type: 'T',
    }
    const answer = await gateway.send('POST', entities, body, { 'Content-Type': 'application/json' })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('@context')])
  })
  // The orchestrator adds the platform context to an entity without one.
  const members = process.env['SELVEDGE_SPEC_THROUGH'] ? [{ '@context': null }] : [{}, { '@context': null }]
  it.each(members)('missing in a body of application/ld+json shall be 400 (%j)', async (given) => {
    const answer = await gateway.send(
      'POST',
      entities,
      { id: 'urn:x:1', type: 'T', ...given },
      { 'Content-Type': 'application/ld+json' },
    )
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('@context')])
  })
  it('by Link beside a body of application/ld+json shall be 400', async () => {
    const body = { '@context': {}, id: 'urn:x:1', type: 'T' }
    expect((await gateway.send('POST', entities, body, link('https://a.example/c.jsonld'))).status).toBe(400)
  })
  it.each([7, 'no address', { x: 7 }, [[['ftp://a.example/']]], { '@import': 'https://a.example/' }])(
    'that is none (%j) shall be 400',
    async (context) => {
      expect(
        (await gateway.send('POST', entities, { '@context': context, id: 'urn:x:1', type: 'T' })).status,
      ).toBe(400)
    },
  )
  it('that is unavailable shall be 504 LdContextNotAvailable, 503 before 1.8', async () => {
    const nowhere = 'http://127.0.0.1:9/context.jsonld'
    const answer = await gateway.send('POST', entities, {
      '@context': nowhere,
      id: 'urn:x:1',
      type: 'T',
      a: property(1),
    })
    expect(answer.status).toBe(504)
    expect(answer.json()).toHaveProperty('type', 'https://uri.etsi.org/ngsi-ld/errors/LdContextNotAvailable')
    expect((await gateway.get(`${entities}?type=T`, link(nowhere))).status).toBe(504)
    expect((await old.get(`${entities}?type=T`, link(nowhere))).status).toBe(503)
  })
})

const old = gatewayOfFile({ profile: '1.1.2' })

it.each([
  ['NGSILD-Snapshot', '/ngsi-ld/v1/subscriptions'],
  ['NGSILD-EntityMap', '/ngsi-ld/v1/types'],
])('%s shall be refused, not ignored, by operations without it', async (name, path) => {
  const answer = await gateway.get(path, { [name]: 'urn:x:1' })
  expect([answer.status, answer.text]).toEqual([422, expect.stringContaining('OperationNotSupported')])
})
