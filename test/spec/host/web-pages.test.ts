/**
 * A web page in a browser on the gateway's machine cannot read through a rebound name. It cannot write, open
 * WebSockets or take streams from another origin, at any listener without a token. Programs are not affected.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { httpClient, type Reply } from '#test/kit/http-gateway.ts'

const evil = 'http://evil.example'
const folders: string[] = []
let gateway: GatewayInside
let listeners: Record<string, string>

async function start(env: Record<string, string> = {}): Promise<GatewayInside> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-pages-'))
  folders.push(folder)
  return startGatewayInside(folder, env)
}

const room = '/ngsi-ld/v1/entities/urn:r:1'

beforeAll(async () => {
  gateway = await start({
    SELVEDGE_RANKING_PORT: '0',
    SELVEDGE_SEARCH_PORT: '0',
    SELVEDGE_INDEXING_PORT: '0',
    SELVEDGE_HTTP_ALLOWED_HOSTS: 'gate.example',
  })
  const plugins = Object.entries(gateway.pluginPorts).map(([name, port]) => [name, at(port)])
  listeners = { main: at(gateway.httpPort!), ...Object.fromEntries(plugins) }
  await gateway.send('POST', '/ngsi-ld/v1/entities', { id: 'urn:r:1', type: 'Room' })
  await gateway.send('POST', '/ngsi-ld/v1/subscriptions', {
    id: 'urn:s:1',
    type: 'Subscription',
    entities: [{ type: 'Room' }],
    notification: { endpoint: { uri: 'urn:selvedge:stream' } },
  })
})

afterAll(async () => {
  await gateway.close()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const at = (port: number): string => `http://127.0.0.1:${port}`
const ask = (
  url: string,
  method: string,
  headers: Record<string, string>,
): Promise<Pick<Reply, 'status' | 'json'>> => httpClient(url).ask(method, '', { headers })

/** `open`, or the status of a refused WebSocket. */
const openedBy = (url: string, headers: Record<string, string>): Promise<string> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', { headers })
    socket.on('open', () => {
      socket.close()
      resolve('open')
    })
    socket.on('error', ({ message }) => resolve(/\d{3}/.exec(message)?.[0] ?? message))
  })

it('under a rebound name is refused at every listener, for every request', async () => {
  expect(Object.keys(listeners).toSorted()).toEqual(['indexing', 'main', 'ranking', 'search'])
  const paths = ['', room, '/ngsi-ld/v1/entities?type=Room', '/health/live', '/nothing']
  for (const url of Object.values(listeners)) {
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status } = await ask(url + path, method, { Host: `evil.example:${new URL(url).port}` })
        expect([url, path, method, status]).toEqual([url, path, method, 421])
      }
    }
  }
  const body = (await ask(listeners['main']! + room, 'GET', { Host: 'evil.example' })).json()
  expect(body).toMatchObject({ title: 'Misdirected Request', status: 421 })
  expect((body as { detail: string }).detail).toContain('http.allowedHosts')
  const own = { Host: 'gate.example' }
  expect((await ask(listeners['main']! + room, 'GET', own)).status).toBe(200)
  expect((await ask(listeners['search']!, 'GET', own)).status).toBe(200)
})

describe('of another origin', () => {
  it('cannot write, also without a body, at every listener', async () => {
    const main = listeners['main']!
    const backups = `${main}/selvedge/v1/backups`
    for (const Origin of [evil, 'null', 'http://localhost:1']) {
      for (const url of [
        backups,
        `${main}/selvedge/v1/uplinks/urn:u/pause`,
        `${main}/selvedge/v1/uplinks/urn:u/test`,
        `${main}/selvedge/v1/uplinks/urn:u/reconcile`,
        `${main}/ngsi-ld/v1/entityOperations/delete`,
        // In every spelling of the path.
        `${main}/search/../selvedge/v1/backups`,
        `${main}/senml`,
        `${listeners['search']}/graphql`,
        `${listeners['ranking']}/ngsi-ld/v1/entities`,
        `${listeners['indexing']}/api/rebuild`,
      ])
        expect([url, (await ask(url, 'POST', { Origin })).status]).toEqual([url, 403])
      expect((await ask(main + room, 'DELETE', { Origin })).status).toBe(403)
      expect((await ask(main + room, 'PATCH', { Origin })).status).toBe(403)
    }
    expect((await ask(main + room, 'DELETE', { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
    expect((await ask(main + room, 'GET', { Origin: evil })).status).toBe(200)
    expect((await ask(backups, 'GET', {})).json()).toMatchObject({ backups: [] })
    const own = { Origin: 'https://gate.example' }
    expect((await ask(`${main}/ngsi-ld/v1/entities/urn:none`, 'DELETE', own)).status).toBe(404)
  })

  it('cannot open a WebSocket or take a stream', async () => {
    const main = listeners['main']!
    const stream = `${main}/ngsi-ld/v1/subscriptions/urn:s:1/notifications`
    const sockets = [stream, `${main}/search/graphql`, `${listeners['search']}/graphql`]
    for (const url of [...sockets, `${main}/selvedge/v1/tunnel`]) {
      expect([url, await openedBy(url, { Origin: evil })]).toEqual([url, '403'])
      expect([url, await openedBy(url, { Origin: 'null' })]).toEqual([url, '403'])
      expect([url, await openedBy(url, { Host: 'evil.example' })]).toEqual([url, '421'])
    }
    for (const url of sockets) {
      expect([url, await openedBy(url, {})]).toEqual([url, 'open'])
      expect([url, await openedBy(url, { Origin: new URL(url).origin })]).toEqual([url, 'open'])
    }
    // Media types are case-insensitive.
    for (const Accept of ['text/event-stream', 'Text/Event-Stream', '*/*, TEXT/EVENT-STREAM;q=0.1']) {
      for (const method of ['GET', 'HEAD']) {
        for (const page of [{ Origin: evil }, { 'Sec-Fetch-Site': 'cross-site' }])
          expect([Accept, method, (await ask(stream, method, { Accept, ...page })).status]).toEqual([
            ...[Accept, method, 403],
          ])
      }
    }
  })

  it('may use GraphQL if search.cors allows it, and nothing else', async () => {
    const shared = await start({ SELVEDGE_SEARCH_CORS: 'true', SELVEDGE_SEARCH_PORT: '0' })
    const main = at(shared.httpPort!)
    const query = { Origin: evil, 'Content-Type': 'application/json' }
    const body = '{"query":"{ sensors { id } }"}'
    for (const url of [`${main}/search`, at(shared.pluginPorts['search']!)]) {
      const answer = await httpClient(url).ask('POST', '/graphql', { headers: query, body })
      expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, '*'])
      expect(await openedBy(`${url}/graphql`, { Origin: evil })).toBe('open')
      expect(await openedBy(`${url}/graphql`, { Origin: evil, Host: 'evil.example' })).toBe('421')
    }
    expect((await ask(`${main}/search/../selvedge/v1/backups`, 'POST', { Origin: evil })).status).toBe(403)
    expect((await ask(`${main}/search/%2e%2e/selvedge/v1/backups`, 'POST', { Origin: evil })).status).toBe(
      403,
    )
    await shared.close()
  })
})

it('is refused without the token at a listener that requires one, under every name', async () => {
  const open = await start({ SELVEDGE_HOST: '0.0.0.0' })
  const main = at(open.httpPort!)
  expect((await ask(main + room, 'GET', { Host: 'evil.example' })).status).toBe(401)
  const sockets = [
    '/ngsi-ld/v1/subscriptions/urn:s:1/notifications',
    '/search/graphql',
    '/selvedge/v1/tunnel',
  ]
  for (const path of sockets)
    expect([path, await openedBy(main + path, { Origin: evil })]).toEqual([path, '401'])
  expect((await ask(`${main}/selvedge/v1/backups`, 'POST', { Origin: evil })).status).toBe(401)
  await open.close()
})
