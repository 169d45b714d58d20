/** Contexts, histories, subscriptions, registrations, MQTT packets and plugins. */
import { connectAsync } from 'mqtt'
import { limits } from '#base/limits/limits.ts'
import { createReceiver } from '#test/kit/receiver.ts'
import { get, ld, property, q, range, send } from './asking.ts'
import type { Site, StallCase } from './campaign.ts'

const terms = (count: number) =>
  Object.fromEntries(range(count, (i) => [`t${i}`, `https://example.org/terms#t${i}`]))
export const contexts: readonly StallCase[] = [
  ...[10_000, 45_000].map(
    (count): StallCase => ({
      name: `an inline context of ${count} terms`,
      act: (site) =>
        send(site, 'POST', '/entities', {
          '@context': [terms(count)],
          id: `urn:x:terms:${count}`,
          type: 't5',
          t1: property(1),
        }),
    }),
  ),
  {
    name: 'a hosted context of 10,000 terms',
    act: (site) => send(site, 'POST', '/jsonldContexts', { '@context': terms(10_000) }),
  },
  {
    name: 'a context of 10,000 prefixes of prefixes',
    act: (site) =>
      send(site, 'POST', '/entities', {
        '@context': [
          Object.fromEntries(
            range(10_000, (i) => [`p${i}`, i === 0 ? 'https://example.org/' : `p${i - 1}:x`]),
          ),
        ],
        id: 'urn:x:p',
        type: 'p5',
        t1: property(1),
      }),
  },
]

export const subscriptions: readonly StallCase[] = [
  {
    name: 'one change, 9,000 subscriptions to dead endpoints',
    prepare: async (site) => {
      for (let first = 0; first < 9000; first += 100)
        await Promise.all(
          range(100, (i) =>
            send(site, 'POST', '/subscriptions', {
              id: `urn:x:dead:${first + i}`,
              type: 'Subscription',
              entities: [{ type: 'Watched' }],
              notification: { endpoint: { uri: `http://127.0.0.1:9/${first + i}` } },
            }),
          ),
        )
    },
    act: async (site) => {
      const made = await send(site, 'POST', '/entities', {
        id: 'urn:x:watched',
        type: 'Watched',
        n: property(1),
      })
      await new Promise((resolve) => setTimeout(resolve, 5000))
      return made
    },
  },
  {
    name: 'a list of 1,000 subscriptions',
    act: (site) => get(site, '/subscriptions?limit=1000'),
    tidy: async ({ http }) => {
      for (let first = 0; first < 9000; first += 100)
        await Promise.all(
          range(100, (i) => http.ask('DELETE', `${ld}/subscriptions/urn:x:dead:${first + i}`)),
        )
    },
  },
  {
    name: 'a batch of 5,000 entities of 2 kB, notified to 4 subscribers',
    act: async (site) => {
      const receiver = await createReceiver()
      const notified = new Map<string, number>()
      receiver.answer(({ path, body }) => {
        const { data } = JSON.parse(body) as { data: readonly unknown[] }
        notified.set(path, (notified.get(path) ?? 0) + data.length)
        receiver.forget()
        return 204
      })
      for (let n = 0; n < 4; n++)
        await send(site, 'POST', '/subscriptions', {
          id: `urn:x:of-batch:${n}`,
          type: 'Subscription',
          entities: [{ type: 'OfBatch' }],
          notification: { endpoint: { uri: receiver.url(`/${n}`) } },
        })
      const attributes = Object.fromEntries(range(50, (i) => [`attribute${i}`, property(i)]))
      const batch = range(5000, (i) => ({ id: `urn:x:of-batch:${i}`, type: 'OfBatch', ...attributes }))
      const made = await send(site, 'POST', '/entityOperations/create', batch)
      const isWhole = () => [...notified.values()].filter((count) => count >= 5000).length === 4
      for (let i = 0; i < 600 && !isWhole(); i++) await new Promise((resolve) => setTimeout(resolve, 100))
      await receiver.down()
      return `${made}, notified ${[...notified.values()].join(' ')}`
    },
    tidy: ({ http }) =>
      Promise.all(range(4, (n) => http.ask('DELETE', `${ld}/subscriptions/urn:x:of-batch:${n}`))),
  },
  {
    name: 'a registration with 1,000 informations',
    act: (site) =>
      send(site, 'POST', '/csourceRegistrations', {
        id: 'urn:x:registration',
        type: 'ContextSourceRegistration',
        information: range(1000, (i) => ({
          entities: [{ type: `R${i}`, idPattern: `^urn:r:${i}` }],
          propertyNames: [`p${i}`],
        })),
        endpoint: 'http://127.0.0.1:9',
      }),
  },
  { name: 'registrations that match', act: (site) => get(site, '/csourceRegistrations?type=R5') },
  {
    name: 'it is gone again',
    act: async ({ http }) =>
      (await http.ask('DELETE', `${ld}/csourceRegistrations/urn:x:registration`)).status,
  },
]

/** @param nth position of the i-th instance in order of time. */
const sendHistory = (site: Site, id: string, nth: (i: number) => number) =>
  send(site, 'POST', '/temporal/entities', {
    id,
    type: 'Past',
    v: range(9990, (i) => ({
      type: 'Property',
      value: i,
      observedAt: new Date(1.7e12 + nth(i) * 1000).toISOString(),
    })),
  })

export const history: readonly StallCase[] = [
  {
    name: 'a history of nearly 10,000 instances in one body',
    act: (site) => sendHistory(site, 'urn:x:past', (i) => i),
  },
  {
    name: 'a history of nearly 10,000 instances in any order',
    act: (site) => sendHistory(site, 'urn:x:mixed', (i) => (i * i * 7919) % 9990),
  },
  {
    name: 'its history',
    act: (site) => get(site, '/temporal/entities/urn:x:past?timerel=after&timeAt=2020-01-01T00:00:00Z'),
  },
  {
    name: 'aggregated by the second',
    act: (site) =>
      get(
        site,
        '/temporal/entities/urn:x:past?timerel=after&timeAt=2020-01-01T00:00:00Z&options=aggregatedValues&aggrMethods=avg,stddev,distinctCount&aggrPeriodDuration=PT1S',
      ),
  },
  {
    name: 'histories of all',
    act: (site) =>
      get(
        site,
        `/temporal/entities?type=Plain&timerel=after&timeAt=2020-01-01T00:00:00Z&limit=1000&count=true`,
      ),
  },
  {
    name: 'histories of all with q',
    act: (site) =>
      get(
        site,
        `/temporal/entities?type=Plain&timerel=after&timeAt=2020-01-01T00:00:00Z&limit=1000&${q('n==-1')}`,
      ),
  },
]

/** Settles also where the gateway closes the connection instead. */
const publish = async ({ gateway }: Site, topic: string, payload: string): Promise<string> => {
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { reconnectPeriod: 0 })
  const outcome = await new Promise<string>((resolve) => {
    client.on('error', () => {}).once('close', () => resolve('closed'))
    client.publish(topic, payload, { qos: 1 }, (error) => resolve(error ? error.message : 'published'))
  })
  client.end(true)
  return outcome
}
export const packets: readonly StallCase[] = [
  {
    name: 'SenML with 100,000 records by HTTP',
    act: async ({ http }) =>
      (
        await http.ask('POST', '/senml', {
          body: JSON.stringify(range(100_000, (i) => ({ n: `d:${i}`, v: i }))),
          headers: { 'Content-Type': 'application/senml+json' },
        })
      ).status,
  },
  {
    name: 'SenML as large as a packet may be, by MQTT',
    act: (site) =>
      publish(
        site,
        'senml/d',
        `[${range(Math.floor(limits.mqttPacketBytesMax.value / 24), (i) => `{"n":"d:${i % 1000}","v":${i}}`)
          .join(',')
          .slice(0, limits.mqttPacketBytesMax.value - 200)
          .replace(/,[^{]*$|,\{[^}]*$/, '')}]`,
      ),
  },
  {
    name: 'SUBSCRIBE with 5,000 filters',
    act: async ({ gateway }) => {
      const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
      const granted = await client.subscribeAsync(range(5000, (i) => `+/f/${i}/#`)).catch(String)
      await client.endAsync()
      return Array.isArray(granted) ? `${granted.length} granted` : granted
    },
  },
  {
    name: 'a wildcard over 10,000 retained topics',
    prepare: async ({ gateway }) => {
      const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
      for (let first = 0; first < 10_000; first += 100)
        await Promise.all(
          range(100, (i) => client.publishAsync(`r/${first + i}/x`, 'x', { qos: 1, retain: true })),
        )
      await client.endAsync()
    },
    act: async ({ gateway }) => {
      const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
      let seen = 0
      client.on('message', () => seen++)
      await client.subscribeAsync(['r/+/x', 'r/#', '+/+/x'])
      await new Promise((resolve) => setTimeout(resolve, 3000))
      await client.endAsync()
      return `${seen} messages`
    },
  },
  { name: 'a topic of 30,000 levels', act: (site) => publish(site, 'a/'.repeat(30_000), 'x') },
]

export const plugins: readonly StallCase[] = [
  ...['/selvedge/v1/plugins', '/openapi.json', '/metrics', '/selvedge/v1/digests'].map(
    (path): StallCase => ({ name: `GET ${path}`, act: async ({ http }) => (await http.get(path)).status }),
  ),
  ...[
    ['GraphQL, nested 1,000 deep', `{${'a{'.repeat(1000)}b${'}'.repeat(1000)}}`],
    ['GraphQL, 100,000 fields', `{${'__typename '.repeat(100_000)}}`],
    [
      'GraphQL, fragments of fragments',
      `{...f0} ${range(2000, (i) => `fragment f${i} on Query{...f${i + 1} ...f${i + 1}}`).join(' ')} fragment f2000 on Query{__typename}`,
    ],
    [
      'GraphQL, 5,000 aliases',
      `{${range(5000, (i) => `a${i}:__schema{types{name fields{name}}}`).join(' ')}}`,
    ],
  ].map(
    ([name, query]): StallCase => ({
      name: name!,
      act: async ({ http }) => {
        const { status, text } = await http.send('POST', '/search/graphql', { query })
        return `${status} ${text.slice(0, 50)}`
      },
    }),
  ),
]
