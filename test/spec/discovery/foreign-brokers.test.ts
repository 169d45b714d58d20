/**
 * Registered brokers of other products: one requires tokens of an identity manager and supports neither
 * triggers nor next links; one is learnt from a context source registration.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { iri, stream } from './site.ts'

setLimit('followCheckMs', 1000)
const folder = mkdtempSync(join(tmpdir(), 'selvedge-foreign-'))
const patience = { interval: 200 }

/** A broker that records its requests and whose behaviour can be configured. */
const state = {
  token: 'first',
  isAway: false,
  streams: [1, 2, 3],
  subscriptions: new Map<
    string,
    { readonly notification: { readonly endpoint: { readonly uri: string } } }
  >(),
  tokensGiven: [] as string[],
  tenants: new Set<unknown>(),
  /** Warnings that it sends with entities. */
  warnings: [] as string[],
  /** How often the first page of its streams was requested. */
  readings: 0,
}
let server: Server
let address: string
let declared: Readonly<Record<string, string>>
let index: GatewayInside

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url!, 'http://a')
  const body = await bodyOf(request)
  const end = (status: number, json: unknown, headers: Record<string, string> = {}): void =>
    void response
      .writeHead(status, { 'Content-Type': 'application/json', ...headers })
      .end(JSON.stringify(json))
  if (url.pathname === '/v1/auth/tokens') {
    state.tokensGiven.push(body)
    const expires = new Date(Date.now() + 3_600_000).toISOString()
    return end(
      201,
      { token: { methods: ['password'], expires_at: expires } },
      { 'X-Subject-Token': state.token },
    )
  }
  if (state.isAway) return end(503, { title: 'away' })
  if (request.headers['x-auth-token'] !== state.token) return end(401, { title: 'no token' })
  state.tenants.add(request.headers['ngsild-tenant'])
  const [, , , kind, id] = url.pathname.split('/')
  if (kind === 'subscriptions' && request.method === 'POST') {
    const created = JSON.parse(body) as { id: string; notification: { endpoint: { uri: string } } }
    if ('notificationTrigger' in created) return end(400, { title: 'unknown member notificationTrigger' })
    state.subscriptions.set(created.id, created)
    return end(201, {}, { Location: `/ngsi-ld/v1/subscriptions/${created.id}` })
  }
  if (kind === 'subscriptions') {
    const known = state.subscriptions.get(decodeURIComponent(id!))
    if (request.method === 'DELETE') state.subscriptions.delete(decodeURIComponent(id!))
    return known === undefined ? end(404, {}) : end(200, known)
  }
  if (url.searchParams.has('count') || url.searchParams.has('local'))
    return end(400, { title: 'unknown parameter' })
  const limit = Number(url.searchParams.get('limit'))
  if (limit > 100) return end(403, { title: 'too many results' })
  const isStreams = url.searchParams.get('type') === iri.IotStream
  const offset = Number(url.searchParams.get('offset') ?? 0)
  if (isStreams && offset === 0 && limit > 1) state.readings++
  const all = isStreams ? state.streams.map((n) => stream(n)) : []
  const ids = url.searchParams.get('id')?.split(',')
  const found =
    ids === undefined ? all : state.streams.map((n) => stream(n)).filter((one) => ids.includes(one.id))
  const warned = state.warnings.length > 0 ? { 'NGSILD-Warning': state.warnings.join(', ') } : {}
  return end(200, found.slice(offset, offset + limit), warned)
}

async function startIndex(more: Record<string, string>): Promise<GatewayInside> {
  return startGatewayInside(join(folder, 'index'), more)
}

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, 'secret\n', { mode: 0o600 })
  const identity = { url: address, name: 'gateway', passwordFile }
  declared = {
    SELVEDGE_INDEXING_BROKERS: JSON.stringify([
      { url: address, tenant: 'site7', identity },
      { url: 'https://127.0.0.1:1', caFile: join(folder, 'nowhere.pem') },
    ]),
    SELVEDGE_INDEXING_PAGES_PER_SECOND: '50',
    // For client-given addresses; the settings may name this machine.
    SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'false',
  }
  index = await startIndex(declared)
})
afterAll(async () => {
  await index.close()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

type Registration = Readonly<Record<string, unknown>>
const registrationOf = async (host: string): Promise<Registration | undefined> =>
  ((await index.get('/indexing/api/broker')).json() as { result: Registration[] }).result.find(
    (one) => one['host'] === host,
  )
const streams = async (): Promise<string[]> => {
  const query = `type=${encodeURIComponent(iri.IotStream)}&limit=1000`
  const found = await index.get(`/indexing/ngsi-ld/v1/entities?${query}`)
  return (found.json() as { id: string }[]).map(({ id }) => id)
}
const following = async (): Promise<void> =>
  vi.waitFor(
    async () => expect(await registrationOf(address)).toMatchObject({ state: 'following' }),
    patience,
  )
const idOf = (n: number): string => `urn:ngsi-ld:IotStream:${n}`

describe('a broker in the settings', () => {
  it('is followed with tokens and tenant, though it lacks triggers and next links', async () => {
    state.streams = Array.from({ length: 250 }, (_, n) => n)
    await following()
    await vi.waitFor(async () => expect(await streams()).toHaveLength(250), patience)
    expect(await registrationOf(address)).toMatchObject({
      origin: 'declared',
      tenant: 'site7',
      tellsDeletions: false,
    })
    expect(state.tokensGiven).toEqual(['{"name":"gateway","password":"secret"}'])
    expect([...state.tenants]).toEqual(['site7'])
    expect(state.subscriptions.size).toBe(6)
  })

  it('with an unreadable file is reported and does not stop others from being followed', async () => {
    expect(await registrationOf('https://127.0.0.1:1')).toMatchObject({
      state: 'refused',
      reason: expect.stringContaining('nowhere.pem cannot be read'),
    })
  })

  it('may send more warnings than fit in a header', async () => {
    state.warnings = Array.from({ length: 100 }, (_, n) => `111 ${n} "${'x'.repeat(100)}"`)
    const query = new URLSearchParams({ type: iri.IotStream, idPattern: '.*', limit: '10' })
    const answer = await index.get(`/indexing/ngsi-ld/v1/entities?${query}`)
    state.warnings = []
    const warnings = String(answer.headers['ngsild-warning'])
    expect([answer.status, warnings]).toEqual([
      200,
      expect.stringMatching(/111 0 "x+", .* 199 - "and \d+ more"$/),
    ])
    expect(warnings.length).toBeLessThan(limits.warningsBytesMax.value + 100)
  })

  it('receives a new token after a 401', async () => {
    state.token = 'second'
    await vi.waitFor(() => expect(state.tokensGiven).toHaveLength(2), patience)
    await following()
  })

  it('cannot be removed by a client', async () => {
    const { _id: key } = (await registrationOf(address))!
    const refused = await index.ask('DELETE', `/indexing/api/broker/${String(key)}`)
    expect(refused.json()).toMatchObject({ status: 409, message: expect.stringContaining('settings') })
  })

  it('is read in full to find changes that it did not notify of', async () => {
    state.isAway = true
    await vi.waitFor(
      async () => expect(await registrationOf(address)).toMatchObject({ state: 'down', isAged: true }),
      patience,
    )
    state.streams = [...state.streams.slice(5), 700]
    state.isAway = false
    await following()
    const found = await streams()
    expect(found).toHaveLength(246)
    expect(found).not.toContain(idOf(0))
    expect(found).toContain(idOf(700))
    expect(await registrationOf(address)).toMatchObject({ lastCrawl: { added: 1, removed: 5, changed: 0 } })
  })

  it('is read once for a rebuild, whatever the number of concurrent rebuild requests', async () => {
    state.readings = 0
    const rebuild = () => index.send('POST', '/indexing/api/rebuild', {})
    const answers = await Promise.all([rebuild(), rebuild(), rebuild()])
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202])
    await vi.waitFor(async () => expect(await streams()).toHaveLength(246), patience)
    await following()
    expect(state.readings).toBe(1)
  })

  it('is removed when the settings no longer name it', async () => {
    await index.close()
    const passwordless = await startIndex({})
    index = passwordless
    await vi.waitFor(async () => expect(await streams()).toEqual([]), patience)
    expect(await registrationOf(address)).toBeUndefined()
  })

  it('is removed completely after a kill, and followed when the settings name it again', async () => {
    await index.close()
    index = await startIndex(declared)
    await following()
    await index.close()
    // As after a kill during the removal, before its entries are deleted.
    const file = new Database(join(folder, 'index', 'plugins', 'indexing.db'))
    const left = JSON.stringify({ secret: 'x', subscriptions: { stream: 'urn:x' }, leftAt: Date.now() })
    file.prepare("UPDATE broker SET state = 'leaving', facts = ? WHERE origin = 'declared'").run(left)
    file.close()
    state.isAway = true
    index = await startIndex(declared)
    await vi.waitFor(async () => expect(await streams()).toEqual([]), patience)
    expect(await registrationOf(address)).toBeUndefined()
    state.isAway = false
    await following()
    expect(await streams()).toHaveLength(246)
    await index.close()
    index = await startIndex({})
    await vi.waitFor(async () => expect(await registrationOf(address)).toBeUndefined(), patience)
  })
})

describe('a broker named by registrations', () => {
  it('is learnt if enabled, as long as a registration names it', async () => {
    const other = await startGatewayInside(join(folder, 'other'), {
      SELVEDGE_INDEXING_ENABLED: 'false',
      SELVEDGE_RANKING_ENABLED: 'false',
    })
    try {
      const url = `http://127.0.0.1:${other.httpPort}`
      await other.send('POST', '/ngsi-ld/v1/entities', stream(900))
      const registered = await index.send('POST', '/ngsi-ld/v1/csourceRegistrations', {
        id: 'urn:ngsi-ld:ContextSourceRegistration:other',
        type: 'ContextSourceRegistration',
        endpoint: url,
        information: [{ entities: [{ type: iri.IotStream }] }],
      })
      expect(registered.status).toBe(201)
      expect(await registrationOf(url)).toBeUndefined()
      await index.close()
      index = await startIndex({ SELVEDGE_INDEXING_LEARN: 'true' })
      await vi.waitFor(
        async () => expect(await registrationOf(url)).toMatchObject({ origin: 'learnt', state: 'following' }),
        patience,
      )
      expect(await streams()).toEqual([idOf(900)])
      await index.ask(
        'DELETE',
        '/ngsi-ld/v1/csourceRegistrations/urn:ngsi-ld:ContextSourceRegistration:other',
      )
      await index.close()
      index = await startIndex({ SELVEDGE_INDEXING_LEARN: 'true' })
      await vi.waitFor(async () => expect(await registrationOf(url)).toBeUndefined(), patience)
      await vi.waitFor(
        async () => expect((await other.get('/ngsi-ld/v1/subscriptions')).json()).toEqual([]),
        patience,
      )
      expect(await streams()).toEqual([])
    } finally {
      await other.close()
    }
  })
})
