/**
 * Who is notified in the soak, by every way there is: over HTTP, over MQTT by the gateway's own broker, and by streams of
 * Server-Sent Events and WebSocket that confirm what they take. Each way has stations of its own, and counts the
 * different notifications that came beside those that writes must cause.
 */
import { createServer, get, type IncomingMessage } from 'node:http'
import { connectAsync } from 'mqtt'
import type { Server } from './servers.ts'
import { stationId, stationType } from './site.ts'

export interface Told {
  /** Beginnings of the ids of the stations that are watched. */
  readonly watched: string
  expected: number
  readonly ids: Set<string>
}

export interface Listeners {
  readonly ways: Readonly<Record<'HTTP' | 'MQTT' | 'SSE' | 'WebSocket', Told>>
  /** Counts a write that was answered. */
  written(path: string): void
  /** The stream of Server-Sent Events ends, and another takes its place. */
  comeAgain(): void
  close(): Promise<void>
}

/** What this process asks of the gateway. @throws where the answer is no success */
export type Ask = (method: string, path: string, body?: string) => Promise<void>

const subscriptions = '/ngsi-ld/v1/subscriptions'
const topic = 'soak/told'

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
  const told = (first: number, digits: number): Told => ({
    watched: stationId(first).slice(0, -digits),
    expected: 0,
    ids: new Set(),
  })
  return { HTTP: told(0, 3), MQTT: told(1000, 2), SSE: told(1100, 2), WebSocket: told(1200, 2) }
}

/** @param failed is told what goes wrong between two requests. */
export async function listen(
  gateway: Server,
  ask: Ask,
  failed: (error: unknown) => void,
): Promise<Listeners> {
  const ways = waysOf()
  const receiver = createServer((request, response) => {
    const { method, url } = request
    // Others on this machine may ask whoever has a port that was theirs.
    if (method !== 'POST' || url !== toldPath) return void response.writeHead(404).end()
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
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { clientId: 'soak-told' })
  client.on('message', (_, payload) => {
    ways.MQTT.ids.add(idIn(JSON.stringify((JSON.parse(payload.toString()) as { body: object }).body)))
  })
  await client.subscribeAsync(topic, { qos: 1 })

  const { port } = receiver.address() as { port: number }
  const endpoints: Record<keyof Listeners['ways'], object> = {
    HTTP: { uri: `http://127.0.0.1:${port}${toldPath}`, accept: 'application/json' },
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

const toldPath = '/told-by-the-soak'
const subscriptionId = (way: string): string => `urn:soak:kept:${way}`
const feedOf = (way: string): string => `${subscriptions}/${subscriptionId(way)}/notifications`
const idIn = (notification: string): string => (JSON.parse(notification) as { id: string }).id

/** A consumer that confirms each notification by a request, and comes again after what it took last. */
function streamEvents(
  { httpPort }: Server,
  told: Told,
  { ask, failed }: { readonly ask: Ask; readonly failed: (error: unknown) => void },
) {
  const feed = feedOf('SSE')
  let current: IncomingMessage | undefined
  /** Those whose place another was sent for, which end when it is there. */
  const leaving = new WeakSet<IncomingMessage>()
  let isOver = false
  /** One was sent for and is not there yet: another at the same time would take its place. */
  let isComing = false
  const take = (event: string): void => {
    const [, id, data] = /^id: (.*)\nevent: notification\ndata: (.*)$/.exec(event) ?? []
    if (id === undefined) return
    told.ids.add(idIn(data!))
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
  told: Told,
  failed: (error: unknown) => void,
): Promise<{ close(): void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${httpPort}${feedOf('WebSocket')}`)
  let isOver = false
  socket.addEventListener('message', ({ data }) => {
    const { id, notification } = JSON.parse(data as string) as { id: string; notification: { id: string } }
    told.ids.add(notification.id)
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
