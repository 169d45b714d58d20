/** Hostile patterns, in queries and subscriptions. */
import { get, ld, property, q, range, send } from './asking.ts'
import type { StallCase } from './campaign.ts'

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
export const patterns: readonly StallCase[] = [
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
  {
    name: 'a new entity that 5,000 subscriptions with idPatterns look at',
    prepare: async (site) => {
      for (let first = 0; first < 5000; first += 50)
        await Promise.all(
          range(50, (i) =>
            send(site, 'POST', '/subscriptions', {
              id: `urn:x:id-pattern:${first + i}`,
              type: 'Subscription',
              entities: [{ type: 'Patterned', idPattern: `(x|xx)+[a-z]{9}${first + i}` }],
              notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
            }),
          ),
        )
    },
    act: (site) => send(site, 'POST', '/entities', { id: `urn:${'x'.repeat(200)}`, type: 'Patterned' }),
    tidy: async ({ http }) => {
      for (let first = 0; first < 5000; first += 50)
        await Promise.all(
          range(50, (i) => http.ask('DELETE', `${ld}/subscriptions/urn:x:id-pattern:${first + i}`)),
        )
    },
  },
]
