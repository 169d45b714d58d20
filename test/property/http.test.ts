/**
 * Whatever is sent to any endpoint of the HTTP interface, the answer is one of the standard's, never a failure of
 * ours: no 500, a problem with every error, and a gateway that goes on answering.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'
import type { Reply } from '#test/kit/http-gateway.ts'

const gateway = gatewayOfFile({ fetchContexts: false })
const ids = [
  'urn:ngsi-ld:T:1',
  'urn:ngsi-ld:T:2',
  'x',
  '%00',
  '%2e%2e',
  'urn:ngsi-ld:T:%F0%9F%98%80',
  '__proto__',
]

const path = fc.oneof(
  fc.constantFrom(
    '/ngsi-ld/v1/entities',
    '/ngsi-ld/v1/entities/',
    '/ngsi-ld/v1/entityOperations/create',
    '/ngsi-ld/v1/entityOperations/upsert',
    '/ngsi-ld/v1/entityOperations/update',
    '/ngsi-ld/v1/entityOperations/delete',
    '/ngsi-ld/v1/subscriptions',
    '/senml',
    '/contexts/selvedge-platform.jsonld',
    '/health/ready',
    '/selvedge/v1/info',
  ),
  fc.constantFrom(...ids).map((id) => `/ngsi-ld/v1/entities/${id}`),
  fc.constantFrom(...ids).map((id) => `/ngsi-ld/v1/entities/${id}/attrs`),
  fc
    .tuple(fc.constantFrom(...ids), fc.constantFrom('a', 'location', 'type', '%20'))
    .map(([id, name]) => `/ngsi-ld/v1/entities/${id}/attrs/${name}`),
  fc.constantFrom(...ids).map((id) => `/ngsi-ld/v1/subscriptions/${id}`),
  fc.constantFrom(...ids).map((id) => `/ngsi-ld/v1/temporal/entities/${id}`),
)

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

/** JSON made of the words of the standard, so that it gets further than noise does. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    text,
    fc.constantFrom(null, true, 0, -1, 1e308, 1.5),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.array(fc.tuple(names, tie('json')), { maxLength: 6 }).map((members) => Object.fromEntries(members)),
  ),
}))
const entity = fc
  .tuple(fc.constantFrom('urn:ngsi-ld:T:1', 'urn:ngsi-ld:T:2'), fc.constantFrom('T', 'U'), json, json)
  .map(([id, type, a, location]) => ({ id, type, a, location }))
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  json.map((value) => JSON.stringify(value) ?? ''),
  entity.map((value) => JSON.stringify(value)),
  fc.array(entity, { maxLength: 3 }).map((value) => JSON.stringify(value)),
)

/** Each parameter with values that mean something to it. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  type: ['T', 'T,U', 'T;U', '*', 'https://a.example/T'],
  id: ['urn:ngsi-ld:T:1', 'urn:ngsi-ld:T:1,urn:ngsi-ld:T:2'],
  idPattern: ['^urn', '1$', '.*'],
  attrs: ['a', 'a,location'],
  pick: ['a', 'id,a', 'id|location'],
  omit: ['a', 'location,type'],
  q: ['a', 'a==1', 'a!="x"', 'a>1|location', '(a<=5;a>=0)', 'a==1..5', 'a.b==true', 'a[x]=="y"', 'a~="x"'],
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
}
const parameter = fc
  .constantFrom(...Object.keys(parameters))
  .chain((name) =>
    fc.tuple(
      fc.constant(name),
      fc.oneof(
        { arbitrary: fc.constantFrom(...parameters[name]!), weight: 6 },
        { arbitrary: text, weight: 1 },
      ),
    ),
  )
const selection = fc.constantFrom(
  'type=T',
  'type=T&georel=near;maxDistance==9&geometry=Point&coordinates=[1,1]',
  'q=a',
  '',
)
const query = fc
  .tuple(selection, fc.array(parameter, { maxLength: 3 }))
  .map(([first, pairs]) => [
    first,
    ...pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`),
  ])
  .map((parts) => parts.filter((part) => part !== '').join('&'))

const visible = (value: string): string => value.replace(/[^\x20-\x7e]/g, '?')
const headers = fc.record(
  {
    'Content-Type': fc.constantFrom(
      'application/json',
      'application/ld+json',
      'application/senml+json',
      'application/merge-patch+json',
      'x/y',
    ),
    Accept: fc.oneof(fc.constantFrom('application/json', 'application/ld+json', '*/*'), text.map(visible)),
    Link: text.map((value) => `<${visible(value)}>; rel="http://www.w3.org/ns/json-ld#context"`),
  },
  { requiredKeys: ['Content-Type'] },
)

const allowed = new Set([200, 201, 204, 207, 400, 403, 404, 405, 406, 409, 413, 415, 422, 504])

it('any request shall be answered as the standard says', async () => {
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE'),
    path,
    query,
    headers,
    body,
  })
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, headers, body }) => {
      const answer: Reply = await gateway.ask(method, query === '' ? path : `${path}?${query}`, {
        headers,
        ...(method === 'GET' ? {} : { body }),
      })
      expect(allowed, `${answer.status} ${answer.text}`).toContain(answer.status)
      if (answer.status >= 400) {
        expect(answer.json()).toMatchObject({
          type: expect.any(String),
          title: expect.any(String),
          detail: expect.any(String),
          status: answer.status,
        })
      }
    }),
    { numRuns: 1500 },
  )
  expect((await gateway.get('/health/live')).status).toBe(200)
}, 120_000)
