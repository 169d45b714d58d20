/**
 * Every route of the register and of the plugins, with an address of 8 kB and bodies of nearly as many values as may be:
 * few requests are answered well, and none may stop the event loop.
 */
import { limits } from '#base/limits/limits.ts'
import { operations } from '#http/openapi/operations.ts'
import { ld, property, q, range, send } from './asking.ts'
import type { StallCase } from './campaign.ts'

const count = Math.floor(limits.bodyValuesMax.value / 3)
/** A wide object, a list of entities, and an entity with one deep and wide value. */
const bodies: readonly (() => unknown)[] = [
  () => ({ id: 'urn:x:body', type: 'Body', ...Object.fromEntries(range(count, (i) => [`a${i}`, i])) }),
  () =>
    range(limits.batchEntitiesMax.value, (i) => ({ id: `urn:x:body:${i}`, type: 'Body', v: property(i) })),
  () => ({ id: 'urn:x:body', type: 'Body', '@context': [], v: property(range(count, (i) => [i])) }),
]
const text = 'x'.repeat(400)
const hostile: Readonly<Record<string, string>> = {
  q: range(64, (i) => `n${i}>1`).join('|'),
  id: range(200, (i) => `urn:x:plain:${i}`).join(),
  idPattern: '(x|xx)+[a-z]{20}$',
  type: range(100, (i) => `T${i}`).join('|'),
  attrs: range(100, (i) => `a${i}`).join(),
  pick: range(100, (i) => `a${i}`).join(),
  omit: range(100, (i) => `a${i}`).join(),
  scopeQ: range(32, (i) => `/a${i}/+/b/#`).join('|'),
  limit: '1000',
  offset: '10000',
  count: 'true',
}
const queryOf = (names: readonly string[]): string =>
  names
    .map((name) => `${name}=${encodeURIComponent(hostile[name] ?? text)}`)
    .join('&')
    .slice(0, 8000)

/** Answers of a stream do not end. */
const within = (asked: Promise<{ readonly status: number }>): Promise<string> =>
  Promise.race([
    asked.then(({ status }) => String(status)),
    new Promise<string>((resolve) => setTimeout(resolve, 3000, 'no end')),
  ])

const registered = Object.entries(operations).map(([name, { parameters = [], body }]): StallCase => {
  const [method, path] = name.split(' ') as [string, string]
  const address = path.replaceAll(/:(\w+)/g, () => encodeURIComponent('urn:x:plain:1'))
  return {
    name: `${name}`,
    async act({ http }) {
      const statuses = [await within(http.ask(method, address))]
      if (parameters.length > 0) {
        statuses.push(await within(http.ask(method, `${address}?${queryOf(parameters)}`)))
        for (const one of parameters)
          statuses.push(await within(http.ask(method, `${address}?${queryOf([one])}`)))
      }
      for (const make of body === undefined ? [] : bodies)
        statuses.push(await within(http.send(method, address, make())).catch((error: Error) => error.message))
      return [...new Set(statuses)].join()
    },
  }
})

const plugin = (name: string, path: string, method = 'GET', body?: unknown): StallCase => ({
  name,
  act: async ({ http }) =>
    within(body === undefined ? http.ask(method, path) : http.send(method, path, body)),
})
const weights = range(limits.rankingTermsMax.value, (i) => `${i === 0 ? 'n' : `n${i}`}:0.5`).join()
const mostRanked = `/ranking${ld}/entities?type=Plain&limit=1000&${q(`n<${limits.rankingCandidatesMax.value}`)}`
const plugins: readonly StallCase[] = [
  plugin(
    'ranking, all entities by one value',
    `/ranking${ld}/entities?type=Plain&weights=n:1&limit=1000&count=true`,
  ),
  plugin('ranking by the most values', `/ranking${ld}/entities?type=Plain&weights=${weights}&limit=1000`),
  plugin('ranking, explained', `/ranking${ld}/entities?type=Plain&weights=n:1&explain=true&limit=1000`),
  plugin('ranking of the most entities', `${mostRanked}&weights=n:1`),
  plugin(
    'ranking of the most entities by the most values',
    `${mostRanked}&weights=${weights}&normalise=minmax`,
  ),
  plugin('the same, explained', `${mostRanked}&weights=${weights}&explain=true`),
  {
    name: '8 rankings at once of large entities',
    prepare: async (site) => {
      const attributes = Object.fromEntries(range(30, (i) => [`a${i}`, property(i)]))
      for (let first = 0; first < limits.rankingCandidatesMax.value; first += 1000)
        await send(
          site,
          'POST',
          '/entityOperations/create',
          range(1000, (i) => ({
            id: `urn:x:ranked:${first + i}`,
            type: 'Ranked',
            n: property(i),
            ...attributes,
          })),
        )
    },
    act: async ({ http }) => {
      const path = `/ranking${ld}/entities?type=Ranked&weights=n:1&normalise=minmax&limit=10`
      return (await Promise.all(range(8, () => http.ask('GET', path)))).map(({ status }) => status).join()
    },
    tidy: ({ http }) => http.ask('DELETE', `${ld}/entities?type=Ranked&${q('n>=0')}`),
  },
  plugin('ranking, its description', '/ranking/spec'),
  plugin('index, all', `/indexing${ld}/entities?limit=1000&count=true`),
  plugin('index, q of 64 terms', `/indexing${ld}/entities?type=Plain&${q(hostile['q']!)}`),
  plugin('index, query by body', `/indexing${ld}/entityOperations/query`, 'POST', {
    type: 'Query',
    entities: range(500, (i) => ({ type: `T${i}`, idPattern: `^urn:${i}.*` })),
  }),
  plugin('index, brokers', '/indexing/api/broker'),
  plugin('index, a broker', '/indexing/api/broker', 'POST', { host: 'http://127.0.0.1:9', more: text }),
  plugin('index, status', '/indexing/api/status'),
  plugin('index, rebuilt', '/indexing/api/rebuild', 'POST', {}),
]

export const routes: readonly StallCase[] = [...registered, ...plugins]
