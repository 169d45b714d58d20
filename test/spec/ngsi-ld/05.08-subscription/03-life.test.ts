/**
 * The life of a subscription [NGSI-LD 5.2.12, 5.2.14, 5.2.15, 5.8.6] over every transport, against a whole
 * gateway: when it notifies and when it does not, and which status and statistics it shows.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { createMosquitto } from '#test/kit/mosquitto.ts'
import { describePeer } from '#test/kit/peers.ts'
import { createReceiver } from '#test/kit/receiver.ts'

const subscriptions = '/ngsi-ld/v1/subscriptions'
let folder: string
let gateway: GatewayInside
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-life-'))
  gateway = await startGatewayInside(folder)
})
afterAll(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Notification {
  readonly subscriptionId: string
  readonly data: readonly { readonly t: number }[]
}

/** One transport for notifications. */
interface Way {
  readonly endpoint: object
  /** Starts consuming, if the transport requires it. */
  listen(id: string): Promise<void>
  readonly told: Notification[]
  end(): Promise<void>
}

async function byHttp(): Promise<Way> {
  const receiver = await createReceiver()
  const told: Notification[] = []
  receiver.answer(({ body }) => {
    told.push(JSON.parse(body) as Notification)
    return 200
  })
  return { endpoint: { uri: receiver.url() }, listen: async () => undefined, told, end: receiver.down }
}

async function byMqtt(path: string, version: string): Promise<Way> {
  const mosquitto = await createMosquitto(path)
  await mosquitto.start()
  const address = `mqtt://127.0.0.1:${mosquitto.port}`
  const client = await connectAsync(address)
  const told: Notification[] = []
  client.on('message', (_, payload) =>
    told.push((JSON.parse(payload.toString()) as { body: Notification }).body),
  )
  await client.subscribeAsync('told/#', { qos: 1 })
  const notifierInfo = [
    { key: 'MQTT-Version', value: version },
    { key: 'MQTT-QoS', value: '1' },
  ]
  return {
    endpoint: { uri: `${address}/told/here`, notifierInfo },
    listen: async () => undefined,
    told,
    async end() {
      await client.endAsync()
      await mosquitto.remove()
    },
  }
}

const feedOf = (id: string): string => `127.0.0.1:${gateway.httpPort}${subscriptions}/${id}/notifications`

async function byEvents(): Promise<Way> {
  const told: Notification[] = []
  let response: IncomingMessage | undefined
  return {
    endpoint: { uri: 'urn:selvedge:stream' },
    async listen(id) {
      response = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { Accept: 'text/event-stream' }
        get(`http://${feedOf(id)}`, { headers, agent: false }, resolve).on('error', reject)
      })
      let text = ''
      response.on('error', () => undefined)
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        const events = text.split('\n\n')
        text = events.pop()!
        for (const event of events) {
          const data = /\ndata: (.*)$/.exec(event)?.[1]
          if (data !== undefined) told.push(JSON.parse(data) as Notification)
        }
      })
    },
    told,
    async end() {
      response?.destroy()
    },
  }
}

async function bySocket(): Promise<Way> {
  const told: Notification[] = []
  let socket: WebSocket | undefined
  return {
    endpoint: { uri: 'urn:selvedge:stream' },
    async listen(id) {
      const opened = new WebSocket(`ws://${feedOf(id)}`)
      socket = opened
      await new Promise((resolve, reject) => opened.once('open', resolve).once('error', reject))
      opened.on('message', (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id: string; notification: Notification }
        told.push(message.notification)
        opened.send(JSON.stringify({ confirmed: message.id }))
      })
    },
    told,
    async end() {
      socket?.terminate()
    },
  }
}

let last = 0
/** A subscription over this transport, its entity type, and functions to change it. */
async function subscribe(way: Way, members: object = {}) {
  const n = ++last
  const id = `urn:x:life:${n}`
  const type = `Room${n}`
  const at = `${subscriptions}/${id}`
  const notification = { format: 'simplified', endpoint: way.endpoint }
  const body = { id, type: 'Subscription', entities: [{ type }], notification, ...members }
  const created = await gateway.send('POST', subscriptions, body)
  expect([created.status, created.text]).toEqual([201, ''])
  await way.listen(id)
  return {
    async write(t: number): Promise<void> {
      const entity = { id: `urn:x:room:${n}`, type, t: { type: 'Property', value: t } }
      const answer = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [entity])
      expect(answer.status).toBeLessThan(300)
    },
    async patch(fragment: object): Promise<void> {
      const answer = await gateway.send('PATCH', at, fragment)
      expect([answer.status, answer.text]).toEqual([204, ''])
    },
    shown: async (): Promise<Record<string, unknown> & { notification: Record<string, unknown> }> =>
      (await gateway.get(at)).json(),
    told: (): number[] =>
      way.told
        .filter(({ subscriptionId }) => subscriptionId === id)
        .flatMap(({ data }) => data.map(({ t }) => t)),
    remove: () => gateway.ask('DELETE', at),
  }
}

function lives(open: () => Promise<Way>): void {
  let way: Way
  beforeAll(async () => {
    way = await open()
  })
  afterAll(() => way.end())

  it('notifies while it is active, and shows its statistics', async () => {
    const one = await subscribe(way)
    expect((await one.shown()).notification).not.toHaveProperty('status')
    await one.write(1)
    await one.write(1)
    await one.write(2)
    await expect.poll(one.told).toEqual([1, 2])
    await one.patch({ isActive: false })
    expect(await one.shown()).toMatchObject({ status: 'paused' })
    await one.write(3)
    await one.patch({ isActive: true })
    await one.write(4)
    await expect.poll(one.told).toEqual([1, 2, 4])
    await expect.poll(async () => (await one.shown()).notification).toMatchObject({ timesSent: 3 })
    const { status, notification } = await one.shown()
    expect([status, notification['status']]).toEqual(['active', 'ok'])
    expect(notification).not.toHaveProperty('timesFailed')
    expect(notification).not.toHaveProperty('lastFailure')
    expect(notification['lastNotification']).toBe(notification['lastSuccess'])
    await one.remove()
  })

  it('does not notify after its expiry, until it gets a new one', async () => {
    const one = await subscribe(way, {})
    await one.write(1)
    await expect.poll(one.told).toEqual([1])
    await one.patch({ expiresAt: new Date(Date.now() + 500).toISOString() })
    await expect.poll(async () => (await one.shown())['status']).toBe('expired')
    await one.write(2)
    await one.patch({ expiresAt: new Date(Date.now() + 60_000).toISOString() })
    expect(await one.shown()).toMatchObject({ status: 'active' })
    await one.write(3)
    await expect.poll(one.told).toEqual([1, 3])
    await one.remove()
  })

  it('is notified once per window of throttling, with the first value and the last', async () => {
    const one = await subscribe(way, { throttling: 1 })
    for (const t of [1, 2, 3]) await one.write(t)
    await expect.poll(() => one.told().at(-1)).toBe(3)
    for (const t of [4, 5]) await one.write(t)
    await expect.poll(() => one.told().at(-1)).toBe(5)
    expect(one.told()[0]).toBe(1)
    await one.patch({ throttling: 'urn:ngsi-ld:null' })
    const before = one.told().length
    for (const t of [6, 7]) await one.write(t)
    await expect.poll(() => one.told().slice(before)).toEqual([6, 7])
    await one.remove()
  })

  it('notifies at intervals about matching entities, changed or not, and not at all without a match', async () => {
    const one = await subscribe(way, { timeInterval: 0.4, q: 't>5' })
    await one.write(1)
    await sleep(900)
    expect(one.told()).toEqual([])
    await one.write(6)
    await expect.poll(() => one.told().length).toBeGreaterThan(1)
    expect(new Set(one.told())).toEqual(new Set([6]))
    await one.patch({ timeInterval: 'urn:ngsi-ld:null' })
    await sleep(100)
    const before = one.told().length
    await one.write(7)
    await expect.poll(() => one.told().slice(before)).toEqual([7])
    await one.remove()
  })
}

describe('a subscription over HTTP', () => {
  lives(byHttp)

  it('shows a failure, and waits for its cooldown before the next attempt', async () => {
    const receiver = await createReceiver()
    receiver.answer(() => 500)
    const endpoint = { uri: receiver.url(), cooldown: 1500 }
    const way: Way = { endpoint, listen: async () => undefined, told: [], end: receiver.down }
    const one = await subscribe(way)
    await one.write(1)
    await expect.poll(async () => (await one.shown()).notification).toMatchObject({ status: 'failed' })
    const { notification } = await one.shown()
    expect(notification).toMatchObject({ timesSent: 1, timesFailed: 1, lastFailure: expect.any(String) })
    expect(notification).not.toHaveProperty('lastSuccess')
    receiver.answer(() => 200)
    await one.write(2)
    await expect.poll(() => receiver.taken().length).toBe(2)
    expect(receiver.received[1]!.at - receiver.received[0]!.at).toBeGreaterThan(1490)
    await expect
      .poll(async () => (await one.shown()).notification)
      .toMatchObject({ status: 'ok', timesSent: 3, timesFailed: 1 })
    await one.remove()
    await receiver.down()
  })
})

describe('a subscription over Server-Sent Events', () => lives(byEvents))

describe('a subscription over WebSocket', () => lives(bySocket))

describePeer('mosquitto', 'a subscription over MQTT 3.1.1', (path) => lives(() => byMqtt(path, 'mqtt3.1.1')))

describePeer('mosquitto', 'a subscription over MQTT 5', (path) => lives(() => byMqtt(path, 'mqtt5.0')))
