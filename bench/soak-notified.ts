/**
 * Receives the notifications of the soak by each transport: HTTP, MQTT through the gateway's own broker, and streams of
 * Server-Sent Events and WebSocket that confirm each notification. Each transport has its own stations, and compares
 * the number of distinct notifications received with the number that the writes must cause.
 */
import { createServer, get, type IncomingMessage } from 'node:http'
import { connectAsync } from 'mqtt'
import type { Server } from './servers.ts'
import { stationId, stationType } from './site.ts'

/** Notifications of one transport. */
export interface Notified {
  /** Prefix of the ids of the watched stations. */
  readonly watched: string
  expected: number
  readonly ids: Set<string>
}

export interface Listeners {
  readonly ways: Readonly<Record<'HTTP' | 'MQTT' | 'SSE' | 'WebSocket', Notified>>
  /** Counts a write that was answered, at the transport of its station. */
  written(path: string): void
  /** Replaces the connection of the stream of Server-Sent Events. */
  comeAgain(): void
  close(): Promise<void>
}

/** Sends a request to the gateway. @throws if the response reports no success. */
export type Ask = (method: string, path: string, body?: string) => Promise<void>

const subscriptions = '/ngsi-ld/v1/subscriptions'
const topic = 'soak/notified'

export function subscriptionOf(id: string, endpoint: object, idPattern: string): string {
  return JSON.stringify({
    id,
    type: 'Subscription',
    entities: [{ type: stationType, idPattern }],
    watchedAttributes: ['humidity'],
    notification: { endpoint },
  })
}

/** One station of five over HTTP, one of fifty by each other way. */
function waysOf(): Listeners['ways'] {
  const notified = (first: number, digits: number): Notified => ({
    watched: stationId(first).slice(0, -digits),
    expected: 0,
    ids: new Set(),
  })
  return {
    HTTP: notified(0, 3),
    MQTT: notified(1000, 2),
    SSE: notified(1100, 2),
    WebSocket: notified(1200, 2),
  }
}

/** @param failed called with each failure between two requests. */
export async function listen(
  gateway: Server,
  ask: Ask,
  failed: (error: unknown) => void,
): Promise<Listeners> {
  const ways = waysOf()
  const receiver = createServer((request, response) => {
    const { method, url } = request
    // Other programs on this machine may send requests to a port that was theirs.
    if (method !== 'POST' || url !== notifiedPath) return void response.writeHead(404).end()
    let body = ''
    request
      .on('data', (data: Buffer) => (body += data.toString()))
      .on('end', () => {
        try {
          ways.HTTP.ids.add(idIn(body))
        } catch (error) {
          failed(new TypeError(`a notification of ${body.length} characters: ${String(error)}`))
        }
        response.writeHead(204).end()
      })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { clientId: 'soak-notified' })
  client.on('message', (_, payload) => {
    ways.MQTT.ids.add(idIn(JSON.stringify((JSON.parse(payload.toString()) as { body: object }).body)))
  })
  await client.subscribeAsync(topic, { qos: 1 })

  const { port } = receiver.address() as { port: number }
  const endpoints: Record<keyof Listeners['ways'], object> = {
    HTTP: { uri: `http://127.0.0.1:${port}${notifiedPath}`, accept: 'application/json' },
    MQTT: {
      uri: `mqtt://127.0.0.1:${gateway.port}/${topic}`,
      notifierInfo: [{ key: 'MQTT-QoS', value: '1' }],
    },
    SSE: { uri: 'urn:selvedge:stream' },
    WebSocket: { uri: 'urn:selvedge:stream' },
  }
  for (const [way, { watched }] of Object.entries(ways)) {
    const endpoint = endpoints[way as keyof typeof endpoints]
    await ask('POST', subscriptions, subscriptionOf(subscriptionId(way), endpoint, `${watched}.*`))
  }
  const events = streamEvents(gateway, ways.SSE, { ask, failed })
  const socket = await openSocket(gateway, ways.WebSocket, failed)
  return {
    ways,
    written(path) {
      for (const way of Object.values(ways)) if (path.includes(way.watched)) way.expected++
    },
    comeAgain: events.comeAgain,
    async close() {
      events.close()
      socket.close()
      await client.endAsync()
      receiver.close()
    },
  }
}

const notifiedPath = '/notified-by-the-soak'
const subscriptionId = (way: string): string => `urn:soak:kept:${way}`
const feedOf = (way: string): string => `${subscriptions}/${subscriptionId(way)}/notifications`
const idIn = (notification: string): string => (JSON.parse(notification) as { id: string }).id

/** A consumer that confirms each notification by a request, and resumes after the last one that it confirmed. */
function streamEvents(
  { httpPort }: Server,
  notified: Notified,
  { ask, failed }: { readonly ask: Ask; readonly failed: (error: unknown) => void },
) {
  const feed = feedOf('SSE')
  let current: IncomingMessage | undefined
  /** Responses that end as soon as the next one begins. */
  const leaving = new WeakSet<IncomingMessage>()
  let isOver = false
  /** Whether a request waits for its response; a second one would replace it. */
  let isComing = false
  const take = (event: string): void => {
    const [, id, data] = /^id: (.*)\nevent: notification\ndata: (.*)$/.exec(event) ?? []
    if (id === undefined) return
    notified.ids.add(idIn(data!))
    ask('DELETE', `${feed}?until=${id}`).catch(failed)
  }
  const open = (): void => {
    if (isComing) return
    isComing = true
    if (current !== undefined) leaving.add(current)
    const headers = { Accept: 'text/event-stream' }
    get(`http://127.0.0.1:${httpPort}${feed}`, { headers, agent: false }, (response) => {
      isComing = false
      current?.destroy()
      current = response
      if (response.statusCode !== 200) failed(new TypeError(`the stream was answered ${response.statusCode}`))
      let text = ''
      response.on('data', (data: Buffer) => {
        text += data.toString()
        const whole = text.split('\n\n')
        text = whole.pop()!
        for (const event of whole) take(event)
      })
      response.on('close', () => {
        if (!isOver && !leaving.has(response)) failed(new TypeError('the stream of events ended'))
      })
      response.on('error', () => undefined)
    }).on('error', failed)
  }
  open()
  return {
    comeAgain: open,
    close() {
      isOver = true
      current?.destroy()
    },
  }
}

/** A consumer that confirms over its socket. */
async function openSocket(
  { httpPort }: Server,
  notified: Notified,
  failed: (error: unknown) => void,
): Promise<{ close(): void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${httpPort}${feedOf('WebSocket')}`)
  let isOver = false
  socket.addEventListener('message', ({ data }) => {
    const { id, notification } = JSON.parse(data as string) as { id: string; notification: { id: string } }
    notified.ids.add(notification.id)
    socket.send(JSON.stringify({ confirmed: id }))
  })
  socket.addEventListener('close', ({ code }) => {
    if (!isOver) failed(new TypeError(`the WebSocket was closed with ${code}`))
  })
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new TypeError('the WebSocket was refused')))
  })
  return {
    close() {
      isOver = true
      socket.close()
    },
  }
}
