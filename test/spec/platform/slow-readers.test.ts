/**
 * Clients that send many requests and do not read: the memory for them stays within its budget. Clients that
 * read are served; those that do not are disconnected.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const entitiesPath = '/ngsi-ld/v1/entities'
const entities = 8
const megabyte = 1_000_000
const clients = 300
// Without a limit it is 2.4 GB; `npm run slow-readers` measures 90 MB with 1,000 clients.
const growthMax = 150 * megabyte

let gateway: GatewayProcess
let client: HttpClient
const sockets: Socket[] = []

beforeAll(async () => {
  // Shorter than the default of a minute, to keep the test short.
  const env = { SELVEDGE_LIMITS: 'outflowWaitMs=1500,outflowPressureMs=700,outflowStallMs=3000' }
  gateway = await startGatewayProcess({ env })
  client = httpClient(gateway.httpUrl)
  for (let i = 0; i < entities; i++) {
    const value = String(i).padEnd(megabyte, 'x')
    const body = { id: `urn:big:${i}`, type: 'Big', text: { type: 'Property', value } }
    expect((await client.send('POST', entitiesPath, body)).status).toBe(201)
  }
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.stop()
})

async function metric(name: string): Promise<number> {
  const { text } = await client.get('/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

/** Sends requests and reads nothing of the responses. */
function requestWithoutReading(text: string): void {
  const socket = connect(gateway.httpPort, '127.0.0.1').pause()
  sockets.push(socket)
  socket.on('error', () => undefined)
  socket.write(text)
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`

it('shortens a page of large entities and links to the next', async () => {
  const query = JSON.stringify({ type: 'Query', entities: [{ type: 'Big' }] })
  const ways: ((path: string) => ReturnType<HttpClient['get']>)[] = [
    (path) => client.get(path),
    (path) => client.get(`${path}&options=concise`),
    (path) =>
      client.send('POST', path.replace(`${entitiesPath}?`, '/ngsi-ld/v1/entityOperations/query?'), query),
  ]
  for (const [i, way] of ways.entries()) {
    const start = i < 2 ? `${entitiesPath}?type=Big&limit=30` : `${entitiesPath}?limit=30`
    const ids = new Set<string>()
    for (let path: string | undefined = start; path !== undefined; ) {
      const answer = await way(path)
      expect([answer.status, answer.text.length < 3 * megabyte]).toEqual([200, true])
      for (const { id } of answer.json() as { id: string }[]) ids.add(id)
      path = /<([^>]+)>;rel="next"/.exec(answer.headers['link'] ?? '')?.[1]
      if (path !== undefined && i === 2) path = path.replace(/^[^?]*/, entitiesPath)
      path = path?.replace('&options=concise', '')
    }
    expect(ids.size).toBe(entities)
  }
})

it('limits the bytes held for clients that do not read, and disconnects them', async () => {
  const before = await metric('selvedge_resident_memory_bytes')
  const list = `${entitiesPath}?type=Big&limit=30`
  const query = JSON.stringify({ type: 'Query', entities: [{ type: 'Big' }] })
  const requests = [
    get(list),
    get(`${list}&options=sysAttrs`),
    post('/ngsi-ld/v1/entityOperations/query?limit=30', query),
    // All of these at once on one connection.
    get(`${entitiesPath}/urn:big:1`).repeat(20),
  ]
  let most = before
  const look = async (): Promise<void> => {
    most = Math.max(most, await metric('selvedge_resident_memory_bytes'))
  }
  for (let i = 0; i < clients; i++) requestWithoutReading(requests[i % requests.length]!)
  // Each was rejected, is held within the budget, or was disconnected.
  await expect
    .poll(async () => {
      await look()
      return (await metric('selvedge_clients_stalled_total')) + (await metric('selvedge_http_errors_total'))
    })
    .toBeGreaterThan(clients * 0.75)
  expect(await metric('selvedge_clients_stalled_total')).toBeGreaterThan(0)
  expect(most - before).toBeLessThan(growthMax)
  await gateway.event('connection.stalled')
  // A client that reads is served.
  await expect.poll(async () => (await client.get(list)).status).toBe(200)
  await expect.poll(() => metric('selvedge_unsent_bytes')).toBe(0)
})
