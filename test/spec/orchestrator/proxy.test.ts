/** The proxy of the orchestrator in front of this gateway. */
import { describe, expect, it, vi } from 'vitest'
import { freshId, property } from '#test/kit/gateway-of-file.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { freePort } from '#test/kit/ports.ts'
import { wholeGatewayOfFile } from '#test/kit/whole-gateway-of-file.ts'

const entities = '/ngsi-ld/v1/entities'
const port = await freePort()
const gateway = wholeGatewayOfFile({
  SELVEDGE_ORCHESTRATOR_PORT: String(port),
  VERSION: 'a1b2c3',
  SELVEDGE_PATTERNS_ENABLED: 'false',
  SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false',
})
const own = httpClient(`http://127.0.0.1:${port}`)

const at =
  (path: string): HttpClient['ask'] =>
  (method, rest, options) =>
    own.ask(method, path + rest, options)

describe('the orchestrator of this gateway', () => {
  it('answers its root and its version', async () => {
    const root = await own.get('/')
    expect([root.status, root.json()]).toMatchObject([200, { version: 'a1b2c3', links: {} }])
    const version = await gateway.get('/orchestrator/version')
    expect([version.status, version.text]).toEqual([200, 'Version: a1b2c3'])
    expect(version.headers['content-type']).toContain('text/plain')
  })

  it('forwards every method with status and headers', async () => {
    const id = freshId()
    const created = await own.send('POST', entities, { id, type: 'Thing', speed: property(1) })
    expect([created.status, created.headers['location']]).toEqual([201, `${entities}/${id}`])
    const bare = await gateway.send('POST', entities, { id: freshId(), type: 'Thing' })
    expect(Object.keys(created.headers).toSorted()).toEqual(Object.keys(bare.headers).toSorted())
    const patched = await own.send('PATCH', `${entities}/${id}/attrs`, { speed: property(2) })
    expect([patched.status, patched.text]).toEqual([204, ''])
    const direct = await gateway.get(`${entities}/${id}`)
    const proxied = await own.get(`${entities}/${id}`)
    for (const name of ['content-type', 'etag', 'link', 'server'])
      expect([name, proxied.headers[name]]).toEqual([name, direct.headers[name]])
    expect([proxied.status, proxied.text]).toEqual([200, direct.text])
    const known = await own.get(`${entities}/${id}`, { 'If-None-Match': direct.headers['etag']! })
    expect(known.status).toBe(304)
    expect((await at(entities)('HEAD', `/${id}`)).status).toBe(200)
    expect((await at(entities)('OPTIONS', '')).headers['allow']).toContain('POST')
    expect((await at(entities)('DELETE', `/${id}`)).status).toBe(204)
    const gone = await own.get(`${entities}/${id}`)
    expect([gone.status, gone.json()]).toMatchObject([404, { title: 'Resource not found' }])
  })

  it('adds the platform context to application/ld+json without one, and to no other', async () => {
    const type = { 'Content-Type': 'application/ld+json' }
    const [bare, named] = [freshId(), freshId()]
    const result = { hasSimpleResult: property(1) }
    const made = await own.send('POST', entities, { id: bare, type: 'StreamObservation', ...result }, type)
    expect([made.status, made.text]).toEqual([201, ''])
    expect((await gateway.get(`${entities}/${bare}`)).json()).toMatchObject({
      type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation',
      'http://www.w3.org/ns/sosa/hasSimpleResult': { value: 1 },
    })
    const patched = await own.send(
      'PATCH',
      `${entities}/${bare}/attrs`,
      { hasSimpleResult: property(2) },
      type,
    )
    expect(patched.status).toBe(204)
    const batch = [{ id: freshId(), type: 'StreamObservation', ...result }]
    const created = await own.send('POST', '/ngsi-ld/v1/entityOperations/create', batch, type)
    expect([created.status, created.json()]).toEqual([201, [batch[0]!.id]])
    const subscription = {
      type: 'Subscription',
      entities: [{ type: 'StreamObservation' }],
      notification: { endpoint: { uri: 'http://127.0.0.1:9/closed' } },
    }
    expect((await own.send('POST', '/ngsi-ld/v1/subscriptions', subscription, type)).status).toBe(201)
    const odd = { ...subscription, notification: { endpoint: 'http://127.0.0.1:9/closed' } }
    expect((await own.send('POST', '/ngsi-ld/v1/subscriptions', odd)).status).toBe(400)
    const context = { '@context': { StreamObservation: 'http://x.example/Other' } }
    await own.send('POST', entities, { id: named, type: 'StreamObservation', ...context }, type)
    expect((await gateway.get(`${entities}/${named}`)).json()).toMatchObject({
      type: 'http://x.example/Other',
    })
    for (const body of ['{}', '[]', '{"a"', '{"@context":null,"id":"urn:x:1","type":"T"}'])
      expect((await own.send('POST', entities, body, type)).status).toBe(400)
  })

  it('links the next page at the address that the client used', async () => {
    for (const level of [1, 2])
      await own.send('POST', entities, { id: freshId(), type: 'Paged', level: property(level) })
    const page = `${entities}?type=Paged&limit=1`
    expect((await own.get(page)).headers['link']).toContain(`<${entities}?`)
    for (const state of [undefined, 'selvedge-orchestrator; hit']) {
      const { headers } = await gateway.get(`/orchestrator${page}`, { Accept: 'application/json' })
      expect(headers['cache-status']).toBe(state)
      expect(headers['link']).toContain(`</orchestrator${entities}?`)
    }
  })

  it('answers from the cache at both ports, until something changes, and counts that', async () => {
    const type = 'Cached'
    const id = freshId()
    await own.send('POST', entities, { id, type, level: property(1) })
    const headers = { 'Selvedge-Client': 'reader' }
    const path = `${entities}?type=${type}`
    const [first, again, mounted] = [
      await own.get(path, headers),
      await own.get(path, headers),
      await gateway.get(`/orchestrator${path}`, headers),
    ]
    for (const hit of [again, mounted]) {
      expect([hit.status, hit.text, hit.headers['etag']]).toEqual([200, first.text, first.headers['etag']])
      expect(hit.headers).toMatchObject({
        'cache-status': 'selvedge-orchestrator; hit',
        age: expect.any(String),
        'content-type': first.headers['content-type'],
        'content-length': `${Buffer.byteLength(first.text)}`,
      })
    }
    const known = { ...headers, 'If-None-Match': first.headers['etag']! }
    for (const answer of [await own.get(path, known), await gateway.get(`/orchestrator${path}`, known)])
      expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([304, '', undefined])
    const page = await own.get(path, { ...headers, Origin: 'http://127.0.0.1' })
    expect(page.text).toBe(first.text)
    const foreign = await own.get(path, { ...headers, Host: 'rebound.example' })
    expect(foreign.status).toBe(421)
    const elsewhere = await own.get(path, { ...headers, 'NGSILD-Tenant': 'other' })
    expect(elsewhere.status).toBe(404)
    await gateway.send('PATCH', `${entities}/${id}/attrs`, { level: property(2) })
    expect((await own.get(path, headers)).text).toContain('"value":2')
    const { clients } = (await gateway.get('/orchestrator/clients')).json() as {
      clients: { client: string; uses: object[] }[]
    }
    const uses = clients.find(({ client }) => client === 'reader')!.uses
    expect(uses).toMatchObject([{ method: 'GET', resource: `entities?type=${type}`, count: 7 }])
  })

  it('passes a body with GET, and one larger than other bodies may be', async () => {
    const query = { type: 'Query', entities: [{ type: 'Nothing' }] }
    const read = await own.ask('GET', `${entities}?type=Nothing`, { body: query })
    expect([read.status, read.text]).toEqual([200, '[]'])
    const items = Array.from({ length: 30 }, () => ({
      id: freshId(),
      type: 'Large',
      text: property('x'.repeat(100_000)),
    }))
    const made = await own.send('POST', '/ngsi-ld/v1/entityOperations/create', items)
    expect([made.status, (made.json() as unknown[]).length]).toEqual([201, items.length])
  })

  it('sends a query with weights to the ranking, and one without to the broker', async () => {
    const [a, b] = [freshId('Ranked'), freshId('Ranked')]
    for (const [id, value] of [
      [a, 1],
      [b, 2],
    ] as const)
      await own.send('POST', entities, { id, type: 'Ranked', level: property(value) })
    const ranked = await vi.waitFor(async () => {
      const answer = await own.get(`${entities}?type=Ranked&rankWeights%5Blevel%5D=1&options=keyValues`)
      expect(answer.json()).toHaveLength(2)
      return answer.json() as { id: string }[]
    })
    expect(ranked.map(({ id }) => id)).toEqual([b, a])
    expect(JSON.stringify(ranked)).toContain('rankScore')
    const plain = await own.get(`${entities}?type=Ranked&options=keyValues`)
    expect(plain.text).not.toContain('rankScore')
  })
})
