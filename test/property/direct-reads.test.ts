/**
 * After any write through any interface, a plain read has the same response from the connection itself, from
 * the routes, and from a search without page cache. A device's acknowledged value is the value that is read.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GatewayInside, noPlugins, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { connectRaw, publishPacket, type RawClient } from '#test/kit/mqtt.ts'

const entities = '/ngsi-ld/v1/entities'
const batches = '/ngsi-ld/v1/entityOperations'
const contexts = '/ngsi-ld/v1/jsonldContexts'
const sources = '/ngsi-ld/v1/csourceRegistrations'
const observation = 'http://purl.org/iot/ontology/iot-stream#StreamObservation'
/** A header without meaning here, except that the request is no longer a plain one. */
const long = { Prefer: 'respond-async' }

const ids = ['urn:r:1', 'urn:r:2', 'urn:r:3', 'urn:r:1/attrs'] as const
const types = ['Room', 'Shed', 'Hall'] as const
const devices = ['a', 'b'] as const
const observationId = (device: string): string => `urn:ngsi-ld:StreamObservation:${device}:t`

let folder: string
let gateway: GatewayInside
let device: RawClient
let counter = 0
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-direct-'))
  gateway = await startGatewayInside(folder, { SELVEDGE_MQTT_PORT: '0', ...noPlugins })
  device = await connectRaw(gateway.mqttPort!, 'devices')
})
afterAll(async () => {
  device.end()
  await gateway.close()
  rmSync(folder, { recursive: true })
})

const id = fc.constantFrom(...ids)
const type = fc.oneof(
  fc.constantFrom(...types),
  fc.uniqueArray(fc.constantFrom(...types), { minLength: 1, maxLength: 2 }),
)
const attribute = fc.record(
  {
    type: fc.constant('Property'),
    value: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom('größer', '\u{1F600}', true)),
    observedAt: fc.integer({ min: 10, max: 59 }).map((s) => `2026-01-01T00:00:${s}Z`),
    expiresAt: fc.constantFrom('2020-01-01T00:00:00Z', '2090-01-01T00:00:00Z'),
  },
  { requiredKeys: ['type', 'value'] },
)
const attributes = fc.record({ a: attribute, b: attribute }, { requiredKeys: [] })
const entity = fc.record({ id, type, own: attributes }).map(({ own, ...head }) => ({ ...head, ...own }))
const list = fc.uniqueArray(entity, { minLength: 1, maxLength: 3, selector: (one) => one.id })

type Write = readonly [method: string, path: string, body?: unknown]
const at = (one: string): string => `${entities}/${encodeURIComponent(one)}`
const http: fc.Arbitrary<Write> = fc.oneof(
  entity.map((one) => ['POST', entities, one] as const),
  entity.map((one) => ['PUT', at(one.id), one] as const),
  fc.tuple(id, attributes).map(([one, own]) => ['PATCH', `${at(one)}/attrs`, own] as const),
  fc
    .tuple(id, type, attributes)
    .map(([one, types, own]) => ['POST', `${at(one)}/attrs`, { type: types, ...own }] as const),
  fc.tuple(id, attributes).map(([one, own]) => ['PATCH', at(one), own] as const),
  id.map((one) => ['DELETE', `${at(one)}/attrs/a`] as const),
  id.map((one) => ['DELETE', at(one)] as const),
  fc.constantFrom(...types).map((one) => ['DELETE', `${entities}?type=${one}`] as const),
  fc
    .tuple(fc.constantFrom('create', 'upsert', 'update', 'merge'), list)
    .map(([how, all]) => ['POST', `${batches}/${how}`, all] as const),
  fc.uniqueArray(id, { minLength: 1 }).map((all) => ['POST', `${batches}/delete`, all] as const),
  entity.map((one) => ['POST', '/ngsi-ld/v1/temporal/entities', one] as const),
  id.map((one) => ['DELETE', `/ngsi-ld/v1/temporal/entities/${encodeURIComponent(one)}`] as const),
  fc.constant(['POST', contexts, { '@context': { a: 'urn:other:a', Room: 'urn:other:Room' } }] as const),
  fc
    .constantFrom('POST', 'DELETE')
    .map((how) =>
      how === 'DELETE'
        ? (['DELETE', `${sources}/urn:source:1`] as const)
        : (['POST', sources, elsewhere] as const),
    ),
)
const elsewhere = {
  id: 'urn:source:1',
  type: 'ContextSourceRegistration',
  information: [{ entities: [{ id: 'urn:elsewhere:1', type: 'Elsewhere' }] }],
  endpoint: 'http://127.0.0.1:1',
}

type Step =
  | { readonly by: 'http'; readonly tenant: '' | 'north'; readonly write: Write }
  | { readonly by: 'mqtt' | 'senml'; readonly device: string }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      by: fc.constant('http' as const),
      tenant: fc.constantFrom('' as const, '' as const, 'north' as const),
      write: http,
    }),
    weight: 5,
  },
  {
    arbitrary: fc.record({
      by: fc.constantFrom('mqtt' as const, 'senml' as const),
      device: fc.constantFrom(...devices),
    }),
    weight: 1,
  },
)

const looks = [
  ...ids.flatMap((one) => [
    `${entities}/${one}`,
    `${entities}/${one}?options=sysAttrs`,
    `${entities}/${one}?type=Room`,
  ]),
  ...devices.map((one) => `${entities}/${observationId(one)}?format=simplified`),
]
const listed = [
  ...types.flatMap((one) => [1, 2, 20].map((limit) => `${entities}?type=${one}&limit=${limit}`)),
  ...types.map((one) => `${entities}?type=${one}&limit=1&offset=1&count=true`),
  `${entities}?type=Room&q=a>4&pick=id,a`,
  `${entities}?type=Room&q=a>4;b!='x'&limit=1`,
  `${entities}?type=Room&q=a%3E4&pick=id,a`,
  `${entities}?type=Room&q=a%3E4;b!=%22gr%C3%B6%C3%9Fer%22&limit=1`,
  `${entities}?type=Room&q=b==%22%zz%E0%A4%22&limit=1`,
  `${entities}?type=Room%2CShed&limit=1&count=true`,
  `${entities}?type=Room&entity%4Dap=true`,
  `${entities}?type=Room&%6Cimit=1`,
  `${entities}?type=Room&limit=1+&options=%`,
  `${entities}?local=true&limit=3`,
  `${entities}?type=${observation.replace('#', '%23')}`,
]
const headers = fc.constantFrom<Readonly<Record<string, string>>>(
  {},
  { Accept: 'application/ld+json' },
  { Accept: 'application/json;q=0.2, application/ld+json;q=0.4' },
  { Accept: 'text/html' },
  { 'NGSILD-Tenant': 'north' },
  { 'If-None-Match': '"1", *' },
)

async function take(one: Step): Promise<void> {
  if (one.by === 'http') {
    const [method, path, body] = one.write
    const to = one.tenant === '' ? {} : { 'NGSILD-Tenant': one.tenant }
    const { status } =
      body === undefined
        ? await gateway.ask(method, path, { headers: to })
        : await gateway.send(method, path, body, to)
    expect(status).toBeLessThan(500)
    return
  }
  const value = ++counter
  const payload = JSON.stringify([
    { bn: `${one.device}:`, n: 't', u: 'Cel', v: value, t: 1_700_000_000 + value },
  ])
  if (one.by === 'mqtt') {
    device.send(publishPacket('senml/all', payload, { qos: 1, messageId: (value % 60_000) + 1 }))
    expect((await device.next()).cmd).toBe('puback')
  } else {
    const { status } = await gateway.ask('POST', '/senml', {
      body: payload,
      headers: { 'Content-Type': 'application/senml+json' },
    })
    expect(status).toBeLessThan(300)
  }
  const { text } = await gateway.get(`${entities}/${observationId(one.device)}?format=simplified`)
  expect(Object.values(JSON.parse(text) as object)).toContain(value)
}

/** Both ways return the same response; returns it. */
async function bothWays(path: string, given: Readonly<Record<string, string>>): Promise<string> {
  const direct = await gateway.get(path, given)
  const expected = await gateway.get(path, { ...given, ...long })
  expect([path, direct.status, direct.text]).toEqual([path, expected.status, expected.text])
  expect({ ...direct.headers, date: '' }).toEqual({ ...expected.headers, date: '' })
  return direct.text
}

it('is the same in both ways, after any write', async () => {
  const path = fc.record({ look: fc.constantFrom(...looks), page: fc.constantFrom(...listed), headers })
  const steps = fc.array(fc.record({ step, paths: fc.array(path, { minLength: 2, maxLength: 4 }) }), {
    minLength: 5,
    maxLength: 25,
  })
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      for (const one of all) {
        await take(one.step)
        for (const { look, page, headers: given } of one.paths) {
          await bothWays(look, given)
          const text = await bothWays(page, given)
          if (!text.startsWith('[')) continue
          const { text: searched } = await gateway.get(`${page}&idPattern=.`, given)
          expect([page, text]).toEqual([page, searched])
        }
      }
    }),
    { numRuns: 6 },
  )
})
