/**
 * The HTTP interface beside the standard: SenML, health, metrics, the token, and its behaviour as a server.
 */
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'
import type { Frame } from '#contract'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'
import { type HttpGateway, httpClient, startHttpGateway } from '#test/kit/http-gateway.ts'

const started: HttpGateway[] = []
const start = async (options: Parameters<typeof startHttpGateway>[0]): Promise<HttpGateway> => {
  const gateway = await startHttpGateway(options)
  started.push(gateway)
  return gateway
}
afterEach(async () => {
  for (const gateway of started.splice(0)) await gateway.close()
})

describe('POST /senml', () => {
  const frames: Frame[] = []
  const gateway = gatewayOfFile({
    async takeFrame(frame) {
      frames.push(frame)
      const [accepted, rejected] = JSON.parse(Buffer.from(frame.payload).toString()) as [number, number]
      return {
        accepted,
        held: 0,
        problems: Array.from({ length: rejected }, (_, i) => ({ field: `[${i}].v`, reason: 'is no number' })),
      }
    },
  })
  const push = (body: unknown, type = 'application/senml+json') =>
    gateway.ask('POST', '/senml', { body, headers: { 'Content-Type': type } })

  it('shall pass the pack on as a frame and answer 204 if all of it was accepted', async () => {
    expect((await push([3, 0])).status).toBe(204)
    expect(frames.at(-1)).toMatchObject({
      topic: 'senml',
      contentType: 'application/senml+json',
      transport: 'http',
      retained: false,
      source: '127.0.0.1',
    })
    expect((await push([1, 0], 'application/senml+cbor')).status).toBe(204)
  })

  it('shall count rejected records, and be 400 if none was accepted', async () => {
    const part = await push([2, 1])
    expect([part.status, part.json()]).toEqual([
      200,
      { accepted: 2, rejected: 1, problems: [{ field: '[0].v', reason: 'is no number' }] },
    ])
    const none = await push([0, 500])
    expect(none.status).toBe(400)
    expect(none.text).toContain('[0].v: is no number')
    expect(none.text.length).toBeLessThan(1000)
  })

  it('shall be refused with a tenant, because devices belong to the default tenant', async () => {
    const before = frames.length
    const headers = { 'Content-Type': 'application/senml+json', 'NGSILD-Tenant': 'acme' }
    const answer = await gateway.ask('POST', '/senml', { body: [1, 0], headers })
    expect([answer.status, answer.text]).toEqual([422, expect.stringContaining('NGSILD-Tenant')])
    expect(frames).toHaveLength(before)
  })

  it('shall be 415 for another media type and 413 for a frame that is too large', async () => {
    expect((await push([1, 0], 'application/json')).status).toBe(415)
    expect((await push(Buffer.alloc(300_000))).status).toBe(413)
  })
})

describe('health', () => {
  it('shall be live, and ready unless there is a reason', async () => {
    const reasons: string[] = ['replaying the log']
    const gateway = await start({ unreadiness: () => reasons })
    expect((await gateway.get('/health/live')).json()).toEqual({ status: 'up', version })
    const waiting = await gateway.get('/health/ready')
    expect([waiting.status, waiting.json()]).toEqual([
      503,
      { status: 'not ready', version, reasons: ['replaying the log'], degraded: [] },
    ])
    reasons.pop()
    expect((await gateway.get('/health/ready/')).status).toBe(200)
  })

  it('shall show metrics as Prometheus text', async () => {
    const gateway = await start({})
    const answer = await gateway.get('/metrics')
    expect(answer.headers['content-type']).toContain('text/plain; version=0.0.4')
    expect(answer.text).toMatch(/^selvedge_http_requests_total 1$/m)
  })
})

describe('a token', () => {
  it('shall be required everywhere except at the liveness probe', async () => {
    const gateway = await start({ token: 'right' })
    for (const path of [
      '/ngsi-ld/v1/entities?type=T',
      '/metrics',
      '/health/ready',
      '/nowhere',
      '/health/live/../../metrics',
    ]) {
      const answer = await gateway.get(path)
      expect([path, answer.status, answer.headers['www-authenticate']]).toEqual([
        path,
        401,
        'Bearer realm="selvedge"',
      ])
    }
    expect((await gateway.get('/health/live')).status).toBe(200)
    expect((await gateway.get('/health/live/?x=1')).status).toBe(200)
  })

  it.each([
    [{ Authorization: 'Bearer right' }, 200],
    [{ Authorization: 'bearer  right ' }, 200],
    [{ 'X-Auth-Token': 'right' }, 200],
    [{ Authorization: 'Bearer wrong' }, 401],
    [{ Authorization: 'Bearer right ', 'X-Auth-Token': 'wrong' }, 200],
    [{ Authorization: 'Basic right' }, 401],
    [{ Authorization: 'Bearer rightright' }, 401],
    [{ 'X-Auth-Token': '' }, 401],
  ])('%j shall be answered by %i', async (headers, status) => {
    const gateway = await start({ token: 'right' })
    expect((await gateway.get('/metrics', headers as Record<string, string>)).status).toBe(status)
  })
})

describe('a path with an id or a name that has slashes', () => {
  const gateway = gatewayOfFile()
  const id = 'urn:ngsi-ld:Service:boiler:site/boiler/state'
  const name = 'http://www.w3.org/ns/sosa/hasSimpleResult'
  const path = `/ngsi-ld/v1/entities/${id}`

  it('shall be understood as if they were percent-encoded', async () => {
    const entity = { id, type: 'Service', [name]: { type: 'Property', value: 1 } }
    expect((await gateway.send('POST', '/ngsi-ld/v1/entities', entity)).status).toBe(201)
    for (const address of [path, `${path}/`, `/ngsi-ld/v1/entities/${encodeURIComponent(id)}`]) {
      expect((await gateway.get(`${address}?options=keyValues`)).json()).toEqual({
        id,
        type: 'Service',
        [name]: 1,
      })
    }
    const two = { [name]: { type: 'Property', value: 2 } }
    expect((await gateway.send('PATCH', `${path}/attrs/`, two)).status).toBe(204)
    expect((await gateway.send('PATCH', `${path}/attrs/${name}`, { value: 3 })).status).toBe(204)
    expect((await gateway.get(`${path}?options=keyValues`)).json()).toHaveProperty([name], 3)
    const history = await gateway.get(`/ngsi-ld/v1/temporal/entities/${id}`)
    expect([history.status, history.json()]).toEqual([200, expect.objectContaining({ id })])
    expect((await gateway.ask('DELETE', `${path}/attrs/${name}`)).status).toBe(204)
    expect((await gateway.ask('DELETE', path)).status).toBe(204)
    expect((await gateway.get(path)).text).toContain(`no entity ${id}`)
  })

  it('shall be 405 for an unsupported method, and 404 if nothing is there', async () => {
    const refused = await gateway.ask('POST', path)
    const allow = 'GET, PATCH, PUT, DELETE, HEAD, OPTIONS'
    expect([refused.status, refused.headers['allow']]).toEqual([405, allow])
    for (const nowhere of [
      '/ngsi-ld/v1/entities/no/uri',
      '/ngsi-ld/v1/entities//',
      '/ngsi-ld/v1/types/a/b',
    ]) {
      expect([nowhere, (await gateway.get(nowhere)).status]).toEqual([nowhere, 404])
    }
  })
})

describe('a server that closes', () => {
  it('shall finish requests in progress, close idle connections, and accept no more', async () => {
    let finish = (): void => undefined
    const held = new Promise<void>((resolve) => (finish = resolve))
    let reached = (): void => undefined
    const arrived = new Promise<void>((resolve) => (reached = resolve))
    const gateway = await startHttpGateway({
      async takeFrame() {
        reached()
        await held
        return { accepted: 1, held: 0, problems: [] }
      },
    })
    const idle = connect(gateway.port, '127.0.0.1')
    await new Promise((resolve) =>
      idle.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n', resolve),
    )
    await new Promise((resolve) => idle.once('data', resolve))
    const ended = new Promise((resolve) => idle.once('close', resolve))

    const underWay = gateway.ask('POST', '/senml', {
      body: '[]',
      headers: { 'Content-Type': 'application/senml+json' },
    })
    await arrived
    const closed = gateway.close()
    await ended
    await expect(httpClient(gateway.url).get('/health/live')).rejects.toThrow(/ECONNREFUSED/)
    finish()
    expect((await underWay).status).toBe(204)
    await closed
  })
})

describe('many bodies at once', () => {
  it('shall be refused with 503 if their sum is too large, and accepted when there is room again', async () => {
    const gateway = await start({})
    const most = Math.ceil(limits.bodiesBytesMax.value / limits.bodyBytesMax.value) + 1
    const head =
      'POST /ngsi-ld/v1/entities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
      `Content-Length: ${limits.bodyBytesMax.value}\r\n\r\n`
    const almost = Buffer.alloc(limits.bodyBytesMax.value - 1, ' ')
    const answers: string[] = []
    const sockets = Array.from({ length: most }, () => {
      const socket = connect(gateway.port, '127.0.0.1')
      socket.on('data', (chunk) => answers.push(chunk.toString()))
      socket.on('error', () => undefined)
      socket.write(head)
      socket.write(almost)
      return socket
    })
    await expect.poll(() => answers[0]).toMatch(/^HTTP\/1.1 503 .*Retry-After: 1/is)
    for (const socket of sockets) socket.destroy()
    const later = () => gateway.send('POST', '/ngsi-ld/v1/entities', { id: 'urn:x:later', type: 'T' })
    await expect.poll(async () => (await later()).status).toBe(201)
  })

  it('shall use memory for received bytes, not for announced ones', async () => {
    const gateway = await start({})
    const before = process.memoryUsage().arrayBuffers
    const sockets = Array.from({ length: 50 }, () => {
      const socket = connect(gateway.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(
        'POST /ngsi-ld/v1/entities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
          `Content-Length: ${limits.bodyBytesMax.value}\r\n\r\n`,
      )
      return socket
    })
    for (let i = 0; i < 20; i++) await gateway.ask('GET', '/ngsi-ld/v1/entities?type=T')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * limits.bodyBytesMax.value)
    for (const socket of sockets) socket.destroy()
  })

  it('shall count until their requests are answered, for example while a context is fetched', async () => {
    const asked: ServerResponse[] = []
    const slow = createServer((_, response) => void asked.push(response))
    await new Promise<void>((resolve) => void slow.listen(0, '127.0.0.1', resolve))
    const context = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/context`
    const gateway = await start({})
    setLimit('bodiesBytesMax', 1_000_000)
    const text = 'x'.repeat(400_000)
    let created = 0
    const create = (more: object) =>
      gateway.send('POST', '/ngsi-ld/v1/entities', {
        ...more,
        id: `urn:x:${created++}`,
        type: 'T',
        text: { type: 'Property', value: text },
      })
    const waiting = [create({ '@context': context }), create({ '@context': context })]
    await expect.poll(() => asked).toHaveLength(1)
    await expect.poll(async () => (await create({})).status).toBe(503)
    for (const response of asked) response.end('{"@context":{}}')
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([201, 201])
    await expect.poll(async () => (await create({})).status).toBe(201)
    restoreLimits()
    slow.close()
  })
})

describe('invalid HTTP', () => {
  const gateway = gatewayOfFile()
  const raw = (bytes: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(gateway.port, '127.0.0.1', () => socket.write(bytes))
      let text = ''
      socket.on('data', (chunk) => (text += chunk.toString()))
      socket.on('close', () => resolve(text))
      socket.on('error', reject)
    })

  it('shall be answered with the limit if headers are too large', async () => {
    const text = await raw(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1.1 431 /)
    expect(text).toContain(`more than ${limits.httpHeaderBytesMax.value} bytes`)
  })

  it('shall not include HTTP/1.0, which needs no Host', async () => {
    expect(await raw('GET /health/live HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /)
  })

  it.each([
    ['nonsense', 'nonsense\r\n\r\n', 400],
    [
      'a header that is too large',
      `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    [
      'a broken chunk',
      'POST /senml HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/senml+json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      400,
    ],
    [
      'two lengths',
      'POST /senml HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    ['no Host', 'GET /health/live HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a broken Host', 'GET /health/live HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400],
    ['a path that is none', 'GET nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
  ])('%s shall be refused', async (_, bytes, status) => {
    expect(await raw(bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect((await gateway.get('/health/live')).status).toBe(200)
  })
})
