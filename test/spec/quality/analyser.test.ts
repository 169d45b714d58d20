/**
 * The quality analyser in a real gateway process: qualities of streams as entities, the fall while a sensor is
 * silent, and counts that no kill changes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-'))
const patience = { interval: 100, timeout: 60_000 }

let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)
const start = async (): Promise<void> => {
  gateway = await startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: {
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_QUALITY_ENABLED: 'true',
      SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '100',
      SELVEDGE_LIMITS: 'qualityLinkWaitMs=1000',
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

/** The entities of a stream whose sensor sends at this interval. */
const streamEntities = (name: string, interval: object) => [
  {
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: `${sosa}Sensor`,
    [`${sosa}observes`]: to(`urn:ngsi-ld:ObservableProperty:${name}`),
    [`${qoi}updateinterval`]: interval,
    [`${qoi}valuetype`]: value('float'),
    [`${qoi}min`]: value(0),
    [`${qoi}max`]: value(40),
  },
  {
    id: `urn:ngsi-ld:ObservableProperty:${name}`,
    type: `${sosa}ObservableProperty`,
    [`${rdfs}label`]: value('temperature'),
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

async function create(name: string, interval: object): Promise<void> {
  const made = await client().send(
    'POST',
    '/ngsi-ld/v1/entityOperations/create',
    streamEntities(name, interval),
  )
  expect(made.status).toBe(201)
}

async function observe(name: string, given: unknown, time: number): Promise<void> {
  const answer = await client().send(
    'POST',
    `/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:${name}/attrs`,
    {
      [`${sosa}hasSimpleResult`]: value(given, { observedAt: new Date(time).toISOString() }),
    },
  )
  expect(answer.status).toBeLessThan(300)
}

async function entity(id: string): Promise<Record<string, Record<string, Record<string, unknown>>>> {
  const answer = await client().get(`/ngsi-ld/v1/entities/${id}`)
  expect(answer.status).toBe(200)
  return answer.json() as Record<string, Record<string, Record<string, unknown>>>
}

const qualityOf = (name: string) => entity(`urn:ngsi-ld:QoI:urn:ngsi-ld:IotStream:${name}`)

async function count(name: string): Promise<number> {
  const answer = await client().get(`/quality/api/streams/urn:ngsi-ld:IotStream:${name}`)
  return answer.status === 200 ? (answer.json() as { observations: number }).observations : -1
}

const seconds = (length: number) => value(length, { [`${qoi}unit`]: value('seconds') })

/** What streams link to before the analyser knows them. */
const links = {
  linked: 'urn:ngsi-ld:QoI:of-somebody-else',
  dangling: 'urn:ngsi-ld:QoI:that-does-not-exist',
  new: 'urn:ngsi-ld:Quality:noqualityyet',
}

describe('the quality analyser', () => {
  it('links a new stream to its quality, and rates each observation', async () => {
    await create('a', seconds(3600))
    const begin = Date.now() - 3 * 3_600_000
    for (const [i, given] of [20, 21, 99].entries()) await observe('a', given, begin + i * 3_600_000)
    await vi.waitFor(async () => {
      const quality = await qualityOf('a')
      expect(quality['type']).toBe(`${qoi}Quality`)
      expect(quality[`${qoi}plausibility`]).toMatchObject({
        type: 'Property',
        value: 'NA',
        observedAt: expect.any(String) as string,
        [`${qoi}hasAbsoluteValue`]: { type: 'Property', value: 0 },
        [`${qoi}hasRatedValue`]: { type: 'Property', value: 0.6 },
      })
      expect(quality[`${qoi}frequency`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 3600, unitCode: 'SEC' },
        [`${qoi}hasRatedValue`]: { value: 1 },
      })
      expect(quality[`${qoi}completeness`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 0 },
        [`${qoi}hasRatedValue`]: { value: 1 },
        'urn:selvedge:ns:share': { value: 1 },
      })
      expect(quality[`${qoi}age`]?.[`${qoi}hasAbsoluteValue`]?.['value']).toBeGreaterThan(3500)
    }, patience)
    const stream = await entity('urn:ngsi-ld:IotStream:a')
    expect(stream[`${qoi}hasQuality`]).toMatchObject(to('urn:ngsi-ld:QoI:urn:ngsi-ld:IotStream:a'))
  })

  it('lowers the quality of a silent stream, and raises it with its values', async () => {
    await create('b', value(400, { [`${qoi}unit`]: value('ms') }))
    await observe('b', 20, Date.now())
    const rated = async () => (await qualityOf('b'))[`${qoi}completeness`]?.[`${qoi}hasRatedValue`]?.['value']
    await vi.waitFor(async () => expect(await rated()).toBe(0), patience)
    await vi.waitFor(async () => {
      await observe('b', 20, Date.now())
      expect(await rated()).toBeGreaterThan(0)
    }, patience)
  })

  it('counts each observation once, through kills', async () => {
    await create('c', seconds(3600))
    const begin = Date.now() - 100 * 3_600_000
    for (let i = 0; i < 60; i++) {
      await observe('c', i % 40, begin + i * 3_600_000)
      if (i % 20 !== 10) continue
      await gateway.kill()
      await start()
    }
    await vi.waitFor(async () => expect(await count('c')).toBe(60), patience)
    await gateway.stop()
    await start()
    await vi.waitFor(async () => expect(await count('c')).toBe(60), patience)
  })

  it('lists streams by pages, and rejects a wrong page', async () => {
    const list = async (query: string) => client().get(`/quality/api/streams${query}`)
    const idsOf = async (query: string) =>
      ((await list(query)).json() as { result: { id: string }[] }).result.map(({ id }) => id)
    const all = await idsOf('')
    expect(await idsOf('?limit=1&offset=1')).toEqual(all.slice(1, 2))
    for (const query of ['?offset=-1', '?offset=two', '?limit=0', '?limit=1001', '?limit=']) {
      const answer = await list(query)
      expect([query, answer.status]).toEqual([query, 400])
      expect(answer.text).toMatch(/must be a whole number from [01] to \d+/)
    }
  })

  it('keeps the link to the quality of somebody else, and replaces one without an entity', async () => {
    const foreign = links.linked
    const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', [
      { id: foreign, type: `${qoi}Quality`, [`${qoi}plausibility`]: value('NA') },
      ...['linked', 'dangling', 'new'].map((name) => ({
        id: `urn:ngsi-ld:IotStream:${name}`,
        type: `${iotStream}IotStream`,
        [`${qoi}hasQuality`]: to(links[name as keyof typeof links]),
      })),
    ])
    expect(made.status).toBe(201)
    const linkOf = async (name: string) =>
      (await entity(`urn:ngsi-ld:IotStream:${name}`))[`${qoi}hasQuality`]?.['object']
    for (const name of ['linked', 'dangling', 'new']) await vi.waitFor(() => qualityOf(name), patience)
    const ours = (name: string) => `urn:ngsi-ld:QoI:urn:ngsi-ld:IotStream:${name}`
    await vi.waitFor(async () => expect(await linkOf('new')).toBe(ours('new')), patience)
    await vi.waitFor(async () => expect(await linkOf('dangling')).toBe(ours('dangling')), patience)
    expect(await linkOf('linked')).toBe(foreign)
    expect((await entity(foreign))[`${qoi}plausibility`]).toMatchObject({ value: 'NA' })
    // Nobody else has a quality for it any more.
    await client().send('DELETE', `/ngsi-ld/v1/entities/${foreign}`, undefined)
    await vi.waitFor(async () => expect(await linkOf('linked')).toBe(ours('linked')), patience)
  })

  it('deletes the quality of a deleted stream', async () => {
    await vi.waitFor(() => qualityOf('a'), patience)
    const gone = await client().send('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:IotStream:a', undefined)
    expect(gone.status).toBe(204)
    await vi.waitFor(async () => {
      const answer = await client().get('/ngsi-ld/v1/entities/urn:ngsi-ld:QoI:urn:ngsi-ld:IotStream:a')
      expect(answer.status).toBe(404)
    }, patience)
  })
})
