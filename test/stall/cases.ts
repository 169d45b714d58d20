/**
 * Hostile cases: every kind of request with the largest input that the limits allow. A case that is refused counts as
 * well as one that is answered; only the event loop decides.
 */
import { connectAsync } from 'mqtt'
import { limits } from '#base/limits.ts'
import type { Site, StallCase } from './campaign.ts'

const ld = '/ngsi-ld/v1'
const property = (value: unknown) => ({ type: 'Property', value })

const send = async ({ http }: Site, method: string, path: string, body: unknown): Promise<string> => {
  const { status, text } = await http.send(method, ld + path, body)
  return `${status} ${/"detail":"([^"]*)/.exec(text)?.[1] ?? `${text.length} characters`}`
}
const get = async ({ http }: Site, path: string): Promise<string> => {
  const { status, text } = await http.get(ld + path)
  return `${status} ${/"detail":"([^"]*)/.exec(text)?.[1] ?? `${text.length} characters`}`
}
const range = <T>(length: number, make: (i: number) => T): T[] => Array.from({ length }, (_, i) => make(i))

const long = 'a'.repeat(50_000)
const texts: StallCase['prepare'] = async (site) => {
  for (let part = 0; part < 3; part++)
    await send(
      site,
      'POST',
      '/entityOperations/upsert',
      range(100, (i) => ({ id: `urn:x:long:${part}:${i}`, type: 'Long', s: property(`${long}!`) })),
    )
}
const q = (text: string): string => `q=${encodeURIComponent(text)}`

const patterns: readonly StallCase[] = [
  {
    name: 'q (a|aa)+$ over 300 texts of 50 kB',
    prepare: texts,
    act: (site) => get(site, `/entities?type=Long&limit=1000&${q('s~="(a|aa)+$"')}`),
  },
  {
    name: 'q (.*a){20}$ over 300 texts of 50 kB',
    act: (site) => get(site, `/entities?type=Long&limit=1000&${q('s~="(.*a){20}$"')}`),
  },
  {
    name: 'q [ab]*a[ab]{20}[cd]$ over 300 texts of 50 kB',
    act: (site) => get(site, `/entities?type=Long&limit=1000&${q('s~="[ab]*a[ab]{20}[cd]$"')}`),
  },
  {
    name: 'q with 100 patterns',
    act: (site) =>
      get(site, `/entities?type=Long&limit=1000&${q(range(100, (i) => `s~="(a|aa)+${i}$"`).join('|'))}`),
  },
  {
    name: 'q ~= over all, count',
    act: (site) => get(site, `/entities?type=Plain&count=true&${q('s~="t (1|2|3)+[^0-9]$"')}`),
  },
  {
    name: 'idPattern over all, count',
    act: (site) => get(site, `/entities?type=Plain&count=true&idPattern=${encodeURIComponent('(1|2|3)+x$')}`),
  },
  {
    name: 'a write that 200 subscriptions with patterns look at',
    prepare: async (site) => {
      for (let i = 0; i < 200; i++)
        await send(site, 'POST', '/subscriptions', {
          id: `urn:x:pattern:${i}`,
          type: 'Subscription',
          entities: [{ type: 'Long' }],
          q: `s~="(a|aa)+b{${i + 1}}$"`,
          notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
        })
    },
    act: (site) => send(site, 'PATCH', '/entities/urn:x:long:0:1/attrs', { s: property(long) }),
  },
]

const wide = (names: number, first = 0) =>
  Object.fromEntries(range(names, (i) => [`a${first + i}`, property(i)]))
const shapes: readonly StallCase[] = [
  {
    name: 'attributes appended, 1,000 at a time, 24 times',
    prepare: (site) => send(site, 'POST', '/entities', { id: 'urn:x:wide', type: 'Wide' }),
    act: async (site) => {
      let last = ''
      for (let i = 0; i < 24; i++)
        last = await send(site, 'POST', '/entities/urn:x:wide/attrs', wide(1000, 1000 * i))
      return last
    },
  },
  {
    name: 'an entity of the most attributes, sysAttrs',
    act: (site) => get(site, '/entities/urn:x:wide?options=sysAttrs'),
  },
  {
    name: 'its list of attributes, wide pick',
    act: (site) => get(site, `/entities/urn:x:wide?pick=${range(600, (i) => `a${i}`).join(',')}`),
  },
  {
    name: 'nested arrays of 8 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":[${'[],'.repeat(2_700_000)}[]]}}`,
      ),
  },
  {
    name: 'nested objects of 1 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":[${'{"a":{}},'.repeat(110_000)}1]}}`,
      ),
  },
  {
    name: 'arrays 1,000,000 deep',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":${'['.repeat(1e6)}${']'.repeat(1e6)}}}`,
      ),
  },
  {
    name: 'a number of 8 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N","a":{"type":"Property","value":${'1'.repeat(8e6)}}}`,
      ),
  },
  {
    name: 'a body of 8 MB of members',
    act: (site) =>
      send(
        site,
        'POST',
        '/entities',
        `{"id":"urn:x:n","type":"N",${range(400_000, (i) => `"a${i}":1`).join(',')}}`,
      ),
  },
  {
    name: 'a batch of 10,000 entities',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(10_000, (i) => ({ id: `urn:x:batch:${i}`, type: 'Batch', n: property(i) })),
      ),
  },
  {
    name: 'a batch of 30 entities of 1 MB',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(30, (i) => ({ id: `urn:x:mega:${i}`, type: 'Mega', n: property('x'.repeat(1_000_000)) })),
      ),
  },
  { name: 'entities of 1 MB', act: (site) => get(site, '/entities?type=Mega&limit=1000') },
  {
    name: 'a batch of 10,000 deletes',
    act: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/delete',
        range(10_000, (i) => `urn:x:batch:${i}`),
      ),
  },
]

const polygon = (positions: number) => {
  const at = (i: number) => (6.28 * i) / positions
  const ring = range(positions - 1, (i) =>
    [10 * Math.cos(at(i)), 10 * Math.sin(at(i))].map((x) => Math.round(1000 * x) / 1000),
  )
  return [[...ring, ring[0]]]
}
const queries: readonly StallCase[] = [
  { name: 'orderBy over all', act: (site) => get(site, '/entities?type=Plain&orderBy=n&limit=1000') },
  {
    name: 'orderBy over all by a text',
    act: (site) => get(site, '/entities?type=Plain&orderBy=s&collation=de'),
  },
  { name: 'count of all', act: (site) => get(site, '/entities?type=Plain&count=true&limit=0') },
  {
    name: 'a page far behind',
    act: (site) => get(site, `/entities?type=Plain&offset=${site.entities - 1000}&limit=1000`),
  },
  {
    name: 'q of 128 terms, count',
    act: (site) =>
      get(site, `/entities?type=Plain&count=true&${q(range(128, (i) => `n==${i * 7}`).join('|'))}`),
  },
  {
    name: 'q that no index decides, count',
    act: (site) => get(site, `/entities?type=Plain&count=true&${q('n.x!=5')}`),
  },
  {
    name: 'q of 8 kB',
    act: (site) =>
      get(site, `/entities?type=Plain&count=true&${q(`n==${range(1300, (i) => i * 3).join(',')}`)}`),
  },
  {
    name: 'scopeQ and ids',
    act: (site) =>
      get(
        site,
        `/entities?type=Plain&id=${range(400, (i) => `urn:x:plain:${i}`).join(',')}&limit=1000&options=sysAttrs`,
      ),
  },
  {
    name: 'a polygon of 1,000 positions over 10,000 places',
    prepare: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(5000, (i) => ({
          id: `urn:x:place:${i}`,
          type: 'Place',
          location: {
            type: 'GeoProperty',
            value: { type: 'Point', coordinates: [(i % 200) / 10 - 10, i / 300 - 10] },
          },
        })),
      ),
    act: (site) =>
      get(
        site,
        `/entities?type=Place&count=true&georel=within&geometry=Polygon&coordinates=${encodeURIComponent(JSON.stringify(polygon(400)))}`,
      ),
  },
  {
    name: 'stored polygons of 5,000 positions, intersects',
    prepare: (site) =>
      send(
        site,
        'POST',
        '/entityOperations/upsert',
        range(40, (i) => ({
          id: `urn:x:area:${i}`,
          type: 'Area',
          location: { type: 'GeoProperty', value: { type: 'Polygon', coordinates: polygon(5000) } },
        })),
      ),
    act: (site) =>
      send(site, 'POST', '/entityOperations/query', {
        type: 'Query',
        entities: [{ type: 'Area' }],
        geoQ: { georel: 'intersects', geometry: 'Polygon', coordinates: polygon(1000) },
      }),
  },
  { name: 'types with details', act: (site) => get(site, '/types?details=true') },
  { name: 'attributes with details', act: (site) => get(site, '/attributes?details=true') },
  { name: 'an entity map of all', act: (site) => get(site, '/entityMaps?type=Plain') },
  {
    name: 'a snapshot of 10,000',
    act: (site) =>
      send(site, 'POST', '/snapshots', {
        type: 'Snapshot',
        snapshotQueries: [{ type: 'Query', entities: [{ type: 'Plain' }] }],
      }),
  },
  {
    name: 'a purge that means nobody',
    act: async ({ http }) => (await http.ask('DELETE', `${ld}/entities?type=Plain&${q('n.x!=5')}`)).status,
  },
]

const terms = (count: number) =>
  Object.fromEntries(range(count, (i) => [`t${i}`, `https://example.org/terms#t${i}`]))
const contexts: readonly StallCase[] = [
  ...[20_000, 100_000].map(
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
    name: 'a hosted context of 20,000 terms',
    act: (site) => send(site, 'POST', '/jsonldContexts', { '@context': terms(20_000) }),
  },
  {
    name: 'a context of 40,000 prefixes of prefixes',
    act: (site) =>
      send(site, 'POST', '/entities', {
        '@context': [
          Object.fromEntries(
            range(20_000, (i) => [`p${i}`, i === 0 ? 'https://example.org/' : `p${i - 1}:x`]),
          ),
        ],
        id: 'urn:x:p',
        type: 'p5',
        t1: property(1),
      }),
  },
]

const subscriptions: readonly StallCase[] = [
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
  { name: 'a list of 1,000 subscriptions', act: (site) => get(site, '/subscriptions?limit=1000') },
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

const history: readonly StallCase[] = [
  {
    name: 'a history of 20,000 instances in one body',
    act: (site) =>
      send(site, 'POST', '/temporal/entities', {
        id: 'urn:x:past',
        type: 'Past',
        v: range(20_000, (i) => ({
          type: 'Property',
          value: i,
          observedAt: new Date(1.7e12 + i * 1000).toISOString(),
        })),
      }),
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

const publish = async ({ gateway }: Site, topic: string, payload: string): Promise<string> => {
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
  await client.publishAsync(topic, payload, { qos: 1 })
  await client.endAsync()
  return 'published'
}
const packets: readonly StallCase[] = [
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

const plugins: readonly StallCase[] = [
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
        const { status, text } = await http.send('POST', '/graphql', { query })
        return `${status} ${text.slice(0, 50)}`
      },
    }),
  ),
]

export const stallCases: readonly StallCase[] = [
  ...patterns,
  ...shapes,
  ...queries,
  ...contexts,
  ...history,
  ...packets,
  ...plugins,
  ...subscriptions,
]
