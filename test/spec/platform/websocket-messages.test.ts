/**
 * Message limits of every WebSocket: a message at the limit is read, a larger one closes the connection with
 * 1009. No end compresses, since a small message could then become a large one.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { listen } from '#downward/copy-stream.ts'
import { createTunnel } from '#downward/tunnel.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const streamPath = '/ngsi-ld/v1/subscriptions/urn:x:s/notifications'
const request = '{"ask":7,"method":"GET","path":"/ngsi-ld/v1/entities/urn:x:none","headers":{}}\n'
const answer = /^\{"answer":7,/
const padded = (text: string, bytes: number): string => text.padEnd(bytes, ' ')

/** The first message that a socket receives, or the code with which it is closed. */
const outcomeOf = (socket: WebSocket): Promise<string> =>
  new Promise((resolve, reject) => {
    socket.on('message', (data: Buffer) => resolve(data.toString()))
    socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`.trimEnd()))
    socket.on('error', reject)
  })

describe('a route of the gateway', () => {
  let folder: string
  let gateway: GatewayInside

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-websockets-'))
    gateway = await startGatewayInside(folder, {
      SELVEDGE_INDEXING_ENABLED: 'false',
      SELVEDGE_RANKING_ENABLED: 'false',
    })
    const subscription = {
      id: 'urn:x:s',
      type: 'Subscription',
      entities: [{ type: 'Room' }],
      notification: { endpoint: { uri: 'urn:selvedge:stream' } },
    }
    expect((await gateway.send('POST', '/ngsi-ld/v1/subscriptions', subscription)).status).toBe(201)
    await vi.waitFor(async () => expect((await gateway.get('/search/version')).status).toBe(200), {
      interval: 20,
    })
  })
  afterAll(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  interface Route {
    readonly path: string
    readonly protocol?: string
    readonly options?: ClientOptions
    readonly limit: keyof typeof limits
    readonly message: string
    readonly expected: RegExp
  }
  const routes: readonly (Route & { readonly name: string })[] = [
    {
      name: 'notifications',
      path: streamPath,
      limit: 'streamMessageBytesMax',
      message: '{"confirmed":"x"}',
      expected: /^1008 not the id of a notification$/,
    },
    {
      name: 'tunnels',
      path: '/selvedge/v1/tunnel',
      options: { headers: { 'selvedge-alias': 'selvedge-1', 'selvedge-secret': 'secret'.repeat(3) } },
      limit: 'tunnelMessageBytesMax',
      message: request,
      expected: answer,
    },
    {
      name: 'a plugin',
      path: '/search/graphql',
      protocol: 'graphql-transport-ws',
      limit: 'componentMessageBytesMax',
      message: '{"type":"ping"}',
      expected: /^\{"type":"pong"\}$/,
    },
  ]
  const open = async ({ path, protocol, options }: Omit<Route, 'limit' | 'message' | 'expected'>) => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}${path}`, protocol, options)
    await once(socket, 'open')
    return socket
  }

  it.each(routes)('reads messages up to its limit, and never compresses: $name', async (route) => {
    const bytes = limits[route.limit].value
    for (const [size, expected] of [
      [bytes, route.expected],
      [bytes + 1, /^1009$/],
    ] as const) {
      const socket = await open(route)
      expect(socket.extensions).toBe('')
      const outcome = outcomeOf(socket)
      socket.send(padded(route.message, size))
      expect(await outcome).toMatch(expected)
      socket.terminate()
    }
  })

  it('executes a GraphQL document of 60 KB', async () => {
    const socket = await open({ path: '/search/graphql', protocol: 'graphql-transport-ws' })
    const received: string[] = []
    socket.on('message', (data: Buffer) => received.push(data.toString()))
    socket.on('close', (code) => received.push(String(code)))
    socket.send('{"type":"connection_init"}')
    await expect.poll(() => received).toEqual(['{"type":"connection_ack"}'])
    const query = `{ __typename } ${'# a comment'.padEnd(60_000, '.')}`
    socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query } }))
    await expect.poll(() => received).toHaveLength(3)
    expect(received[1]).toContain('{"id":"1","type":"next","payload":{"data":{"__typename":"Query"}')
    socket.terminate()
  })
})

describe('a connection to a centre', () => {
  let centre: WebSocketServer
  let url: string
  const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })

  beforeAll(async () => {
    centre = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: true })
    await once(centre, 'listening')
    url = `http://127.0.0.1:${(centre.address() as AddressInfo).port}/ngsi-ld/v1`
  })
  afterAll(() => centre.close())

  const serve = async () => ({ status: 200, headers: {}, body: '' })
  const settings = { allowsLoopback: true, ca: undefined }
  const ends = {
    'a tunnel': {
      message: request,
      expected: answer,
      open: () =>
        createTunnel(
          { centre: { headers: () => ({}) }, serve, clock: systemClock, random: () => 1, log },
          { ...settings, url, alias: 'selvedge-1', instance: 'x', secret: 'secret', beatMs: 60_000 },
        ),
    },
    'a stream of copies': {
      message: '{"id":"urn:x:1","notification":{}}',
      expected: /^\{"confirmed":"urn:x:1"\}$/,
      open: () =>
        listen(
          { ...settings, url, headers: {} },
          { onNotification: async () => undefined, onOpen: () => undefined },
        ),
    },
  }

  it.each(Object.entries(ends))(
    'reads messages up to its limit, and offers no compression: %s',
    async (_name, { message, expected, open }) => {
      const bytes = limits.tunnelMessageBytesMax.value
      for (const [size, wanted] of [
        [bytes, expected],
        [bytes + 1, /^1009/],
      ] as const) {
        const connected = once(centre, 'connection')
        const end = open()
        const [socket] = (await connected) as [WebSocket]
        expect(socket.extensions).toBe('')
        const outcome = outcomeOf(socket)
        socket.send(padded(message, size))
        expect(await outcome).toMatch(wanted)
        socket.terminate()
        await end.close()
      }
    },
  )
})
