/**
 * Query parameters of every route [NGSI-LD 6.3.2 and the tables of chapter 6]: none is ignored. An accepted
 * parameter with an invalid value is 400 and named; an unknown one is 400 InvalidRequest. Paths may end with
 * a slash.
 */
import { beforeAll, expect, it } from 'vitest'
import { operations } from '#http/openapi/operations.ts'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const time = '2026-01-01T00:00:00Z'
const ids: Record<string, string> = {
  entities: 'urn:t:1',
  subscriptions: 'urn:s:1',
  csourceSubscriptions: 'urn:s:2',
  csourceRegistrations: 'urn:r:1',
}
const query = { type: 'Query', entities: [{ type: 'Thing' }] }
const subscription = {
  type: 'Subscription',
  entities: [{ type: 'Thing' }],
  notification: { endpoint: { uri: 'http://127.0.0.1:9/x' } },
}
const reading = property(2, { observedAt: time })

/** A valid body, by schema. */
const bodies: Readonly<Record<string, object>> = {
  Entity: { id: ids['entities'], type: 'Thing', size: property(1) },
  EntityTemporal: { id: ids['entities'], type: 'Thing', size: [reading] },
  Fragment: { size: reading },
  Attribute: reading,
  Ids: [ids['entities']],
  Query: query,
  Subscription: subscription,
  Registration: {
    type: 'ContextSourceRegistration',
    information: [{ entities: [{ type: 'Elsewhere' }] }],
    endpoint: 'http://127.0.0.1:9',
  },
}

/** An invalid value of each parameter, followed by further parameters that it needs. */
const truth = ['TRUE', '1', '']
const names = ['a<b', 'a,,b', '']
const wrong: Readonly<Record<string, readonly string[]>> = {
  aggrMethods: ['max', 'median&format=aggregatedValues', ''],
  aggrPeriodDuration: ['PT1H', '1h&format=aggregatedValues&aggrMethods=max', ''],
  attrs: names,
  collation: ['de', ''],
  containedBy: ['a&join=flat', 'urn:a:b', ''],
  coordinates: ['[0,0]', '[0&georel=equals&geometry=Point', ''],
  count: truth,
  csf: ['a==', ''],
  datasetId: ['a', ''],
  deleteAll: truth,
  details: truth,
  drop: names,
  endTimeAt: [time, ''],
  entityMap: truth,
  entityMapLifetime: ['soon&entityMap=true', ''],
  expandValues: names,
  format: ['xml', ''],
  geometry: ['Point', 'Circle&georel=equals&coordinates=[0,0]', ''],
  geometryProperty: ['location', 'a<b', ''],
  geoproperty: ['a<b&georel=equals&geometry=Point&coordinates=[0,0]'],
  georel: ['equals', 'beside&geometry=Point&coordinates=[0,0]', ''],
  id: ['a', 'urn:a:b,', ''],
  idPattern: ['(', ''],
  join: ['both', ''],
  joinLevel: ['0&join=flat', '1.5&join=flat', '1', ''],
  jsonKeys: names,
  keep: names,
  kind: ['hosted', ''],
  lang: ['en;q=high', ''],
  lastN: ['0', '-1', 'x', ''],
  limit: ['0', '-1', '1.5', 'x', ''],
  local: truth,
  observedAt: ['2026-01-01', ''],
  offset: ['-1', '1.5', 'x', ''],
  omit: names,
  options: ['xml', ''],
  orderBy: ['a<b', 'id;up', ''],
  orderFrom: ['[0,0]', ''],
  orderGeometry: ['Point', ''],
  pageKey: ['x', ''],
  pick: names,
  q: ['a==', ''],
  reload: truth,
  scopeQ: ['//', ''],
  splitEntities: truth,
  timeAt: [''],
  timeproperty: ['someday', ''],
  timerel: ['during', ''],
  type: ['(', 'A,', ''],
  until: [''],
}
/** Other parameters required beside one. */
const alsoNamed: Readonly<Record<string, RegExp>> = {
  options: /option/,
  georel: /georel|geometry|coordinates/,
  geometry: /georel|geometry/,
  coordinates: /georel|geometry|coordinates/,
  timeAt: /timeAt|timerel/,
  timerel: /timeAt|timerel/,
}

/** Parameters required by a query of a list. */
function least(method: string, path: string): string {
  if (!/(?:entities|entityMaps|csourceRegistrations)$/.test(path) || !/GET|DELETE/.test(method)) return ''
  return path.includes('temporal') ? `&type=Thing&timerel=after&timeAt=${time}` : '&type=Thing'
}
/** The path with existing ids in place of its variables. */
function concrete(path: string): string {
  const segments = path.split('/')
  return segments
    .map((segment, at) => {
      if (!segment.startsWith(':')) return segment
      return { ':attribute': 'size', ':type': 'Thing' }[segment] ?? ids[segments[at - 1]!] ?? 'urn:t:1'
    })
    .join('/')
}

const all = Object.entries(operations)
  .map(([key, operation]) => [...(key.split(' ') as [string, string]), operation] as const)
  .filter(([, path]) => path.startsWith('/ngsi-ld/') && !path.endsWith('/notifications'))

function bodyOf(path: string, shape: unknown): object | undefined {
  const schema = Array.isArray(shape) ? (shape[0] as string) : (shape as string)
  if (path.includes('temporal/') && schema === 'Query') return query
  const body = bodies[schema] ?? {}
  return Array.isArray(shape) ? [body] : body
}

beforeAll(async () => {
  await gateway.send('POST', '/ngsi-ld/v1/entities', bodies['Entity'])
  for (const kind of ['subscriptions', 'csourceSubscriptions'])
    await gateway.send('POST', `/ngsi-ld/v1/${kind}`, { id: ids[kind], ...subscription })
  const registration = { id: ids['csourceRegistrations'], ...bodies['Registration'] }
  await gateway.send('POST', '/ngsi-ld/v1/csourceRegistrations', registration)
  const { headers } = await gateway.send('POST', '/ngsi-ld/v1/entityMaps', query)
  const map = headers['location']!.split('/').at(-1)!
  Object.assign(ids, { entityMap: map, entityMaps: map })
})

/** The response of a route to parameters, with a valid body. */
async function ask([method, path, { body }]: (typeof all)[number], said: string, slash = '') {
  const own = said.split(/[=&]/)
  const rest = least(method, path)
    .split('&')
    .filter((pair) => pair !== '' && !own.includes(pair.split('=')[0]!))
  const target = `${concrete(path)}${slash}?${[encodeURI(said), ...rest].join('&')}`
  const reply =
    body === undefined
      ? await gateway.ask(method, target)
      : await gateway.send(method, target, bodyOf(path, body))
  return { status: reply.status, ...(reply.json() as { type: string; detail: string }) }
}

it.each(all)('%s %s shall ignore no parameter, with and without a trailing slash', async (...route) => {
  for (const slash of ['', '/'])
    expect(await ask(route, 'colour=red', slash)).toMatchObject({
      status: 400,
      type: 'https://uri.etsi.org/ngsi-ld/errors/InvalidRequest',
      detail: expect.stringContaining('colour'),
    })
})

const asked = all.filter(([, , { parameters = [] }]) => parameters.length > 0)
it.each(asked)('%s %s shall refuse invalid values of its parameters', async (...route) => {
  for (const name of route[2].parameters)
    for (const value of wrong[name] ?? [`no wrong value of ${name}`]) {
      const said = `${name}=${value}`
      const { status, detail } = await ask(route, said)
      const named = expect.stringMatching(alsoNamed[name] ?? new RegExp(name))
      expect([said, status, detail]).toEqual([said, 400, named])
    }
})
