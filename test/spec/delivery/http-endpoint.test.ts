/**
 * Sending a notification by HTTP: the kind of each failure, and the guarantees for all endpoints.
 */
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { systemClock } from '#base/time/clock.ts'
import { createHttpEndpoint, type OutgoingRequest } from '#delivery/http-endpoint.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { certificate, key } from '#test/kit/certificate.ts'
import { createReceiver } from '#test/kit/receiver.ts'

const endpoint = createHttpEndpoint(systemClock, { allowsLoopback: true })
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

const send = (uri: string, more: Partial<OutgoingRequest> = {}) =>
  endpoint.send({ uri, headers: { 'content-type': 'application/json' }, body: '{"a":1}', ...more })

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => server.close())
  return (server.address() as AddressInfo).port
}
/** A server whose connections are handled by the test. */
async function rawServer(connected: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    connected(socket)
  })
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${await listening(server)}/`
}
async function receiver() {
  const created = await createReceiver()
  cleanups.push(created.down)
  return created
}

describe('an attempt', () => {
  it.each([200, 201, 202, 204, 299])('succeeds with %i', async (status) => {
    const peer = await receiver()
    peer.answer(() => status)
    expect(await send(peer.url())).toEqual({ ok: true, status })
    expect(peer.received[0]).toMatchObject({ body: '{"a":1}', headers: { 'content-length': '7' } })
  })

  it.each([301, 307, 400, 404, 500, 503])('fails with %i', async (status) => {
    const peer = await receiver()
    peer.answer(() => ({ status, headers: { location: peer.url('/elsewhere') } }))
    expect(await send(peer.url())).toMatchObject({ ok: false, kind: 'status', status })
    expect(peer.received).toHaveLength(1)
  })

  it('reports the Retry-After of the endpoint', async () => {
    const peer = await receiver()
    peer.answer(() => ({ status: 503, headers: { 'retry-after': '7' } }))
    expect(await send(peer.url())).toMatchObject({ kind: 'status', retryAfterMs: 7000 })
  })

  it('reports a refused connection and an unknown host', async () => {
    const peer = await createReceiver()
    await peer.down()
    expect(await send(peer.url())).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('ECONNREFUSED'),
    })
    expect(await send('http://nowhere.invalid/')).toMatchObject({ kind: 'dns' })
  })

  it('times out without a complete response', async () => {
    const silent = await rawServer(() => undefined)
    expect(await send(silent, { timeoutMs: 100 })).toMatchObject({ kind: 'timeout' })
    const drips = await rawServer((socket) => {
      const timer = setInterval(() => socket.write('H'), 20)
      socket.on('close', () => clearInterval(timer))
    })
    expect(['timeout', 'protocol']).toContain(
      ((await send(drips, { timeoutMs: 300 })) as { kind: string }).kind,
    )
  })

  it('reports a closed connection and a response that is not HTTP', async () => {
    const cut = await rawServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
    expect(await send(cut)).toMatchObject({ kind: 'reset' })
    const ended = await rawServer((socket) => socket.once('data', () => socket.end()))
    expect(await send(ended)).toMatchObject({ kind: 'reset' })
    const other = await rawServer((socket) => socket.write('220 mail.example ESMTP\r\n'))
    expect(await send(other)).toMatchObject({ kind: 'protocol' })
  })

  it('uses the status as the result, however the body ends', async () => {
    const peer = await receiver()
    peer.answer(() => 'cut')
    expect(await send(peer.url())).toEqual({ ok: true, status: 200 })
    const endless = await rawServer((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n')
        const timer = setInterval(() => socket.write('x'.repeat(100_000)), 1)
        socket.on('close', () => clearInterval(timer))
      })
    })
    const passed = calmTime()
    expect(await send(endless)).toEqual({ ok: true, status: 200 })
    const hangs = await rawServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 202 OK\r\nContent-Length: 10\r\n\r\nab'))
    })
    expect(await send(hangs)).toEqual({ ok: true, status: 202 })
    expect(passed()).toBeLessThan(2500)
  })

  it('is repeated at once if the reused idle connection was closed', async () => {
    let requests = 0
    const answer = 'HTTP/1.1 204 No Content\r\n\r\n'
    const uri = await rawServer((socket) => {
      socket.on('data', () => (++requests === 2 ? socket.resetAndDestroy() : socket.write(answer)))
    })
    expect(await send(uri)).toEqual({ ok: true, status: 204 })
    expect(await send(uri)).toEqual({ ok: true, status: 204 })
    expect(requests).toBe(3)
  })

  it('keeps its connection open for the next one', async () => {
    const peer = await receiver()
    for (let i = 0; i < 20; i++) await send(peer.url())
    expect(peer.connections()).toBe(1)
  })

  it('with an invalid request is reported as unsendable, and never throws', async () => {
    const large = 'x'.repeat(limits.deliveryBytesMax.value + 1)
    for (const [uri, more] of [
      ['nonsense', {}],
      ['mqtt://127.0.0.1/topic', {}],
      ['http://127.0.0.1:1/', { body: large }],
      ['http://127.0.0.1:1/', { headers: { a: 'b\r\nc: d' } }],
      ['http://127.0.0.1:1/', { headers: { 'a b': 'c' } }],
    ] as const) {
      expect(await send(uri, more)).toMatchObject({ ok: false, kind: 'unsendable' })
    }
  })

  it('connects to this machine only if that is allowed', async () => {
    const outside = createHttpEndpoint(systemClock, { allowsLoopback: false })
    cleanups.push(outside.close)
    const peer = await receiver()
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.1']) {
      const uri = peer.url().replace('127.0.0.1', host)
      expect(await outside.send({ uri, headers: {}, body: '' })).toMatchObject({ kind: 'forbidden' })
    }
    expect(peer.connections()).toBe(0)
  })
})

describe('an attempt by TLS', () => {
  it('verifies the certificate, regardless of the environment', async () => {
    const server = createTlsServer({ key, cert: certificate }, (_, response) => response.writeHead(204).end())
    const port = await listening(server)
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    expect(await send(`https://127.0.0.1:${port}/`)).toMatchObject({ kind: 'tls' })
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    const trusting = createHttpEndpoint(systemClock, { allowsLoopback: true, ca: [certificate] })
    const request = { uri: `https://127.0.0.1:${port}/`, headers: {}, body: '{}' }
    expect(await trusting.send(request)).toEqual({ ok: true, status: 204 })
    trusting.close()
    const authorities = getCACertificates()
    setDefaultCACertificates([certificate])
    onTestFinished(() => setDefaultCACertificates(authorities))
    expect(await send(`https://127.0.0.1:${port}/`)).toEqual({ ok: true, status: 204 })
    server.closeAllConnections()
  })

  it('fails as TLS if the peer does not support TLS', async () => {
    const plain = await rawServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    )
    expect(await send(plain.replace('http:', 'https:'))).toMatchObject({ kind: 'tls' })
    const silent = await rawServer(() => undefined)
    expect(await send(silent.replace('http:', 'https:'), { timeoutMs: 200 })).toMatchObject({
      kind: 'timeout',
    })
  })
})
