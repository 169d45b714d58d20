/** Stored @contexts: adding, listing, serving, deleting and reloading them [NGSI-LD 5.13.2 to 5.13.5, 6.29, 6.30]. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { freshId, property } from '#test/kit/gateway-of-file.ts'
import { type HttpGateway, type Reply, startHttpGateway } from '#test/kit/http-gateway.ts'

const contextsPath = '/ngsi-ld/v1/jsonldContexts'
const entities = '/ngsi-ld/v1/entities'
const core = 'https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.9.jsonld'
const errors = 'https://uri.etsi.org/ngsi-ld/errors/'
const cars = { '@context': { Car: 'https://cars.example/Car', wheels: 'https://cars.example/wheels' } }
const dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-contexts-'))

let gateway: HttpGateway
let server: Server
let elsewhere = ''
const site = { document: JSON.stringify(cars), isUp: true, asked: 0 }

beforeAll(async () => {
  gateway = await startHttpGateway({ dataFolder })
  server = createServer((_, response) => {
    site.asked++
    response.statusCode = site.isUp ? 200 : 503
    response.end(site.document)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  elsewhere = `http://127.0.0.1:${(server.address() as AddressInfo).port}/cars.jsonld`
})
afterAll(async () => {
  server.close()
  await gateway.close()
  rmSync(dataFolder, { recursive: true, force: true })
})

const plain = { 'Content-Type': 'application/json' }
const add = (body: unknown, headers = {}): Promise<Reply> =>
  gateway.ask('POST', contextsPath, { body, headers: { ...plain, ...headers } })
const added = async (): Promise<string> => (await add(cars)).headers['location']!
const details = async (name: string): Promise<Record<string, unknown>> =>
  (await gateway.get(`${contextsPath}/${encodeURIComponent(name)}?details=true`)).json()
const useBy = (context: unknown): Promise<Reply> =>
  gateway.send('POST', entities, { id: freshId(), type: 'Car', wheels: property(4), '@context': context })
const problem = (reply: Reply): string => {
  const { type }: { type: string } = reply.json()
  return `${reply.status} ${type.replace(errors, '')}`
}

describe('a context that a user added', () => {
  it('shall be served unchanged', async () => {
    const reply = await add(cars)
    expect(reply.status).toBe(201)
    expect(reply.text).toBe('')
    const path = reply.headers['location']!
    expect(path).toMatch(/^\/ngsi-ld\/v1\/jsonldContexts\/[\w-]+$/)
    const served = await gateway.get(path, { Accept: 'application/ld+json' })
    expect(served.headers['content-type']).toBe('application/ld+json')
    expect(served.json()).toEqual(cars)
  })

  it('shall be described with details', async () => {
    const path = await added()
    expect(await details(path.split('/').at(-1)!)).toEqual({
      URL: gateway.url + path,
      localId: path.split('/').at(-1),
      kind: 'Hosted',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      numberOfHits: 0,
    })
  })

  it.each([
    ['its address', (path: string) => gateway.url + path],
    ['its address behind a proxy', (path: string) => `https://proxy.example/gateway${path}`],
    ['its path', (path: string) => path],
  ])('shall be usable by %s', async (_, name) => {
    const path = await added()
    const reply = await useBy([name(path)])
    expect(reply.status).toBe(201)
    const entity = (await gateway.get(reply.headers['location']!)).json()
    expect(entity).toHaveProperty('type', 'https://cars.example/Car')
    expect(await details(path.split('/').at(-1)!)).toMatchObject({
      numberOfHits: 1,
      lastUsage: expect.any(String),
    })
  })

  it('shall be usable by Link and referenced in the response', async () => {
    const address = gateway.url + (await added())
    const link = `<${address}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
    const reply = await gateway.get(`${entities}?type=Car`, { Link: link })
    expect(reply.status).toBe(200)
    expect(reply.headers['link']).toContain(address)
  })

  it('shall no longer exist after its deletion', async () => {
    const path = await added()
    expect((await useBy([gateway.url + path])).status).toBe(201)
    const deleted = await gateway.ask('DELETE', path)
    expect([deleted.status, deleted.text]).toEqual([204, ''])
    expect(problem(await gateway.get(path))).toBe('404 ResourceNotFound')
    expect(problem(await gateway.ask('DELETE', path))).toBe('404 ResourceNotFound')
    expect(problem(await useBy([`${gateway.url}${path}`]))).toBe('504 LdContextNotAvailable')
  })

  it('shall not be reloaded', async () => {
    const path = await added()
    expect(problem(await gateway.ask('DELETE', `${path}?reload=true`))).toBe('400 BadRequestData')
    expect((await gateway.get(path)).status).toBe(200)
  })

  it('shall exist after a restart', async () => {
    const path = await added()
    await gateway.close()
    gateway = await startHttpGateway({ dataFolder })
    expect((await gateway.get(path)).json()).toEqual(cars)
  })

  it('shall belong to its tenant', async () => {
    const tenant = { 'NGSILD-Tenant': 'one' }
    const reply = await add(cars, tenant)
    expect(reply.headers['ngsild-tenant']).toBe('one')
    const path = reply.headers['location']!
    expect((await gateway.get(path)).status).toBe(404)
    expect((await gateway.get(path, tenant)).status).toBe(200)
    const listed: string[] = (await gateway.get(contextsPath)).json()
    expect(listed).not.toContain(gateway.url + path)
    expect(problem(await useBy([gateway.url + path]))).toBe('504 LdContextNotAvailable')
  })

  it.each([
    ['without @context', { A: 'urn:a' }, 'BadRequestData'],
    ['with an empty @context', { '@context': null }, 'BadRequestData'],
    ['a list', [cars], 'BadRequestData'],
    ['with an invalid definition', { '@context': { A: 5 } }, 'BadRequestData'],
    ['with a scoped context', { '@context': { A: { '@id': 'urn:a', '@context': {} } } }, 'BadRequestData'],
    ['no JSON', '{"@context": ', 'InvalidRequest'],
    ['nothing', '', 'InvalidRequest'],
  ])('shall be rejected when it is %s', async (_, body, type) => {
    expect(problem(await add(body))).toBe(`400 ${type}`)
  })
})

describe('a remote context', () => {
  it('shall be described but not served', async () => {
    expect((await useBy([elsewhere])).status).toBe(201)
    const found = await details(elsewhere)
    expect(found).toMatchObject({
      URL: elsewhere,
      kind: 'Cached',
      expiresAt: expect.any(String),
      numberOfHits: 1,
    })
    expect(await details(String(found['localId']))).toEqual(found)
    const name = encodeURIComponent(elsewhere)
    expect(problem(await gateway.get(`${contextsPath}/${name}`))).toBe('422 OperationNotSupported')
    expect((await gateway.get(`${contextsPath}/${elsewhere}?details=true`)).json()).toEqual(found)
  })

  it('shall show how often it was used since it was stored', async () => {
    const address = elsewhere.replace('cars', 'counted')
    const hits = async (): Promise<unknown> => (await details(address))['numberOfHits']
    await useBy([address])
    expect(await hits()).toBe(1)
    await useBy([address])
    await useBy([address, { Van: 'https://cars.example/Van' }])
    expect(await hits()).toBe(3)
    await gateway.ask('DELETE', `${contextsPath}/${encodeURIComponent(address)}`)
    await useBy([address])
    expect(await hits()).toBe(1)
  })

  it('shall be fetched again on request, and remain when that fails', async () => {
    const path = `${contextsPath}/${encodeURIComponent(elsewhere)}`
    await useBy([elsewhere])
    const { asked } = site
    site.document = JSON.stringify({ '@context': { Car: 'https://cars.example/NewCar' } })
    expect((await gateway.ask('DELETE', `${path}?reload=true`)).status).toBe(204)
    expect(site.asked).toBe(asked + 1)
    const reply = await useBy([elsewhere])
    expect((await gateway.get(reply.headers['location']!)).json()).toHaveProperty(
      'type',
      'https://cars.example/NewCar',
    )
    site.isUp = false
    expect(problem(await gateway.ask('DELETE', `${path}?reload=true`))).toBe('504 LdContextNotAvailable')
    expect((await useBy([elsewhere])).status).toBe(201)
    site.isUp = true
    site.document = '{"@context": 5}'
    expect(problem(await gateway.ask('DELETE', `${path}?reload=true`))).toBe('504 LdContextNotAvailable')
    expect((await useBy([elsewhere])).status).toBe(201)
    site.document = JSON.stringify(cars)
  })

  it('shall be fetched again after it was deleted', async () => {
    await useBy([elsewhere])
    const path = `${contextsPath}/${encodeURIComponent(elsewhere)}`
    expect((await gateway.ask('DELETE', path)).status).toBe(204)
    expect((await gateway.get(`${path}?details=true`)).status).toBe(404)
    const { asked } = site
    expect((await useBy([elsewhere])).status).toBe(201)
    expect(site.asked).toBe(asked + 1)
  })
})

describe('the list', () => {
  it('shall contain addresses, or details on request', async () => {
    const path = await added()
    await useBy([elsewhere])
    const listed: string[] = (await gateway.get(contextsPath)).json()
    expect(listed).toEqual(expect.arrayContaining([core, elsewhere, gateway.url + path]))
    const told: { URL: string; kind: string }[] = (await gateway.get(`${contextsPath}?details=true`)).json()
    expect(told.map(({ URL }) => URL)).toEqual(listed)
    const hosted: string[] = (await gateway.get(`${contextsPath}?kind=Hosted&details=false`)).json()
    expect(hosted).toContain(gateway.url + path)
    expect(hosted).not.toContain(elsewhere)
    expect((await gateway.get(`${contextsPath}?kind=ImplicitlyCreated`)).json()).toEqual([])
  })

  it.each([
    ['kind=hosted', 'BadRequestData'],
    ['details=yes', 'BadRequestData'],
    ['limit=3', 'InvalidRequest'],
  ])('shall reject %s', async (query, type) => {
    expect(problem(await gateway.get(`${contextsPath}?${query}`))).toBe(`400 ${type}`)
  })
})

describe('the core', () => {
  const path = `${contextsPath}/${encodeURIComponent(core.replace('1.9', '1.8'))}`

  it('shall exist in every version and remain', async () => {
    expect((await gateway.get(`${path}?details=true`)).json()).toMatchObject({ kind: 'Cached' })
    expect(problem(await gateway.ask('DELETE', path))).toBe('400 BadRequestData')
    expect(problem(await gateway.ask('DELETE', `${path}?reload=false`))).toBe('400 BadRequestData')
    expect((await gateway.ask('DELETE', `${path}?reload=true`)).status).toBe(204)
  })
})

describe('a context generated for a Link header', () => {
  const inline = [{ Van: 'https://cars.example/Van' }]
  const query = { type: 'Query', entities: [{ type: 'Van' }], '@context': inline }
  const linked = /^<([^>]+)>; rel="http:\/\/www\.w3\.org\/ns\/json-ld#context"/

  it('shall represent the inline context of a query, the same each time', async () => {
    await gateway.send('POST', entities, { id: freshId(), type: 'https://cars.example/Van' })
    const path = '/ngsi-ld/v1/entityOperations/query'
    const replies = [await gateway.send('POST', path, query), await gateway.send('POST', path, query)]
    const [reply] = replies as [Reply, Reply]
    expect(reply.json()).toMatchObject([{ type: 'Van' }])
    const addresses = replies.map(({ headers }) => linked.exec(headers['link']!)?.[1])
    expect(addresses[0]).toBe(addresses[1])
    const served = await gateway.get(addresses[0]!.replace(gateway.url, ''))
    expect(served.json()).toEqual({ '@context': [...inline, core] })
    expect((await gateway.get(`${contextsPath}?kind=ImplicitlyCreated`)).json()).toEqual([addresses[0]])
    const asLd = await gateway.send('POST', path, query, { Accept: 'application/ld+json' })
    expect(asLd.headers['link']).toBeUndefined()
    expect(asLd.json()).toMatchObject([{ '@context': [...inline, core] }])
  })

  it('shall represent the inline context of a subscription', async () => {
    const reply = await gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
      id: 'urn:ngsi-ld:Subscription:vans',
      type: 'Subscription',
      entities: [{ type: 'Van' }],
      notification: { endpoint: { uri: 'http://127.0.0.1:9/none' } },
      '@context': inline,
    })
    expect(reply.status).toBe(201)
    const { jsonldContext }: { jsonldContext: string } = (
      await gateway.get(reply.headers['location']!)
    ).json()
    expect(jsonldContext).toMatch(`${gateway.url}${contextsPath}/`)
    expect(await details(jsonldContext.split('/').at(-1)!)).toMatchObject({ kind: 'ImplicitlyCreated' })
    const path = jsonldContext.replace(gateway.url, '')
    expect((await gateway.ask('DELETE', path)).status).toBe(204)
    expect((await gateway.get(path)).status).toBe(404)
  })

  it('shall be evicted by newer ones, unless a subscription uses it', async () => {
    const implicit = async (): Promise<string[]> =>
      (await gateway.get(`${contextsPath}?kind=ImplicitlyCreated`)).json()
    for (const address of await implicit()) await gateway.ask('DELETE', address.replace(gateway.url, ''))
    const subscribed = await gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
      type: 'Subscription',
      entities: [{ type: 'Van' }],
      notification: { endpoint: { uri: 'http://127.0.0.1:9/none' } },
      '@context': inline,
    })
    const { jsonldContext }: { jsonldContext: string } = (
      await gateway.get(subscribed.headers['location']!)
    ).json()
    const ask = async (name: string): Promise<string> => {
      const reply = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/query', {
        ...query,
        '@context': [{ ...inline[0], [name]: `https://cars.example/${name}` }],
      })
      return linked.exec(reply.headers['link']!)![1]!
    }
    setLimit('contextsImplicitMax', 3)
    try {
      const first = await ask('first')
      const second = await ask('second')
      expect(await ask('first')).toBe(first)
      const third = await ask('third')
      expect((await implicit()).toSorted()).toEqual([jsonldContext, first, third].toSorted())
      setLimit('contextsImplicitBytesMax', 1)
      const fourth = await ask('fourth')
      expect((await implicit()).toSorted()).toEqual([jsonldContext, fourth].toSorted())
      expect(await ask('second')).toBe(second)
    } finally {
      restoreLimits()
      await gateway.ask('DELETE', subscribed.headers['location']!)
    }
  })
})
