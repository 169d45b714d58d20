/** An exchange with a source ends with an answer or with the reason for its absence, never with an error. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPeer } from './peer.ts'

it('reports why a request cannot be sent', async () => {
  const peer = createPeer({ allowsLoopback: true })
  const exchange = (url: string, headers: Record<string, string>) =>
    peer.exchange({ method: 'GET', url, headers, timeoutMs: 1000 })
  expect(await exchange('http://127.0.0.1:1/', { 'ngsild-tenant': 'a\r\nb' })).toMatchObject({
    failure: 'unreachable',
    reason: expect.stringContaining('header') as string,
  })
  expect(await exchange('http://127.0.0.1:1/', {})).toMatchObject({ failure: 'unreachable' })
  peer.close()
})

describe('a connection that the source closed while it was idle', () => {
  /** Answers the first request of each connection, and resets it at the next. */
  let server: Server
  let url: string
  let methods: (string | undefined)[] = []
  beforeAll(async () => {
    const used = new WeakSet<Socket>()
    server = createServer((request, response) => {
      methods.push(request.method)
      request.resume()
      if (used.has(request.socket)) return void request.socket.resetAndDestroy()
      used.add(request.socket)
      response.end('[]')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => server.close())

  it('makes a read be sent once more on a new connection', async () => {
    const peer = createPeer({ allowsLoopback: true })
    methods = []
    const exchange = () => peer.exchange({ method: 'GET', url, headers: {}, timeoutMs: 5000 })
    for (let n = 0; n < 3; n++) expect(await exchange()).toMatchObject({ status: 200, text: '[]' })
    expect(methods).toEqual(['GET', 'GET', 'GET', 'GET'])
    peer.close()
  })

  it('fails a write, which the source may have executed', async () => {
    const peer = createPeer({ allowsLoopback: true })
    methods = []
    const exchange = () => peer.exchange({ method: 'POST', url, headers: {}, body: '{}', timeoutMs: 5000 })
    expect(await exchange()).toMatchObject({ status: 200 })
    expect(await exchange()).toMatchObject({ failure: 'unreachable' })
    expect(methods).toEqual(['POST', 'POST'])
    peer.close()
  })
})

describe('a source that stops answering on a kept connection', () => {
  /** Answers the first request for each path and no further one; records all. */
  async function open() {
    const received: (string | undefined)[] = []
    let resolveHeld: () => void = () => undefined
    const server = createServer(({ url = '' }, response) => {
      if (!received.includes(url)) response.end('[]')
      else resolveHeld()
      received.push(url)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const close = (): void => void server.close().closeAllConnections()
    return { received, origin, close, held: new Promise<void>((resolve) => (resolveHeld = resolve)) }
  }

  it('receives no second request after a timeout', async () => {
    const { received, origin, close } = await open()
    const peer = createPeer({ allowsLoopback: true })
    const exchange = (path: string) =>
      peer.exchange({ method: 'GET', url: `${origin}${path}`, headers: {}, timeoutMs: 300 })
    expect(await exchange('/a')).toMatchObject({ status: 200 })
    expect(await exchange('/a')).toMatchObject({ failure: 'timeout' })
    for (const path of ['/b', '/c', '/d']) expect(await exchange(path)).toMatchObject({ status: 200 })
    expect(received).toEqual(['/a', '/a', '/b', '/c', '/d'])
    peer.close()
    close()
  })

  it('receives no second request from a closed peer', async () => {
    const { received, origin, close, held } = await open()
    const [peer, other] = [createPeer({ allowsLoopback: true }), createPeer({ allowsLoopback: true })]
    const exchange = (path: string, by = peer) =>
      by.exchange({ method: 'GET', url: `${origin}${path}`, headers: {}, timeoutMs: 5000 })
    expect(await exchange('/a')).toMatchObject({ status: 200 })
    const second = exchange('/a')
    await held
    peer.close()
    expect(await second).toMatchObject({ failure: 'unreachable' })
    for (const path of ['/b', '/c', '/d']) expect(await exchange(path, other)).toMatchObject({ status: 200 })
    expect(received).toEqual(['/a', '/a', '/b', '/c', '/d'])
    other.close()
    close()
  })
})
