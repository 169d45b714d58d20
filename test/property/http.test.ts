/**
 * Every endpoint of the HTTP interface answers any request with a response of the standard: never 500, a
 * problem body with every error, and the gateway continues to serve requests.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'
import type { Reply } from '#test/kit/http-gateway.ts'
import { runs } from '#test/kit/runs.ts'

const gateway = gatewayOfFile({ fetchContexts: false })
const ids = ['urn:ngsi-ld:T:1', 'urn:ngsi-ld:T:2']
const oddIds = ['x', '%00', '%2e%2e', 'urn:ngsi-ld:T:%F0%9F%98%80', '__proto__', 'urn:ngsi-ld:T:none']
const shown = [
  ...['options', 'format', 'attrs', 'pick', 'omit', 'lang', 'datasetId', 'local'],
  ...['join', 'joinLevel', 'containedBy', 'geometryProperty'],
]
const selecting = [
  ...['type', 'id', 'idPattern', 'q', 'scopeQ', 'georel', 'geometry', 'coordinates', 'geoproperty'],
  ...['orderBy', 'orderFrom', 'orderGeometry', 'collation', 'pageKey', 'expandValues', 'jsonKeys'],
]

/** Method, path with placeholders, and parameters. */
const endpoints: readonly (readonly [method: string, path: string, parameters: readonly string[]])[] = [
  ['GET', '/ngsi-ld/v1/entities', [...shown, ...selecting, 'limit', 'offset', 'count']],
  ['POST', '/ngsi-ld/v1/entities/', ['local']],
  ['GET', '/ngsi-ld/v1/entities/ID', shown],
  ['DELETE', '/ngsi-ld/v1/entities/ID', []],
  ['POST', '/ngsi-ld/v1/entities/ID/attrs', ['options']],
  ['PATCH', '/ngsi-ld/v1/entities/ID/attrs', []],
  ['PATCH', '/ngsi-ld/v1/entities/ID/attrs/NAME', []],
  ['DELETE', '/ngsi-ld/v1/entities/ID/attrs/NAME', ['datasetId', 'deleteAll']],
  ['POST', '/ngsi-ld/v1/entityOperations/create', []],
  ['POST', '/ngsi-ld/v1/entityOperations/upsert', ['options']],
  ['POST', '/ngsi-ld/v1/entityOperations/update', ['options']],
  ['POST', '/ngsi-ld/v1/entityOperations/delete', []],
  ['POST', '/ngsi-ld/v1/entityOperations/query', ['options', 'limit', 'offset', 'pageKey']],
  ['GET', '/ngsi-ld/v1/subscriptions', ['limit', 'offset', 'count', 'options']],
  ['POST', '/ngsi-ld/v1/subscriptions', []],
  ['GET', '/ngsi-ld/v1/subscriptions/ID', ['options']],
  ['PATCH', '/ngsi-ld/v1/subscriptions/ID', []],
  ['DELETE', '/ngsi-ld/v1/subscriptions/ID', []],
  [
    'GET',
    '/ngsi-ld/v1/temporal/entities/ID',
    ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN', 'attrs', 'options'],
  ],
  ['POST', '/senml', []],
  ['GET', '/health/ready', []],
  ['PUT', '/ngsi-ld/v1/entities', []],
]

/** Mostly `usual`, sometimes `odd`. */
const mostly = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>, weight = 8): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: usual, weight }, { arbitrary: odd, weight: 1 })

const place = fc.record({
  ID: mostly(fc.constantFrom(...ids), fc.constantFrom(...oddIds)),
  NAME: fc.constantFrom('a', 'a', 'location', 'type', '%20'),
})

const words = fc.constantFrom(
  'urn:ngsi-ld:T:1',
  'urn:ngsi-ld:null',
  'T',
  'Property',
  'GeoProperty',
  'Relationship',
  'LanguageProperty',
  'Point',
  'Polygon',
  'near;maxDistance==10',
  'within',
  '[0,0]',
  '[[[0,0],[1,0],[1,1],[0,0]]]',
  'after',
  'between',
  '2025-01-01T00:00:00Z',
  '2025-13-01T00:00:00Z',
  'a==1',
  'a.b[c]>=2;(d|e)',
  'a~="^x.*$"',
  'keyValues',
  'sysAttrs,concise',
  'true',
  '-1',
  '9007199254740993',
  'https://a.example/x',
  '*',
  '',
)
const text = fc.oneof(words, fc.string({ maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 20 }))
const names = fc.constantFrom(
  'id',
  '@id',
  'type',
  '@type',
  '@context',
  'a',
  'location',
  'scope',
  'value',
  'object',
  'languageMap',
  'json',
  'vocab',
  'valueList',
  'observedAt',
  'unitCode',
  'datasetId',
  'coordinates',
  'entities',
  'idPattern',
  'watchedAttributes',
  'q',
  'geoQ',
  'georel',
  'geometry',
  'notification',
  'endpoint',
  'uri',
  'accept',
  'receiverInfo',
  'throttling',
  'expiresAt',
  'isActive',
  'createdAt',
  'modifiedAt',
  'instanceId',
  'constructor',
  'toString',
  '__proto__',
)

/** JSON with members of the standard, so that it is processed further than random JSON. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    text,
    fc.constantFrom(null, true, 0, -1, 1e308, 1.5),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.array(fc.tuple(names, tie('json')), { maxLength: 6 }).map((members) => Object.fromEntries(members)),
  ),
}))
/** A valid or nearly valid attribute. */
const attribute = mostly<unknown>(
  fc.constantFrom<unknown>(
    1,
    'x',
    { type: 'Property', value: 1, observedAt: '2025-01-01T00:00:00Z' },
    { type: 'Property', value: [1, { b: 2 }], unitCode: 'CEL', c: { type: 'Property', value: 1 } },
    { type: 'Relationship', object: 'urn:ngsi-ld:T:2' },
    { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 1] } },
    { type: 'LanguageProperty', languageMap: { en: 'x', de: 'y' } },
    [{ value: 1 }, { value: 2, datasetId: 'urn:d:1' }],
  ),
  json,
  4,
)
const entity = fc
  .tuple(
    mostly(fc.constantFrom(...ids), fc.constantFrom(...oddIds)),
    fc.constantFrom('T', 'U'),
    attribute,
    attribute,
  )
  .map(([id, type, a, location]) => ({ id, type, a, location }))
const fragment = fc
  .tuple(fc.constantFrom('a', 'location', 'value', 'isActive'), attribute)
  .map(([name, value]) => ({ [name]: value }))
const subscription = fc.tuple(fc.constantFrom(...ids), json, json).map(([id, q, throttling]) => ({
  id,
  type: 'Subscription',
  entities: [{ type: 'T' }],
  ...(q === null ? {} : { q: 'a>1' }),
  ...(throttling === null ? {} : { throttling: 1 }),
  notification: { endpoint: { uri: 'http://127.0.0.1:9/' } },
}))
const asText = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<string> =>
  values.map((value) => JSON.stringify(value) ?? '')
const noise = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  asText(json),
)

function bodyFor(path: string): fc.Arbitrary<string | Buffer> {
  if (path.endsWith('/delete')) return mostly<string | Buffer>(asText(fc.subarray(ids)), noise)
  if (path.includes('entityOperations'))
    return mostly<string | Buffer>(asText(fc.array(entity, { maxLength: 3 })), noise)
  if (path.endsWith('/ID')) return mostly<string | Buffer>(asText(fragment), noise)
  if (path.includes('attrs')) return mostly<string | Buffer>(asText(fragment), noise)
  if (path.includes('subscriptions')) return mostly<string | Buffer>(asText(subscription), noise)
  return mostly<string | Buffer>(asText(entity), noise)
}

/** Each parameter with plausible values. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  type: ['T', 'T,U', 'T;U', '*', 'https://a.example/T'],
  id: ['urn:ngsi-ld:T:1', 'urn:ngsi-ld:T:1,urn:ngsi-ld:T:2'],
  idPattern: ['^urn', '1$', '.*'],
  attrs: ['a', 'a,location'],
  pick: ['a', 'id,a', 'id|location'],
  omit: ['a', 'location,type', 'a{b}'],
  q: [
    'a{b}==1',
    'a',
    'a==1',
    'a!="x"',
    'a>1|location',
    '(a<=5;a>=0)',
    'a==1..5',
    'a.b==true',
    'a[x]=="y"',
    'a~="x"',
  ],
  georel: ['near;maxDistance==10000', 'within', 'intersects', 'disjoint'],
  geometry: ['Point', 'Polygon'],
  coordinates: ['[0,0]', '[[[0,0],[2,0],[2,2],[0,0]]]'],
  geoproperty: ['location', 'a'],
  limit: ['0', '1', '1000', '1001'],
  offset: ['0', '1', '100000'],
  count: ['true', 'false'],
  options: ['keyValues', 'concise', 'sysAttrs', 'temporalValues', 'noOverwrite', 'update'],
  format: ['simplified', 'normalized'],
  lang: ['en', 'de,*;q=0.1'],
  datasetId: ['urn:d:1', '@none'],
  local: ['true'],
  timerel: ['after', 'before', 'between'],
  timeAt: ['2020-01-01T00:00:00Z'],
  endTimeAt: ['2030-01-01T00:00:00Z'],
  timeproperty: ['observedAt', 'modifiedAt', 'deletedAt'],
  lastN: ['1', '100'],
  deleteAll: ['true'],
  join: ['inline', 'flat', '@none'],
  joinLevel: ['1', '2', '0'],
  containedBy: ['urn:ngsi-ld:T:1'],
  geometryProperty: ['location', 'a'],
  scopeQ: ['/a', '/a/#', '/+/b', '/#', '/a;(/b|/c)'],
  orderBy: ['a', 'id;desc', 'a.b,modifiedAt;desc', 'location;dist-asc'],
  orderFrom: ['[0,0]'],
  orderGeometry: ['Point', 'Polygon'],
  collation: ['en', 'de-u-kn-true'],
  pageKey: ['1', 'WzEsMV0', 'W10'],
  expandValues: ['a'],
  jsonKeys: ['a,b'],
}
const pairFor = (names: readonly string[]): fc.Arbitrary<string> =>
  mostly(fc.constantFrom(...names), fc.constantFrom(...Object.keys(parameters)), 20).chain((name) =>
    mostly(fc.constantFrom(...parameters[name]!), text).map(
      (value) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
    ),
  )
const selections = [
  'type=T',
  'type=T&georel=near;maxDistance==200000&geometry=Point&coordinates=[1,1]',
  'georel=within&geometry=Polygon&coordinates=[[[0,0],[2,0],[2,2],[0,2],[0,0]]]',
  'q=a',
  'q=a>=1',
  '',
]

const visible = (value: string): string => value.replace(/[^\x20-\x7e]/g, '?')
const headersFor = (path: string) =>
  fc.record(
    {
      'Content-Type': mostly(
        fc.constant(path === '/senml' ? 'application/senml+json' : 'application/json'),
        fc.constantFrom('application/ld+json', 'application/merge-patch+json', 'x/y'),
      ),
      Accept: mostly(fc.constantFrom('application/json', 'application/ld+json', '*/*'), text.map(visible)),
      Link: text.map((value) => `<${visible(value)}>; rel="http://www.w3.org/ns/json-ld#context"`),
    },
    { requiredKeys: ['Content-Type', 'Accept'] },
  )

const request = fc.constantFrom(...endpoints).chain(([method, path, names]) =>
  fc.record({
    method: fc.constant(method),
    path: place.map(({ ID, NAME }) => path.replace('ID', ID).replace('NAME', NAME)),
    query: fc
      .tuple(
        path === '/ngsi-ld/v1/entities' ? fc.constantFrom(...selections) : fc.constant(''),
        names.length === 0 ? fc.constant([]) : fc.array(pairFor(names), { maxLength: 3 }),
      )
      .map(([first, pairs]) => [first, ...pairs].filter((part) => part !== '').join('&')),
    headers: mostly(
      headersFor(path).map(({ Link: _, ...others }) => others),
      headersFor(path),
      12,
    ),
    body: bodyFor(path),
  }),
)

const allowed = new Set([200, 201, 204, 207, 400, 403, 404, 405, 406, 409, 411, 413, 415, 422, 504])

it('any request shall be answered as the standard requires', async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, headers, body }) => {
      const answer: Reply = await gateway.ask(method, query === '' ? path : `${path}?${query}`, {
        headers,
        ...(method === 'GET' ? {} : { body }),
      })
      expect(allowed, `${answer.status} ${answer.text}`).toContain(answer.status)
      // 6.3.4: these two have no body.
      if (answer.status === 411) expect(answer.text).toBe('')
      else if (answer.status >= 400) {
        expect(answer.json()).toMatchObject({
          type: expect.any(String),
          title: expect.any(String),
          detail: expect.any(String),
          status: answer.status,
        })
      }
    }),
    { numRuns: runs(1000) },
  )
  expect((await gateway.get('/health/live')).status).toBe(200)
})
