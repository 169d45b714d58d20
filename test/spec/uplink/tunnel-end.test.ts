/**
 * Both ends of a tunnel over a real WebSocket: concurrent requests both ways, the limits of pending requests,
 * a silent end, an end that sends invalid data; and which requests need which right.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { limits } from '#base/limits/limits.ts'
import {
  createTunnelEnd,
  type TunnelAnswer,
  type TunnelEnd,
  type TunnelRequest,
  type TunnelWire,
} from '#federation/tunnel-end.ts'
import { rightFor } from '#http/operator/tunnel-requests.ts'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'

const within = { interval: 10 }
const get = (path: string): TunnelRequest => ({ method: 'GET', path, headers: { via: '1.1 x' }, body: '' })

describe('the ends of a tunnel', () => {
  let server: WebSocketServer
  let proxy: FaultProxy
  let sockets: { near: WebSocket; far: WebSocket }
  let ends: { near: TunnelEnd; far: TunnelEnd }
  /** Ends of this test: those of the one before may close late. */
  let closed: string[]
  let serve: (request: TunnelRequest) => Promise<TunnelAnswer>

  beforeEach(async () => {
    const own: string[] = []
    closed = own
    serve = async ({ path, body }) => ({ status: 200, headers: { 'x-a': 'b' }, body: `${path} ${body}` })
    server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    proxy = await createFaultProxy({
      target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
      slowBytesPerSecond: 300_000,
    })
    const near = new WebSocket(proxy.url.replace('http', 'ws'), { perMessageDeflate: false })
    const wires: Record<string, TunnelWire> = {}
    near.on('upgrade', ({ socket }) => {
      wires['near'] = socket
    })
    server.on('connection', (_, { socket }) => {
      wires['far'] = socket
    })
    const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'open')])) as [[WebSocket], []]
    sockets = { near, far }
    const endOf = (socket: WebSocket, name: string): TunnelEnd =>
      createTunnelEnd(socket, {
        serve: (request) => serve(request),
        wire: wires[name]!,
        beatMs: 800,
        onClose: (code, reason) => own.push(`${name} ${code} ${reason}`),
      })
    ends = { near: endOf(near, 'near'), far: endOf(far, 'far') }
  })
  afterEach(async () => {
    for (const socket of Object.values(sockets)) socket.terminate()
    server.close()
    await proxy.close()
  })

  it('send each other concurrent requests, and keep bodies unchanged', async () => {
    const body = '{"a": "line\\nbreak", "é": 1}\nand more'
    const asked = [...Array(20).keys()].map((n) => ({ ...get(`/${n}`), method: 'POST', body }))
    const both = asked.flatMap((one) => [ends.near.exchange(one, 1000), ends.far.exchange(one, 1000)])
    const answers = await Promise.all(both)
    expect(answers).toEqual(
      asked.flatMap(({ path }) =>
        Array(2).fill({ status: 200, headers: { 'x-a': 'b' }, text: `${path} ${body}` }),
      ),
    )
  })

  it('limit pending requests, and time out', async () => {
    serve = () => new Promise(() => undefined)
    const most = limits.tunnelRequestsInFlight.value
    const many = Array.from({ length: most }, () => ends.near.exchange(get('/'), 300))
    expect(ends.near.inFlight()).toBe(most)
    expect(await ends.near.exchange(get('/'), 300)).toMatchObject({ failure: 'unreachable' })
    for (const answer of await Promise.all(many)) expect(answer).toMatchObject({ failure: 'timeout' })
    expect(ends.near.inFlight()).toBe(0)
    // Abandoned requests are still being served at the other end.
    expect(await ends.near.exchange(get('/'), 300)).toMatchObject({ status: 503 })
  })

  it('do not send messages beyond the limit', async () => {
    serve = async () => ({
      status: 200,
      headers: {},
      body: 'x'.repeat(limits.sourceAnswerBytesMax.value + 1),
    })
    expect(await ends.near.exchange(get('/'), 3000)).toMatchObject({ status: 503, text: '' })
  })

  it('notice a dead connection, and fail its requests at once', async () => {
    await proxy.set('blackhole')
    const asked = ends.near.exchange(get('/'), 10_000)
    expect(await asked).toMatchObject({ failure: 'unreachable' })
    await vi.waitFor(() => expect(closed).toContainEqual(expect.stringMatching(/^near 1006/)), within)
    expect(await ends.near.exchange(get('/'), 1000)).toMatchObject({ failure: 'unreachable' })
  })

  it('do not mistake a slow connection for a dead one', async () => {
    serve = async ({ body }) => ({ status: 200, headers: {}, body: String(body.length) })
    await proxy.set('slow')
    // It takes more than three heartbeats.
    const body = 'x'.repeat(750_000)
    const answer = await ends.near.exchange({ ...get('/'), body }, 60_000)
    expect(answer).toEqual({ status: 200, headers: {}, text: '750000' })
    expect(closed).toEqual([])
  })

  it.each(['nonsense', '{"answer": 1}\n', '[]\n', '{"ask": 1}\n'])('close on receiving %j', async (text) => {
    sockets.far.send(text)
    await vi.waitFor(() => expect(closed).toContainEqual(expect.stringMatching(/ 1002 /)), within)
  })

  it('ignore a response that nobody waits for', async () => {
    sockets.far.send('{"answer": 99, "status": 200}\n')
    expect(await ends.near.exchange(get('/on'), 1000)).toMatchObject({ status: 200 })
  })
})

describe('requests through a tunnel', () => {
  it.each([
    ['GET', '/ngsi-ld/v1/entities', 'read'],
    ['GET', '/ngsi-ld/v1/temporal/entities/urn:a', 'read'],
    ['POST', '/ngsi-ld/v1/entityOperations/query', 'read'],
    ['POST', '/ngsi-ld/v1/temporal/entityOperations/query', 'read'],
    ['GET', '/selvedge/v1/info', 'read'],
    ['POST', '/ngsi-ld/v1/subscriptions', 'subscribe'],
    ['DELETE', '/ngsi-ld/v1/subscriptions/urn:a', 'subscribe'],
    ['GET', '/ngsi-ld/v1/subscriptions/urn:a/notifications', undefined],
    ['POST', '/ngsi-ld/v1/entities', 'write'],
    ['POST', '/ngsi-ld/v1/entityOperations/delete', 'write'],
    ['POST', '/ngsi-ld/v1/csourceRegistrations', 'write'],
    ['GET', '/ngsi-ld/v1/csourceRegistrations', 'write'],
    ['GET', '/ngsi-ld/v1/csourceSubscriptions/urn:a', 'write'],
    ['POST', '/selvedge/v1/source-notifications/token', 'notify'],
    ['GET', '/selvedge/v1/tunnel', undefined],
    ['GET', '/metrics', undefined],
    ['POST', '/senml', undefined],
  ])('%s %s needs the right %s', (method, path, right) => expect(rightFor(method, path)).toBe(right))
})
