/**
 * A gateway with fewer file descriptors than idle connections: it keeps running, keeps acknowledged data,
 * serves connected clients, and accepts new ones after the others disconnect.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const entitiesPath = '/ngsi-ld/v1/entities'
const idle = 300

let gateway: GatewayProcess | undefined
const sockets = new Set<Socket>()
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  await gateway?.stop()
})

/** Idle connections; resolves when each is open or was closed by the gateway. */
async function openIdle(port: number): Promise<void> {
  await Promise.all(
    Array.from({ length: idle }, async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined)
      sockets.add(socket)
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined)
    }),
  )
}

/** Requests over one persistent connection. */
function keptClient(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return (method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'Content-Type': 'application/json' }
      const outgoing = request({ agent, port, host: '127.0.0.1', method, path, headers }, (incoming) => {
        const chunks = incoming.toArray().then((all) => all.join(''))
        chunks.then((text) => resolve({ status: incoming.statusCode!, text }), reject)
      })
      outgoing.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body))
    })
}

const connectPacket = Buffer.from([0x10, 13, 0, 4, ...Buffer.from('MQTT'), 4, 2, 0, 60, 0, 1, 0x78])

async function mqttAnswers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  sockets.add(socket)
  socket.write(connectPacket)
  const first = await Promise.race([once(socket, 'data'), once(socket, 'close')])
  const [bytes] = first as [unknown]
  return Buffer.isBuffer(bytes) && bytes[0] === 0x20 && bytes[3] === 0
}

it.each([
  ['some descriptors are reserved', {}],
  // Then connections use the last one, and nothing can be opened.
  ['none is reserved', { SELVEDGE_LIMITS: 'descriptorsReserved=0' }],
])('survives more idle connections than file descriptors when %s', async (_, env) => {
  gateway = await startGatewayProcess({ prefix: ['prlimit', '--nofile=256'], env, readyWithinMs: 60_000 })
  const { httpPort, mqttPort, httpUrl } = gateway
  const ask = keptClient(httpPort)
  const ids: string[] = []
  const create = async (): Promise<void> => {
    const id = `urn:x:${ids.length}`
    const { status } = await ask('POST', entitiesPath, { id, type: 'T' })
    expect(status).toBe(201)
    ids.push(id)
  }
  await create()
  await openIdle(httpPort)
  await openIdle(mqttPort)
  // Connected clients are served from memory while no other client can connect.
  for (let i = 0; i < 20; i++) await create()
  const { text } = await ask('GET', '/metrics')
  expect(Number(/^selvedge_resident_memory_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0)
  for (const socket of sockets) socket.destroy()
  const client = httpClient(httpUrl)
  await expect.poll(async () => (await client.get('/health/live')).status).toBe(200)
  await expect.poll(() => mqttAnswers(mqttPort)).toBe(true)
  const list = await client.get(`${entitiesPath}?type=T&limit=1000`)
  expect((list.json() as { id: string }[]).map(({ id }) => id)).toEqual(ids)
  // With the last descriptor in use, failures to open are logged, and nothing else fails.
  const faults = gateway.logLines().filter(({ event }) => event === 'gateway.fault')
  const isEmfile = (line: object): boolean => JSON.stringify(line).includes('EMFILE')
  expect(faults.filter((line) => !('SELVEDGE_LIMITS' in env && isEmfile(line)))).toEqual([])
})
