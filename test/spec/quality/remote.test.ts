/**
 * The analyser of one gateway rates the streams of another over HTTP alone: what exists, what is reported, and
 * what was missed while it was killed. Each observation counts once.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const hourMs = 3_600_000
const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-remote-'))
const patience = { interval: 100, timeout: 120_000 }

/** Holds the streams, and has no analyser. */
let site: GatewayProcess
/** Rates them. */
let analyser: GatewayProcess

async function startAnalyser(): Promise<void> {
  analyser = await startGatewayProcess({
    dataFolder: join(folder, 'analyser'),
    env: {
      NGSI_ADDRESS: site.httpUrl,
      SELVEDGE_MQTT_PORT: 'off',
      ...noPlugins,
      SELVEDGE_QUALITY_ENABLED: 'true',
      SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '100',
      SELVEDGE_HTTP_PORT: String(analyserPort),
      SELVEDGE_LIMITS: 'followCheckMs=500',
    },
  })
  analyserPort = analyser.httpPort
}

/** The first start finds a free port, and later ones keep it. */
let analyserPort = 0

beforeAll(async () => {
  site = await startGatewayProcess({
    dataFolder: join(folder, 'site'),
    env: {
      SELVEDGE_MQTT_PORT: 'off',
      ...noPlugins,
      SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
    },
  })
  await create('old')
  for (let i = 0; i < 5; i++) await observe('old', 20 + i, start + i * hourMs)
  await startAnalyser()
})
afterAll(async () => {
  await analyser?.stop()
  await site?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const start = Date.now() - 20 * hourMs
const there = () => httpClient(site.httpUrl)
const here = () => httpClient(analyser.httpUrl)
const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
const to = (object: string) => ({ type: 'Relationship', object })
const idOf = (kind: string, name: string) => `urn:ngsi-ld:${kind}:${name}`

async function create(name: string): Promise<void> {
  const made = await there().send('POST', '/ngsi-ld/v1/entityOperations/create', [
    {
      id: idOf('Sensor', name),
      type: `${sosa}Sensor`,
      [`${qoi}updateinterval`]: value(1, { [`${qoi}unit`]: value('hour') }),
      [`${qoi}valuetype`]: value('float'),
      [`${qoi}min`]: value(0),
      [`${qoi}max`]: value(40),
    },
    {
      id: idOf('IotStream', name),
      type: `${iotStream}IotStream`,
      [`${iotStream}generatedBy`]: to(idOf('Sensor', name)),
    },
    {
      id: idOf('StreamObservation', name),
      type: `${iotStream}StreamObservation`,
      [`${iotStream}belongsTo`]: to(idOf('IotStream', name)),
    },
  ])
  expect(made.status).toBe(201)
}

async function observe(name: string, given: unknown, time: number): Promise<void> {
  const path = `/ngsi-ld/v1/entities/${idOf('StreamObservation', name)}/attrs`
  const result = value(given, { observedAt: new Date(time).toISOString() })
  expect((await there().send('POST', path, { [`${sosa}hasSimpleResult`]: result })).status).toBeLessThan(300)
}

interface StreamRow {
  readonly observations: number
  readonly quality: { readonly share?: number; readonly completeness: { readonly rated?: number } }
}

async function rowOf(name: string): Promise<StreamRow> {
  const answer = await here().get(`/quality/api/streams/${idOf('IotStream', name)}`)
  expect(answer.status).toBe(200)
  return answer.json() as StreamRow
}
const count = async (name: string): Promise<number> => (await rowOf(name)).observations

type Attributes = Record<string, Record<string, Record<string, unknown>>>
async function qualityOf(name: string): Promise<Attributes> {
  const answer = await there().get(`/ngsi-ld/v1/entities/${idOf('QoI', idOf('IotStream', name))}`)
  expect(answer.status).toBe(200)
  return answer.json() as Attributes
}

interface Subscription {
  readonly id: string
  readonly entities: readonly { readonly type: string }[]
  readonly notification: { readonly endpoint: { readonly uri: string } }
}
const subscriptions = async () =>
  (await there().get('/ngsi-ld/v1/subscriptions?limit=100')).json() as Subscription[]

describe('the streams of another gateway', () => {
  it('are read with their history, rated, and linked there', async () => {
    await vi.waitFor(async () => {
      const quality = await qualityOf('old')
      expect(quality[`${qoi}plausibility`]?.[`${qoi}hasAbsoluteValue`]).toMatchObject({ value: 1 })
      expect(quality[`${qoi}frequency`]?.[`${qoi}hasAbsoluteValue`]).toMatchObject({ value: 3600 })
    }, patience)
    expect(await count('old')).toBe(5)
    await vi.waitFor(async () => {
      const stream = (await there().get(`/ngsi-ld/v1/entities/${idOf('IotStream', 'old')}`)).json()
      expect(stream).toMatchObject({ [`${qoi}hasQuality`]: to(idOf('QoI', idOf('IotStream', 'old'))) })
    }, patience)
  })

  it('count each observation once while the analyser is killed, and its subscriptions stay', async () => {
    const before = (await subscriptions()).map(({ id }) => id)
    expect(before).toHaveLength(6)
    await create('live')
    for (let i = 0; i < 12; i++) {
      await observe('live', i === 11 ? 99 : i, start + i * hourMs)
      // Killed while reports are under way, and started again while further ones come.
      if (i % 6 === 3) await analyser.kill()
      if (i % 6 === 5) await startAnalyser()
    }
    await vi.waitFor(async () => expect(await count('live')).toBe(12), patience)
    await vi.waitFor(async () => {
      const quality = await qualityOf('live')
      expect(quality[`${qoi}plausibility`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 0 },
        [`${qoi}hasRatedValue`]: { value: 0.6 },
      })
      expect(quality[`${qoi}frequency`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 3600 },
        [`${qoi}hasRatedValue`]: { value: 1 },
      })
      expect(quality[`${qoi}completeness`]?.['urn:selvedge:ns:share']).toMatchObject({ value: 1 })
    }, patience)
    expect((await subscriptions()).map(({ id }) => id)).toEqual(before)
    await analyser.stop()
    await startAnalyser()
    await vi.waitFor(async () => expect(await count('live')).toBe(12), patience)
  })

  it('count a notification once that arrives twice, also a late one, and only with its secret', async () => {
    const made = await subscriptions()
    const of = made.find(({ entities }) => entities[0]?.type.endsWith('StreamObservation') === true)!
    const { uri } = of.notification.endpoint
    const late = {
      type: 'Notification',
      subscriptionId: of.id,
      notifiedAt: new Date().toISOString(),
      data: {
        id: idOf('StreamObservation', 'live'),
        type: `${iotStream}StreamObservation`,
        [`${iotStream}belongsTo`]: to(idOf('IotStream', 'live')),
        [`${sosa}hasSimpleResult`]: value(1, { observedAt: new Date(start + hourMs / 2).toISOString() }),
      },
    }
    const sender = httpClient(new URL(uri).origin)
    const { pathname } = new URL(uri)
    const before = await count('live')
    expect((await sender.send('POST', `${pathname.slice(0, -1)}x`, late)).status).toBe(401)
    expect(await count('live')).toBe(before)
    for (const expected of [before + 1, before + 1]) {
      expect((await sender.send('POST', pathname, late)).status).toBe(200)
      expect(await count('live')).toBe(expected)
    }
  })

  it('are read again, with what was missed, when the broker has lost the subscriptions', async () => {
    const before = await count('live')
    await analyser.kill()
    for (const { id } of await subscriptions())
      await there().send('DELETE', `/ngsi-ld/v1/subscriptions/${id}`, undefined)
    for (let i = 12; i < 15; i++) await observe('live', 20, start + i * hourMs)
    await startAnalyser()
    await vi.waitFor(async () => expect(await count('live')).toBe(before + 3), patience)
    await vi.waitFor(async () => expect(await subscriptions()).toHaveLength(6), patience)
    await observe('live', 20, start + 15 * hourMs)
    await vi.waitFor(async () => expect(await count('live')).toBe(before + 4), patience)
  })

  it('lose their quality when they are deleted there', async () => {
    await there().send('DELETE', `/ngsi-ld/v1/entities/${idOf('IotStream', 'old')}`, undefined)
    await vi.waitFor(async () => {
      const answer = await there().get(`/ngsi-ld/v1/entities/${idOf('QoI', idOf('IotStream', 'old'))}`)
      expect(answer.status).toBe(404)
    }, patience)
  })
})
