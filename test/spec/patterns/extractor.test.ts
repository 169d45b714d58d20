/**
 * The pattern extractor in a real gateway process: models by HTTP, windows of groups as Events, and the same
 * Events whatever the order of arrival and through kills.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-patterns-'))
const patience = { interval: 100, timeout: 60_000 }

let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)
const start = async (): Promise<void> => {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: {
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_PATTERNS_ENABLED: 'true',
      SELVEDGE_LIMITS: 'patternSaveMs=300,patternCheckMs=300',
      TZ: 'Europe/Copenhagen',
    },
  })
}
beforeAll(start)
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
const to = (object: string) => ({ type: 'Relationship', object })
const propertyId = (name: string): string => `urn:ngsi-ld:ObservableProperty:${name}`

/** The entities of a stream of a property at a place. */
const streamEntities = (name: string, property: string, place: readonly [number, number]) => [
  {
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: `${sosa}Sensor`,
    [`${sosa}observes`]: to(propertyId(property)),
    location: { type: 'GeoProperty', value: { type: 'Point', coordinates: place } },
  },
  {
    id: `urn:ngsi-ld:IotStream:${name}`,
    type: `${iotStream}IotStream`,
    [`${iotStream}generatedBy`]: to(`urn:ngsi-ld:Sensor:${name}`),
  },
  {
    id: `urn:ngsi-ld:StreamObservation:${name}`,
    type: `${iotStream}StreamObservation`,
    [`${iotStream}belongsTo`]: to(`urn:ngsi-ld:IotStream:${name}`),
  },
]

async function create(entities: readonly object[]): Promise<void> {
  const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
  expect(made.status).toBe(201)
}

async function observe(name: string, given: unknown, time: number): Promise<void> {
  const path = `/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${name}/attrs`
  const result = value(given, { observedAt: new Date(time).toISOString() })
  const answer = await client().send('POST', path, { [`${sosa}hasSimpleResult`]: result })
  expect(answer.status).toBeLessThan(300)
}

/** Two classes by the direction in which two streams vary: together, or only the second. */
const mixture = {
  kind: 'gaussian-mixture',
  weights: [0.5, 0.5],
  means: [
    [0.7, 0.7],
    [0, 1],
  ],
  covariances: [
    [
      [0.05, 0],
      [0, 0.05],
    ],
    [
      [0.05, 0],
      [0, 0.05],
    ],
  ],
}
const labels = ['Together', 'Alone']

interface Event {
  readonly id: string
  readonly [name: string]: unknown
}

async function events(stream: string): Promise<readonly Event[]> {
  const q = encodeURIComponent(`iot-stream:detectedFrom=="urn:ngsi-ld:IotStream:${stream}"`)
  const answer = await client().get(`/ngsi-ld/v1/entities?type=Event&q=${q}&limit=1000&options=sysAttrs`)
  expect(answer.status).toBe(200)
  return answer.json() as readonly Event[]
}

const at = (event: Event, name: string): unknown =>
  ((event[`${iotStream}${name}`] as { value: { '@value'?: string } }).value['@value'] ??
    (event[`${iotStream}${name}`] as { value: unknown }).value) as unknown

/** Start, end and label of each Event, in order of the ends. */
const summary = (list: readonly Event[]) =>
  list
    .map((event) => [at(event, 'windowStart'), at(event, 'windowEnd'), at(event, 'label')])
    .sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1))

const minute = 60_000
const begin = Date.UTC(2026, 4, 4, 8)
const iso = (minutes: number): string =>
  new Date(begin + minutes * minute).toISOString().replace('.000Z', 'Z')

async function register(body: object): Promise<{ id: string; subscriptionId: string }> {
  const answer = await client().send('POST', '/patterns/api/model', body)
  expect(answer.status).toBe(201)
  return answer.json() as { id: string; subscriptionId: string }
}

describe('the pattern extractor', () => {
  it('publishes the pattern of each window of streams at one place, once, through kills', async () => {
    await create([
      ...streamEntities('a1', 'a-flow', [10.2, 56.1]),
      ...streamEntities('a2', 'a-speed', [10.2, 56.1]),
      ...streamEntities('a3', 'a-speed', [10.3, 56.1]),
    ])
    const input = {
      observableProperties: [propertyId('a-flow'), propertyId('a-speed')],
      model: mixture,
      labels,
    }
    const model = await register(input)
    expect(model).toEqual({
      id: expect.any(String) as string,
      subscriptionId: expect.any(String) as string,
      ...input,
    })
    for (let row = 0; row < 24; row++) {
      const together = row < 12
      await observe('a1', together ? 10 + (row % 3) : 10, begin + row * minute)
      await observe('a2', 10 + (row % 3), begin + row * minute)
      if (row !== 13) continue
      await gateway.kill()
      await start()
    }
    await vi.waitFor(async () => expect(await events('a1')).toHaveLength(13), patience)
    const [first, ...others] = summary(await events('a1'))
    expect(first).toEqual([iso(0), iso(11), 'Together'])
    expect(others.at(-1)).toEqual([iso(12), iso(23), 'Alone'])
    expect(others.map(([, end]) => end)).toEqual(Array.from({ length: 12 }, (_, i) => iso(12 + i)))
    const event = (await events('a1')).find((one) => at(one, 'windowEnd') === iso(11))!
    expect(event).toMatchObject({
      id: expect.stringMatching(/^urn:ngsi-ld:Event:[0-9a-f]{24}$/) as string,
      type: `${iotStream}Event`,
      [`${iotStream}windowStart`]: { type: 'Property', value: { '@type': 'DateTime', '@value': iso(0) } },
      [`${iotStream}detectedFrom`]: [
        { type: 'Relationship', object: 'urn:ngsi-ld:IotStream:a1' },
        { type: 'Relationship', object: 'urn:ngsi-ld:IotStream:a2' },
      ],
      expiresAt: expect.any(String) as string,
    })
    const { value: confidence } = event['urn:selvedge:ns:confidence'] as { value: number }
    expect(confidence).toBeGreaterThan(0.9)
    expect(confidence).toBeLessThanOrEqual(1)
    expect(await events('a3')).toEqual([])
  })
})
