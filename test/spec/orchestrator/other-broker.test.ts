/** The proxy of the orchestrator in front of another broker: what it sees, and what clients get. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { otherBrokerOfFile } from '#test/kit/other-broker.ts'
import { freePort } from '#test/kit/ports.ts'
import { wholeGatewayOfFile } from '#test/kit/whole-gateway-of-file.ts'

const [port, otherPort] = [await freePort(), await freePort()]
const other = otherBrokerOfFile(otherPort)
wholeGatewayOfFile({
  HTTP_SERVER_PORT: String(port),
  SELVEDGE_ORCHESTRATOR_PORT: String(port),
  NGSILD_BROKER_URL: `http://127.0.0.1:${otherPort}/base/ngsi-ld/`,
  // A mistake: its own address.
  RANKING_COMPONENT_URL: `http://127.0.0.1:${port}`,
  SELVEDGE_ORCHESTRATOR_TIMEOUT_MS: '300',
  SELVEDGE_INDEXING_ENABLED: 'false',
  SELVEDGE_RANKING_ENABLED: 'false',
  SELVEDGE_SEARCH_ENABLED: 'false',
})
const own = httpClient(`http://127.0.0.1:${port}`)
const entities = '/ngsi-ld/v1/entities'

it('forwards method, target, headers and body as they arrived', async () => {
  const target = `${entities}?q=a%3D%3D%22x%22&rank%5Ba%5D=1&x=%7E%20`
  const body = gzipSync('{"a":1}')
  const headers = {
    Authorization: 'Bearer secret',
    'X-Auth-Token': 'other',
    'NGSILD-Tenant': 'city',
    Link: '<https://a.example/c>; rel="x"',
    'Content-Encoding': 'gzip',
    'Content-Type': 'application/ld+json',
    Connection: 'close, X-Hop',
    'X-Hop': '1',
  }
  await own.ask('PATCH', target, { body, headers })
  const [seen] = other.seen
  expect([seen!.method, seen!.target]).toEqual(['PATCH', `/base${target}`])
  expect(seen!.body).toEqual(body)
  const { Connection, 'X-Hop': hop, ...kept } = headers
  for (const [name, value] of Object.entries(kept)) expect(seen!.headers[name.toLowerCase()]).toBe(value)
  expect(seen!.headers['x-hop']).toBeUndefined()
  expect(seen!.headers['via']).toMatch(/^HTTP\/1\.1 selvedge-.+-orchestrator$/)
})

it('forwards a body with GET', async () => {
  await own.ask('GET', entities, { body: { type: 'Query' } })
  expect(other.seen[0]!.body.toString()).toBe('{"type":"Query"}')
})

it('returns status, headers and body of the broker', async () => {
  other.respond = (_, outgoing) => {
    outgoing.writeHead(207, {
      'Content-Type': 'application/problem+json',
      'Set-Cookie': ['a=1', 'b=2'],
      ETag: '"7"',
    })
    outgoing.end('{"odd": true}')
  }
  const answer = await own.ask('POST', '/ngsi-ld/v1/entityOperations/upsert', { body: [] })
  expect([answer.status, answer.text]).toEqual([207, '{"odd": true}'])
  expect(answer.headers).toMatchObject({ 'content-type': 'application/problem+json', etag: '"7"' })
  expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2'])
})

it('turns a Location at the broker into one of its own', async () => {
  const id = '/ngsi-ld/v1/entities/urn:x:1'
  const locations = [`/base${id}`, `${other.url}/base${id}`, 'https://else.example/x']
  other.respond = (_, outgoing) => void outgoing.writeHead(201, { Location: locations.shift()! }).end()
  for (const expected of [id, id, 'https://else.example/x'])
    expect((await own.ask('POST', entities, { body: {} })).headers['location']).toBe(expected)
})

it('streams bodies both ways', async () => {
  const chunk = Buffer.alloc(65_536, 'x')
  const arrived = Promise.withResolvers<void>()
  // The broker echoes each chunk, so the response arrives while the request is still sent.
  other.early = (incoming, outgoing) => {
    incoming.pipe(outgoing)
    return true
  }
  const outgoing = httpRequest({
    port,
    method: 'POST',
    path: '/ngsi-ld/v1/x',
    headers: { 'Transfer-Encoding': 'chunked' },
  })
  outgoing.write(chunk)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  let size = 0
  response.on('data', (data: Buffer) => {
    size += data.length
    if (size === chunk.length) arrived.resolve()
  })
  await arrived.promise
  for (let i = 0; i < 400; i++) if (!outgoing.write(chunk)) await once(outgoing, 'drain')
  outgoing.end()
  await once(response, 'end')
  // More than any body that the gateway itself would accept.
  expect(size).toBe(401 * chunk.length)
})

it('passes the end of a client on to the broker', async () => {
  const ended = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  other.early = (incoming, outgoing) => {
    outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
    incoming.socket.once('close', () => ended.resolve())
    begun.resolve()
    return true
  }
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${entities} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await begun.promise
  const [first] = (await once(socket, 'data')) as [Buffer]
  expect(first.toString()).toContain('200 OK')
  socket.destroy()
  await ended.promise
})

it('answers 504 when the broker is late, and 502 when it closes the connection', async () => {
  other.early = () => true
  const late = await own.get(entities)
  expect([late.status, late.json()]).toMatchObject([504, { status: 504, title: 'Gateway Timeout' }])
  other.early = (incoming) => {
    incoming.socket.destroy()
    return true
  }
  const absent = await own.ask('DELETE', `${entities}/urn:x:1`)
  expect([absent.status, absent.json()]).toMatchObject([502, { status: 502, title: 'Bad Gateway' }])
  expect((absent.json() as { type: string }).type).toContain('https://uri.etsi.org/ngsi-ld/errors/')
})

it('refuses to forward to its own address', async () => {
  const ranked = await own.get(`${entities}?type=A&rankWeights[a]=1`)
  expect([ranked.status, ranked.json()]).toMatchObject([508, { title: 'Loop Detected' }])
  expect(other.seen).toEqual([])
})

it('refuses a request that passed through it before', async () => {
  await own.get(entities)
  const via = String(other.seen[0]!.headers['via'])
  const again = await own.get(entities, { Via: `HTTP/1.1 first, ${via}` })
  expect([again.status, again.json()]).toMatchObject([508, { title: 'Loop Detected' }])
  expect(other.seen).toHaveLength(1)
})
