/** MQTT 5 packets and openings of connections, as large and as many as may be. */
import { connectAsync, type IClientOptions } from 'mqtt'
import { WebSocket } from 'ws'
import { limits } from '#base/limits/limits.ts'
import { ld, range } from './asking.ts'
import type { Site, StallCase } from './campaign.ts'

const connect = ({ gateway }: Site, options: IClientOptions = {}) =>
  connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, {
    protocolVersion: 5,
    reconnectPeriod: 0,
    connectTimeout: 5000,
    ...options,
  })
/** Settles also where the gateway closes the connection. */
const withClient =
  (work: (client: Awaited<ReturnType<typeof connect>>) => Promise<unknown>, options?: IClientOptions) =>
  async (site: Site): Promise<string> => {
    const client = await connect(site, options)
    const closed = new Promise<string>((resolve) => {
      client.on('error', () => {}).once('close', () => resolve('closed'))
    })
    const outcome = await Promise.race([work(client).then(String, String), closed])
    client.end(true)
    return outcome
  }
const half = Math.floor(limits.mqttPacketBytesMax.value / 2)
const userProperties = (count: number) => Object.fromEntries(range(count, (i) => [`p${i}`, ['v', 'w']]))

export const packetsOfFive: readonly StallCase[] = [
  {
    name: 'PUBLISH with 5,000 user properties',
    act: withClient((client) =>
      client.publishAsync('a/b', 'x', { qos: 1, properties: { userProperties: userProperties(5000) } }),
    ),
  },
  {
    name: 'PUBLISH with half a packet of properties, retained',
    act: withClient((client) =>
      client.publishAsync('a/b', 'x', {
        qos: 1,
        retain: true,
        properties: {
          correlationData: Buffer.alloc(Math.min(half, 65_000)),
          contentType: 'x'.repeat(60_000),
        },
      }),
    ),
  },
  {
    name: '5,000 PUBLISH by 16 topic aliases',
    act: withClient(async (client) => {
      for (let i = 0; i < 16; i++)
        await client.publishAsync(`alias/${i}`, 'x', { qos: 1, properties: { topicAlias: i + 1 } })
      const sent = range(5000, (i) =>
        client.publishAsync('', 'x', { qos: 1, properties: { topicAlias: (i % 16) + 1 } }),
      )
      return (await Promise.all(sent)).length
    }),
  },
  {
    name: 'SUBSCRIBE with 1,000 filters and an identifier, then all are used',
    act: withClient(async (client) => {
      await client
        .subscribeAsync(
          range(1000, (i) => `+/s/${i}/#`),
          { qos: 1, properties: { subscriptionIdentifier: 7 } },
        )
        .catch(() => undefined)
      await Promise.all(range(1000, (i) => client.publishAsync(`x/s/${i}/y`, 'x', { qos: 1 })))
      await client.unsubscribeAsync(range(1000, (i) => `+/s/${i}/#`))
      return 'unsubscribed'
    }),
  },
  {
    name: 'a will of half a packet that 200 clients leave',
    act: async (site) => {
      const will = {
        topic: 'will/x',
        payload: Buffer.alloc(Math.min(half, 60_000)),
        qos: 1,
        retain: true,
      } as const
      const clients = await Promise.all(range(200, (i) => connect(site, { clientId: `w${i}`, will })))
      for (const client of clients) client.on('error', () => {}).stream.destroy()
      await new Promise((resolve) => setTimeout(resolve, 1000))
      return `${clients.length} left`
    },
  },
  {
    name: '500 clients connect at once, with sessions',
    act: async (site) => {
      const options = { clean: false, properties: { sessionExpiryInterval: 60 } }
      const clients = await Promise.all(
        range(500, (i) => connect(site, { ...options, clientId: `c${i}` }).catch(() => undefined)),
      )
      const connected = clients.filter((client) => client !== undefined)
      await Promise.all(connected.map((client) => client.endAsync()))
      return `${connected.length} connected`
    },
  },
]

const stream = { type: 'Subscription', entities: [{ type: 'Streamed' }] }
export const openings: readonly StallCase[] = [
  {
    name: '200 WebSockets of GraphQL are opened',
    act: async ({ gateway }) => {
      const sockets = range(
        200,
        () => new WebSocket(`ws://127.0.0.1:${gateway.httpPort}/search/graphql`, 'graphql-transport-ws'),
      )
      const opened = await Promise.all(
        sockets.map(
          (socket) =>
            new Promise<boolean>((resolve) => {
              socket.once('open', () => resolve(true)).once('error', () => resolve(false))
            }),
        ),
      )
      for (const socket of sockets) socket.terminate()
      return `${opened.filter(Boolean).length} opened`
    },
  },
  {
    name: '100 event streams of subscriptions are opened',
    act: async ({ http, gateway }) => {
      const statuses = await Promise.all(
        range(100, async (i) => {
          const id = `urn:x:stream:${i}`
          await http.send('POST', `${ld}/subscriptions`, {
            ...stream,
            id,
            notification: { endpoint: { uri: 'urn:selvedge:stream' } },
          })
          const ended = new AbortController()
          const answer = await fetch(`${gateway.httpUrl}${ld}/subscriptions/${id}/notifications`, {
            headers: { Accept: 'text/event-stream' },
            signal: ended.signal,
          })
          ended.abort()
          return answer.status
        }),
      )
      return [...new Set(statuses)].join()
    },
  },
]
