/**
 * Notifications that consumers fetch by Server-Sent Events and WebSocket, against a whole gateway:
 * unconfirmed notifications are sent again to the next consumer, also after a restart; confirmed ones never.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'

const path = '/ngsi-ld/v1/subscriptions/urn:x:s'
const feed = `${path}/notifications`
const subscription = {
  id: 'urn:x:s',
  type: 'Subscription',
  entities: [{ type: 'Room' }],
  notification: { endpoint: { uri: 'urn:selvedge:stream' }, format: 'simplified' },
}

let folder: string
let gateway: GatewayInside
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-streams-'))
  gateway = await startGatewayInside(folder)
  expect((await gateway.send('POST', '/ngsi-ld/v1/subscriptions', subscription)).status).toBe(201)
})
afterEach(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

async function restart(): Promise<void> {
  await gateway.close()
  gateway = await startGatewayInside(folder)
}
const write = async (t: number): Promise<void> => {
  const entity = { id: 'urn:x:r', type: 'Room', t: { type: 'Property', value: t } }
  const answer = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [entity])
  expect(answer.status).toBeLessThan(300)
}

interface Told {
  readonly id: string
  readonly t: number
  /** The number of entities in the notification. */
  readonly count: number
}
const toldOf = (id: string, { data }: { data: [{ t: number }] }): Told => ({
  id,
  t: data[0].t,
  count: data.length,
})

/** Consumes Server-Sent Events. */
async function listen(headers: Record<string, string> = {}) {
  const told: Told[] = []
  let text = ''
  let isOver = false
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { headers: { Accept: 'text/event-stream', ...headers }, agent: false as const }
    get(`http://127.0.0.1:${gateway.httpPort}${feed}`, options, resolve).on('error', reject)
  })
  response.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    const events = text.split('\n\n')
    text = events.pop()!
    for (const event of events) {
      const [, id, data] = /^id: (.*)\nevent: notification\ndata: (.*)$/.exec(event) ?? []
      if (id !== undefined) told.push(toldOf(id, JSON.parse(data!)))
    }
  })
  const over = (): void => {
    isOver = true
  }
  response.on('close', over).on('error', over)
  return { response, told, isOver: () => isOver, end: () => response.destroy() }
}
const values = (told: readonly Told[]): number[] => told.map(({ t }) => t)

describe('a stream of Server-Sent Events', () => {
  it('sends pending and new notifications, and again the unconfirmed ones', async () => {
    await write(1)
    const first = await listen()
    expect(first.response.headers['content-type']).toBe('text/event-stream')
    // A proxy such as nginx would hold the events back.
    expect(first.response.headers['x-accel-buffering']).toBe('no')
    await write(2)
    await expect.poll(() => values(first.told)).toEqual([1, 2])
    first.end()
    const second = await listen()
    await expect.poll(() => values(second.told)).toEqual([1, 2])
    expect(second.told).toEqual(first.told)
    second.end()
    const third = await listen({ 'Last-Event-ID': first.told[0]!.id })
    await write(3)
    await expect.poll(() => values(third.told)).toEqual([2, 3])
    third.end()
    expect((await gateway.get(path)).json()).toMatchObject({
      notification: { status: 'ok', timesSent: 3, lastSuccess: expect.any(String) },
    })
  })

  it('continues after a restart, and an id from before cannot confirm newer notifications', async () => {
    await write(1)
    const before = await listen()
    await expect.poll(() => values(before.told)).toEqual([1])
    await restart()
    await expect.poll(before.isOver).toBe(true)
    const again = await listen()
    await expect.poll(() => again.told).toEqual(before.told)
    expect((await gateway.ask('DELETE', `${feed}?until=${again.told[0]!.id}`)).status).toBe(204)
    again.end()
    await restart()
    await write(2)
    const last = await listen({ 'Last-Event-ID': before.told[0]!.id })
    await expect.poll(() => values(last.told)).toEqual([2])
    last.end()
  })

  it('reports the entities of a batch in one notification, up to its limit', async () => {
    const many = limits.notificationEntitiesMax.value + 20
    await write(1)
    const batch = Array.from({ length: many }, (_, i) => ({
      id: `urn:x:many:${i}`,
      type: 'Room',
      t: { type: 'Property', value: i },
    }))
    expect((await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', batch)).status).toBe(201)
    const stream = await listen()
    await expect.poll(() => stream.told.map(({ count }) => count)).toEqual([1, many - 20, 20])
    stream.end()
    // This confirms the first part of the batch and everything before it.
    const rest = await listen({ 'Last-Event-ID': stream.told[1]!.id })
    await expect.poll(() => rest.told).toEqual(stream.told.slice(2))
    rest.end()
  })

  it('has one consumer at a time: the newest', async () => {
    const old = await listen()
    const young = await listen()
    await expect.poll(old.isOver).toBe(true)
    await write(1)
    await expect.poll(() => values(young.told)).toEqual([1])
    expect(old.told).toEqual([])
    young.end()
  })

  it('keeps its consumer and confirms nothing on HEAD', async () => {
    await write(1)
    const stream = await listen()
    await expect.poll(() => values(stream.told)).toEqual([1])
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': stream.told[0]!.id }
    const head = await gateway.ask('HEAD', feed, { headers })
    expect([head.status, head.headers['content-type'], head.text]).toEqual([200, 'text/event-stream', ''])
    await write(2)
    await expect.poll(() => values(stream.told)).toEqual([1, 2])
    stream.end()
    const next = await listen()
    await expect.poll(() => values(next.told)).toEqual([1, 2])
    next.end()
  })

  it('ends with its subscription, whose counters survive a restart', async () => {
    await write(1)
    const stream = await listen()
    await expect.poll(() => values(stream.told)).toEqual([1])
    await gateway.ask('DELETE', `${feed}?until=${stream.told[0]!.id}`)
    await restart()
    expect((await gateway.get(path)).json()).toMatchObject({ notification: { timesSent: 1 } })
    const last = await listen()
    expect((await gateway.ask('DELETE', path)).status).toBe(204)
    await expect.poll(last.isOver).toBe(true)
  })

  it('is rejected if there is no such stream', async () => {
    const accept = { Accept: 'text/event-stream' }
    expect((await gateway.get(feed)).status).toBe(406)
    expect((await gateway.get(feed, { ...accept, 'Last-Event-ID': 'x' })).status).toBe(400)
    expect((await gateway.get(feed.replace('urn:x:s', 'urn:x:none'), accept)).status).toBe(404)
    expect((await gateway.ask('DELETE', feed)).status).toBe(400)
    const notification = { endpoint: { uri: 'http://127.0.0.1:9/' } }
    await gateway.send('PATCH', path, { notification })
    expect((await gateway.get(feed, accept)).status).toBe(400)
    const ofSources = { ...subscription, id: 'urn:x:c' }
    expect((await gateway.send('POST', '/ngsi-ld/v1/csourceSubscriptions', ofSources)).status).toBe(400)
  })

  it('ends immediately when the gateway stops', async () => {
    const stream = await listen()
    const passed = calmTime()
    await restart()
    expect(passed()).toBeLessThan(3000)
    await expect.poll(stream.isOver).toBe(true)
  })
})

/** Consumes a WebSocket. */
function connect(): { told: Told[]; socket: WebSocket; closed: () => number | undefined } {
  const told: Told[] = []
  let closed: number | undefined
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}${feed}`)
  socket.on('message', (data: Buffer) => {
    const { id, notification } = JSON.parse(data.toString())
    told.push(toldOf(id, notification))
  })
  socket.on('close', (code) => {
    closed = code
  })
  return { told, socket, closed: () => closed }
}

describe('a stream by WebSocket', () => {
  it('sends everything until it is confirmed', async () => {
    await write(1)
    await write(2)
    const first = connect()
    await expect.poll(() => values(first.told)).toEqual([1, 2])
    first.socket.send(JSON.stringify({ confirmed: first.told[0]!.id }))
    await write(3)
    await expect.poll(() => values(first.told)).toEqual([1, 2, 3])
    first.socket.close()
    await expect.poll(first.closed).toBeDefined()
    const second = connect()
    await expect.poll(() => values(second.told)).toEqual([2, 3])
    second.socket.close()
  })

  it('is closed on an invalid message, and rejected like any other request', async () => {
    const odd = connect()
    await expect.poll(() => odd.socket.readyState).toBe(WebSocket.OPEN)
    odd.socket.send('hello')
    await expect.poll(odd.closed).toBe(1008)
    const none = new WebSocket(`ws://127.0.0.1:${gateway.httpPort}${feed.replace('urn:x:s', 'urn:x:none')}`)
    const refusal = await new Promise<string>((resolve) =>
      none.on('error', ({ message }) => resolve(message)),
    )
    expect(refusal).toContain('404')
    const h2c = await gateway.get('/health/live', { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c' })
    expect(h2c.status).toBe(200)
  })
})
