/** Media types, contexts and tenants in headers [NGSI-LD 6.3.4 to 6.3.6, 6.3.14]. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatVersion } from '#store/file/database-schema.ts'
import { freshId, gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'
import { startHttpGateway } from '#test/kit/http-gateway.ts'

const gateway = gatewayOfFile()
const entities = '/ngsi-ld/v1/entities'
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'
const linkTo = (url: string): string =>
  `<${url}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`

let server: Server
let base = ''
beforeAll(async () => {
  server = createServer((request, response) => {
    const found = { Car: 'https://cars.example/Car', wheels: 'https://cars.example/wheels' }
    if (request.url === '/cars.jsonld') response.end(JSON.stringify({ '@context': found }))
    else if (request.url === '/broken.jsonld') response.end('<html>')
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())

describe('an answer', () => {
  const id = freshId()
  beforeAll(() => gateway.send('POST', entities, { id, type: 'T', a: property(1) }))

  it.each([undefined, '*/*', 'application/json', 'text/html, */*;q=0.5'])(
    'shall be JSON with a Link to the core for %s',
    async (accept) => {
      const answer = await gateway.get(`${entities}/${id}`, accept === undefined ? {} : { Accept: accept })
      expect(answer.headers['content-type']).toBe('application/json')
      expect(answer.headers['link']).toBe(linkTo(core))
      expect(answer.json()).not.toHaveProperty('@context')
    },
  )

  it('shall be JSON-LD with its @context, without Link, for application/ld+json', async () => {
    const answer = await gateway.get(`${entities}/${id}`, { Accept: 'application/ld+json' })
    expect(answer.headers['content-type']).toBe('application/ld+json')
    expect(answer.headers['link']).toBeUndefined()
    expect(answer.json()).toEqual({ id, type: 'T', a: property(1), '@context': core })
  })

  it('shall be 406 with the available types for any other type', async () => {
    const answer = await gateway.get(`${entities}/${id}`, { Accept: 'application/xml' })
    expect([answer.status, answer.text]).toEqual([406, expect.stringContaining('application/ld+json')])
  })

  it('shall be the configured default for clients that accept any', async () => {
    const answer = await jsonLd.get('/ngsi-ld/v1/subscriptions')
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/ld+json'])
  })

  it('shall name the running version', async () => {
    expect((await gateway.get('/health/live')).headers['server']).toMatch(/^selvedge\/\d+\.\d+\.\d+/)
    expect((await gateway.get('/selvedge/v1/info')).json()).toMatchObject({
      version: expect.any(String),
      conformance: { ngsiLd: '1.9' },
      dataFormat: formatVersion,
      temporalInstancesMax: 5000,
    })
  })
})

const jsonLd = gatewayOfFile({ defaultMediaType: 'application/ld+json' })

describe('a context of the user', () => {
  const id = freshId()
  const link = () => ({ Link: linkTo(`${base}/cars.jsonld`) })

  it('shall be fetched if Link names it beside JSON', async () => {
    const created = await gateway.send('POST', entities, { id, type: 'Car', wheels: property(4) }, link())
    expect(created.status).toBe(201)
    expect((await gateway.get(`${entities}/${id}`)).json()).toEqual({
      id,
      type: 'https://cars.example/Car',
      'https://cars.example/wheels': property(4),
    })
  })

  it('shall compact the names in responses and be named in them', async () => {
    const json = await gateway.get(`${entities}/${id}`, link())
    expect(json.json()).toEqual({ id, type: 'Car', wheels: property(4) })
    expect(json.headers['link']).toBe(linkTo(`${base}/cars.jsonld`))
    const ld = await gateway.get(`${entities}/${id}`, { ...link(), Accept: 'application/ld+json' })
    expect(ld.json()).toEqual({
      id,
      type: 'Car',
      wheels: property(4),
      '@context': [`${base}/cars.jsonld`, core],
    })
  })

  it('shall expand names in paths and parameters', async () => {
    expect((await gateway.get(`${entities}/${id}?attrs=wheels&options=keyValues`, link())).json()).toEqual({
      id,
      type: 'Car',
      wheels: 4,
    })
    expect((await gateway.ask('DELETE', `${entities}/${id}/attrs/wheels`, { headers: link() })).status).toBe(
      204,
    )
  })

  it('that is invalid shall be 400', async () => {
    const answer = await gateway.get(`${entities}/${id}`, { Link: linkTo(`${base}/broken.jsonld`) })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('not JSON')])
  })

  it('shall not be fetched from this machine if that is forbidden', async () => {
    const answer = await guarded.get(`${entities}/${id}`, link())
    expect([answer.status, answer.text]).toEqual([504, expect.stringContaining('this machine')])
  })

  it('of the platform shall be published, and used without a fetch', async () => {
    const published = await gateway.get('/contexts/selvedge-platform.jsonld')
    expect(published.headers['content-type']).toBe('application/ld+json')
    expect(published.json()).toHaveProperty(['@context', 'sosa'], 'http://www.w3.org/ns/sosa/')
    const sensor = freshId()
    const context = 'https://nowhere.invalid/contexts/selvedge-platform.jsonld'
    await gateway.send('POST', entities, {
      '@context': context,
      id: sensor,
      type: 'Sensor',
      'qoi:min': property(1),
    })
    expect((await gateway.get(`${entities}/${sensor}`)).json()).toEqual({
      id: sensor,
      type: 'http://www.w3.org/ns/sosa/Sensor',
      'https://w3id.org/iot/qoi#min': property(1),
    })
  })
})

const guarded = gatewayOfFile({ allowLoopback: false })

describe('a tenant', () => {
  const tenant = { 'NGSILD-Tenant': 'site-a' }

  it('shall be created by its first creation, separate from all others', async () => {
    const id = freshId()
    const unknown = await gateway.get(`${entities}/${id}`, tenant)
    expect([unknown.status, unknown.text]).toEqual([404, expect.stringContaining('NonexistentTenant')])
    const created = await gateway.send('POST', entities, { id, type: 'T' }, tenant)
    expect([created.status, created.headers['ngsild-tenant']]).toEqual([201, 'site-a'])
    const read = await gateway.get(`${entities}/${id}`, tenant)
    expect([read.status, read.headers['ngsild-tenant']]).toEqual([200, 'site-a'])
    expect((await gateway.get(`${entities}/${id}`)).status).toBe(404)
  })

  it('shall be named in every response, successful or not', async () => {
    const echo = { 'NGSILD-Tenant': 'echo' }
    const [id, batch] = [freshId(), '/ngsi-ld/v1/entityOperations']
    const entity = { id, type: 'T', a: property(1) }
    const other = { id: freshId(), type: 'T' }
    const replies = [
      await gateway.send('POST', `${batch}/create`, [entity], echo),
      await gateway.send('POST', `${batch}/upsert`, [entity, other], echo),
      await gateway.send('POST', `${batch}/create`, [entity], echo),
      await gateway.send('POST', `${entities}/${id}/attrs?options=noOverwrite`, { a: property(2) }, echo),
      await gateway.get(`${entities}/urn:x:none`, echo),
      await gateway.get(`${entities}?type=T&unheard=of`, echo),
      await gateway.ask('DELETE', `${entities}/${id}`, { headers: echo }),
      await gateway.ask('PUT', entities, { headers: echo }),
      await gateway.get('/ngsi-ld/v1/types', echo),
    ]
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 207, 207, 404, 400, 204, 405, 200])
    for (const { headers } of replies) expect(headers['ngsild-tenant']).toBe('echo')
  })

  it('shall not be created by a refused request', async () => {
    const other = { 'NGSILD-Tenant': 'site-b' }
    expect((await gateway.send('POST', entities, { type: 'T' }, other)).status).toBe(400)
    expect((await gateway.send('PATCH', `${entities}/urn:x:1/attrs`, { a: 1 }, other)).status).toBe(404)
    expect((await gateway.get(`${entities}/urn:x:1`, other)).text).toContain('NonexistentTenant')
  })

  it.each(['../etc', 'a b', 'x'.repeat(65), 'a/b', 'ä'])('shall not be called %s', async (name) => {
    const answer = await gateway
      .send('POST', entities, { id: freshId(), type: 'T' }, { 'NGSILD-Tenant': name })
      .catch(() => undefined)
    if (answer !== undefined)
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('NGSILD-Tenant')])
  })
})

it('a body sent with GET shall be read to its end and have no effect', async () => {
  const answer = await gateway.ask('GET', '/health/live', { body: { some: 'thing' } })
  expect(answer.status).toBe(200)
})

it.each(['1.1.2', '1.8', '1.9'] as const)('names the core @context of the profile %s', async (profile) => {
  const site = await startHttpGateway({ profile })
  try {
    await site.send('POST', '/ngsi-ld/v1/entities', { id: 'urn:k:1', type: 'K' })
    // That of the first version has no version in its name.
    const version = profile === '1.1.2' ? '' : `-v${profile}`
    const found = await site.get('/ngsi-ld/v1/entities?type=K')
    expect(found.headers['link']).toContain(`/ngsi-ld-core-context${version}.jsonld>`)
    // Since 1.9 a query that makes an entity map says that it did.
    const mapped = await site.get('/ngsi-ld/v1/entities?type=K&entityMap=true')
    expect([mapped.status, mapped.json()]).toMatchObject([profile === '1.9' ? 201 : 200, [{ id: 'urn:k:1' }]])
  } finally {
    await site.close()
  }
})
