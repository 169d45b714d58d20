/**
 * Requests to sources, seen from a source that records them and sends prepared answers: the requirements of
 * its registration (contextSourceInfo), its management settings, and its statistics.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type HttpGateway, type Reply, startHttpGateway } from '#test/kit/http-gateway.ts'

const entities = '/ngsi-ld/v1/entities'
const registrations = '/ngsi-ld/v1/csourceRegistrations'
const contexts = '/ngsi-ld/v1/jsonldContexts'
const rel = 'rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
const flow = (value: unknown) => ({ type: 'Property', value })
const german = { Pumpe: 'http://x.org/Pump', fluss: 'http://x.org/flow', wo: 'http://x.org/place' }
const english = { Pump: 'http://x.org/Pump', flow: 'http://x.org/flow', place: 'http://x.org/place' }

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

describe('GS CIM 009, 4.3.6: requests to context sources', () => {
  let here: HttpGateway
  let endpoint = ''
  let asked: Asked[] = []
  let answer: { status: number; body?: unknown; delayMs?: number } = { status: 404 }
  let registered: string[] = []
  const source = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { method = '', url = '', headers } = request
      asked.push({
        method,
        path: decodeURIComponent(url),
        headers,
        body: text === '' ? undefined : JSON.parse(text),
      })
      const { status, body, delayMs = 0 } = answer
      setTimeout(() => {
        response.writeHead(status, { 'Content-Type': 'application/json' })
        response.end(body === undefined ? undefined : JSON.stringify(body))
      }, delayMs)
    })
  })
  beforeAll(async () => {
    here = await startHttpGateway({ alias: 'here' })
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve))
    endpoint = `http://127.0.0.1:${(source.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    source.close()
    source.closeAllConnections()
    await here.close()
  })
  afterEach(async () => {
    for (const path of registered) await here.ask('DELETE', path)
    registered = []
    asked = []
  })

  const register = async (members: object): Promise<string> => {
    const body = {
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      operations: ['redirectionOps'],
      endpoint,
      '@context': english,
      ...members,
    }
    const made = await here.send('POST', registrations, body)
    expect([made.status, made.text]).toEqual([201, ''])
    registered.push(made.headers['location']!)
    return made.headers['location']!
  }
  const hosted = async (context: object, headers = {}): Promise<string> => {
    const body = { '@context': context }
    const made = await here.ask('POST', contexts, {
      body,
      headers: { 'Content-Type': 'application/json', ...headers },
    })
    return here.url + made.headers['location']!
  }
  const info = (pairs: Record<string, string>) => ({
    contextSourceInfo: Object.entries(pairs).map(([key, value]) => ({ key, value })),
  })

  describe('in the form that the registration requires', () => {
    test('jsonldContext: names in requests and answers are in this context', async () => {
      const [wished, ours] = [await hosted(german), await hosted(english)]
      await register({ ...info({ jsonldContext: wished }), mode: 'redirect' })
      answer = { status: 200, body: [{ id: 'urn:p:1', type: 'Pumpe', fluss: flow(3) }] }
      const found = await here.get(`${entities}?type=Pump&attrs=flow&q=flow%3E1`, {
        Link: `<${ours}>; ${rel}`,
      })
      expect(asked[0]!.path).toBe(`${entities}?attrs=fluss&options=sysAttrs&q=fluss>1&type=Pumpe`)
      expect(asked[0]!.headers.link).toBe(`<${wished}>; ${rel}`)
      expect(found.json()).toEqual([{ id: 'urn:p:1', type: 'Pump', flow: flow(3) }])
    })

    test('jsonldContext: bodies and paths of writes, and each item of a batch', async () => {
      const wished = await hosted(german)
      await register({ ...info({ jsonldContext: wished }), mode: 'redirect' })
      answer = { status: 201 }
      const pump = { id: 'urn:p:1', type: 'Pump', flow: flow(1), '@context': english }
      expect((await here.send('POST', entities, pump)).status).toBe(201)
      expect(asked[0]!.body).toEqual({ id: 'urn:p:1', type: 'Pumpe', fluss: flow(1) })
      expect(asked[0]!.headers).toMatchObject({
        'content-type': 'application/json',
        link: `<${wished}>; ${rel}`,
      })
      answer = { status: 204 }
      const path = `${entities}/urn:p:1/attrs/flow`
      const patched = await here.send('PATCH', path, { value: 2, '@context': english })
      expect(patched.status).toBe(204)
      expect([asked[1]!.path, asked[1]!.body]).toEqual([`${entities}/urn:p:1/attrs/fluss`, { value: 2 }])
    })

    test('contentType: the context is moved into the body or out of it', async () => {
      const ours = await hosted(english)
      await register({ ...info({ contentType: 'application/ld+json' }), mode: 'redirect' })
      answer = { status: 201 }
      const pump = { id: 'urn:p:1', type: 'Pump', flow: flow(1) }
      await here.send('POST', entities, pump, { Link: `<${ours}>; ${rel}` })
      expect(asked[0]!.headers).toMatchObject({ 'content-type': 'application/ld+json' })
      expect(asked[0]!.headers).not.toHaveProperty('link')
      expect(asked[0]!.body).toMatchObject({ flow: flow(1), '@context': [ours, expect.any(String)] })
      await here.ask('DELETE', registered.pop()!)
      await register({ ...info({ contentType: 'application/json' }), mode: 'redirect' })
      await here.send('POST', entities, { ...pump, '@context': ours })
      expect(asked[1]!.headers).toMatchObject({
        'content-type': 'application/json',
        link: `<${ours}>; ${rel}`,
      })
      expect(asked[1]!.body).toEqual(pump)
      await here.send('POST', entities, { ...pump, '@context': english })
      expect(asked[2]!.body).toEqual({
        id: 'urn:p:1',
        type: 'http://x.org/Pump',
        'http://x.org/flow': flow(1),
      })
    })

    test('ngsildConformance: bodies contain only features of the version of the source', async () => {
      await register({ ...info({ ngsildConformance: '1.6' }), mode: 'redirect' })
      answer = { status: 201 }
      const levels = { type: 'ListProperty', valueList: [1, 2] }
      const pump = { id: 'urn:p:1', type: 'Pump', levels, flow: flow(1), '@context': english }
      expect((await here.send('POST', entities, pump)).status).toBe(201)
      expect(asked[0]!.body).toEqual({ ...pump, levels: flow([1, 2]) })
    })

    test('other keys become headers, copied from the request if the value says so; Via is left out', async () => {
      const pairs = { 'X-Plant': 'a', authorization: 'urn:ngsi-ld:request', Via: '1.1 x' }
      await register({ ...info(pairs), tenant: 'plant' })
      answer = { status: 404 }
      await here.get(`${entities}/urn:p:1`, { Authorization: 'Bearer t' })
      expect(asked[0]!.headers).toMatchObject({
        'x-plant': 'a',
        authorization: 'Bearer t',
        'ngsild-tenant': 'plant',
        via: 'HTTP/1.1 here',
        host: endpoint.slice('http://'.length),
      })
    })

    test('accept: GeoJSON answers are parsed, too', async () => {
      await register(info({ accept: 'application/geo+json' }))
      const properties = { type: 'http://x.org/Pump', 'http://x.org/flow': flow(3) }
      const feature = { id: 'urn:p:1', type: 'Feature', geometry: null, properties }
      answer = { status: 200, body: { type: 'FeatureCollection', features: [feature] } }
      const found = await here.get(`${entities}?type=${encodeURIComponent('http://x.org/Pump')}`)
      expect(asked[0]!.headers.accept).toBe('application/geo+json')
      expect(found.json()).toEqual([{ id: 'urn:p:1', ...properties }])
    })

    test.each([
      ['jsonldContext', 'nowhere'],
      ['contentType', 'text/plain'],
      ['ngsildConformance', 'new'],
      ['not a header', 'x'],
      ['X-Empty', ''],
    ])('%s cannot be %s', async (key, value) => {
      const body = {
        type: 'ContextSourceRegistration',
        information: [{ entities: [{ type: 'Pump' }] }],
        endpoint,
        ...info({ [key]: value }),
      }
      expect((await here.send('POST', registrations, body)).status).toBe(400)
    })

    test('an unavailable context causes a warning', async () => {
      await register(info({ jsonldContext: 'http://127.0.0.1:1/none.jsonld' }))
      const reply = await here.get(`${entities}?type=${encodeURIComponent('http://x.org/Pump')}`)
      expect([reply.status, reply.json()]).toEqual([200, []])
      expect(reply.headers['ngsild-warning']).toMatch(/^199 /)
      expect(asked).toEqual([])
    })

    test('an answer whose context is unavailable is left out, with a warning', async () => {
      await register({})
      const told = { id: 'urn:p:1', type: 'Pump', '@context': 'http://127.0.0.1:9/context.jsonld' }
      answer = { status: 200, body: [told] }
      const found = await here.get(`${entities}?type=http://x.org/Pump`)
      expect([found.status, found.json()]).toEqual([200, []])
      expect(found.headers['ngsild-warning']).toMatch(/^111 .*127\.0\.0\.1:9/)
    })

    test('the context of an answer may be hosted in the requesting tenant', async () => {
      const tenant = { 'NGSILD-Tenant': 'works' }
      const theirs = await hosted(german, tenant)
      const body = {
        type: 'ContextSourceRegistration',
        information: [{ entities: [{ type: 'http://x.org/Pump' }] }],
        endpoint,
      }
      expect((await here.send('POST', registrations, body, tenant)).status).toBe(201)
      answer = { status: 200, body: { id: 'urn:p:1', type: 'Pumpe', fluss: flow(3), '@context': theirs } }
      const found = await here.get(`${entities}/urn:p:1`, tenant)
      expect(found.json()).toMatchObject({ type: 'http://x.org/Pump', 'http://x.org/flow': flow(3) })
    })
  })

  test('datasetId: a source receives instances of its datasets, and the others are written locally', async () => {
    const information = [{ entities: [{ id: 'urn:p:9', type: 'Pump' }], propertyNames: ['level'] }]
    const members = { information, mode: 'exclusive', datasetId: ['urn:d:1'] }
    await register({ ...members, '@context': {} })
    answer = { status: 201 }
    const [ours, theirs] = [flow(1), { ...flow(2), datasetId: 'urn:d:1' }]
    const pump = { id: 'urn:p:9', type: 'Pump', level: [ours, theirs], name: flow('n') }
    expect((await here.send('POST', entities, pump)).status).toBe(201)
    expect(asked.map(({ body }) => body)).toEqual([{ id: 'urn:p:9', type: 'Pump', level: [theirs] }])
    const path = `${entities}/urn:p:9`
    expect((await here.get(`${path}?local=true`)).json()).toEqual({ ...pump, level: ours })
    answer = { status: 204 }
    expect((await here.send('PATCH', `${path}/attrs/level`, { value: 3 })).status).toBe(204)
    expect(asked).toHaveLength(1)
    const change = { value: 4, datasetId: 'urn:d:1' }
    expect((await here.send('PATCH', `${path}/attrs/level`, change)).status).toBe(204)
    expect(asked[1]!.body).toEqual(change)
    expect((await here.ask('DELETE', `${path}/attrs/level?datasetId=urn:d:1`)).status).toBe(204)
    expect(asked).toHaveLength(3)
    expect((await here.get(`${path}?local=true`)).json()).toMatchObject({ level: flow(3) })
  })

  describe('under the management settings of the registration', () => {
    const path = `${entities}/urn:p:7`
    const pump = (value: number) => ({
      status: 200,
      body: { id: 'urn:p:7', type: 'http://x.org/Pump', flow: flow(value) },
    })
    const flowIn = (reply: Reply): unknown => (reply.json() as { flow: { value: unknown } }).flow.value

    test('cacheDuration: a copy is used that long, marked with its age, until a write to the source', async () => {
      await register({ management: { cacheDuration: 'PT1H' } })
      answer = pump(1)
      expect(flowIn(await here.get(path))).toBe(1)
      answer = pump(2)
      const copied = await here.get(path)
      expect([flowIn(copied), copied.headers['age']]).toEqual([1, '0'])
      expect(copied.headers['ngsild-warning']).toMatch(/^110 /)
      expect(asked).toHaveLength(1)
      answer = { status: 204 }
      expect((await here.send('PATCH', `${path}/attrs/flow`, { value: 2 })).status).toBe(204)
      answer = pump(2)
      expect(flowIn(await here.get(path))).toBe(2)
    })

    test('cacheDuration: afterwards the source is queried again, and its copy is used only if it is unreachable', async () => {
      await register({ management: { cacheDuration: 'PT0.001S' } })
      answer = pump(1)
      await here.get(path)
      await new Promise((resolve) => setTimeout(resolve, 5))
      answer = pump(2)
      expect(flowIn(await here.get(path))).toBe(2)
      answer = { status: 503 }
      await new Promise((resolve) => setTimeout(resolve, 5))
      const copied = await here.get(path)
      expect([flowIn(copied), copied.headers['age']]).toEqual([2, '0'])
      expect(copied.headers['ngsild-warning']).toMatch(/^110 .*cannot be reached/)
    })

    test('cacheDuration: an entity of an unreachable source is taken from its cached lists, unless they are outdated', async () => {
      await register({ management: { cacheDuration: 'PT0.001S' } })
      const other = { ...pump(5).body, id: 'urn:p:8' }
      answer = { status: 200, body: [pump(4).body, other] }
      await here.get(`${entities}?type=http%3A%2F%2Fx.org%2FPump`)
      answer = { status: 503 }
      const copied = await here.get(path)
      expect([flowIn(copied), copied.headers['ngsild-warning']]).toEqual([4, expect.stringMatching(/^110 /)])
      answer = { status: 404 }
      expect((await here.get(path)).status).toBe(404)
      answer = { status: 503 }
      expect((await here.get(path)).status).toBe(404)
    })

    test('cacheDuration: a client with other credentials does not receive the copy', async () => {
      await register({
        ...info({ Authorization: 'urn:ngsi-ld:request' }),
        management: { cacheDuration: 'PT1H' },
      })
      answer = pump(1)
      await here.get(path, { Authorization: 'Bearer a' })
      answer = { status: 404 }
      expect((await here.get(path, { Authorization: 'Bearer b' })).status).toBe(404)
      expect((await here.get(path, { Authorization: 'Bearer a' })).status).toBe(200)
    })

    test('localOnly: the source is queried with local=true, regardless of the client', async () => {
      await register({ management: { localOnly: true } })
      answer = { status: 204 }
      await here.ask('DELETE', `${entities}/urn:p:7?type=http%3A%2F%2Fx.org%2FPump&local=false`)
      expect(asked[0]!.path).toBe(`${entities}/urn:p:7?type=http://x.org/Pump&local=true`)
    })

    test('timeout and cooldown: a source that is too slow causes 504, also during its cooldown', async () => {
      await register({ mode: 'redirect', management: { timeout: 20, cooldown: 60_000 } })
      answer = { status: 204, delayMs: 300 }
      const write = () =>
        here.send('PATCH', `${path}/attrs/flow?type=http%3A%2F%2Fx.org%2FPump`, { value: 2 })
      expect((await write()).status).toBe(504)
      answer = { status: 204 }
      expect((await write()).status).toBe(504)
      expect(asked).toHaveLength(1)
    })
  })

  describe('across a restart', () => {
    const body = {
      id: 'urn:r:1',
      type: 'ContextSourceRegistration',
      information: [{ entities: [{ type: 'Pump' }] }],
      management: { cacheDuration: 'PT1H' },
    }
    let dataFolder = ''
    const open = () => startHttpGateway({ dataFolder })
    beforeEach(() => {
      dataFolder = mkdtempSync(join(tmpdir(), 'selvedge-sources-'))
    })
    afterEach(() => rmSync(dataFolder, { recursive: true, force: true }))

    test('the last known copy is used only if the source is unreachable', async () => {
      const first = await open()
      await first.send('POST', registrations, { ...body, endpoint })
      const pump = (value: number) => ({ id: 'urn:p:1', type: 'Pump', flow: flow(value) })
      answer = { status: 200, body: pump(1) }
      const secret = { Authorization: 'Bearer a' }
      await first.get(`${entities}/urn:p:1`, secret)
      await first.close()
      const second = await open()
      answer = { status: 503 }
      const copied = await second.get(`${entities}/urn:p:1`, secret)
      expect([copied.status, copied.json()]).toEqual([200, pump(1)])
      expect(copied.headers).toMatchObject({
        age: expect.stringMatching(/^\d+$/),
        'ngsild-warning': expect.stringMatching(/^110 .*cannot be reached/),
      })
      answer = { status: 200, body: pump(2) }
      expect((await second.get(`${entities}/urn:p:1`, secret)).json()).toEqual(pump(2))
      expect((await second.ask('DELETE', `${registrations}/urn:r:1`)).status).toBe(204)
      await second.send('POST', registrations, { ...body, endpoint })
      await second.close()
      const third = await open()
      answer = { status: 503 }
      expect((await third.get(`${entities}/urn:p:1`, secret)).status).toBe(404)
      await third.close()
    })

    test('the statistics of registrations are kept', async () => {
      const first = await open()
      expect((await first.send('POST', registrations, { ...body, endpoint })).status).toBe(201)
      answer = { status: 404 }
      await first.get(`${entities}/urn:p:1`)
      await first.get(`${entities}/urn:p:1`)
      await first.close()
      const second = await open()
      const counted = (await second.get(`${registrations}/urn:r:1`)).json() as object
      await second.close()
      expect(counted).toMatchObject({ status: 'ok', timesSent: 2, lastSuccess: expect.any(String) })
    })
  })
})
