/** A site with an uplink to a hub, both with an analyser: the site rates its streams, and the hub keeps its figures. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const qoi = 'https://w3id.org/iot/qoi#'
const [sensor, stream, observation] = ['Sensor', 'IotStream', 'StreamObservation'].map(
  (kind) => `urn:ngsi-ld:${kind}:replica`,
) as [string, string, string]
const quality = `urn:ngsi-ld:QoI:${stream}`
const patience = { interval: 100 }
const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-replica-'))
let site: GatewayProcess
let hub: GatewayProcess

const start = (name: string) =>
  startGatewayProcess({
    dataFolder: join(folder, name),
    env: {
      ...noPlugins,
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_QUALITY_ENABLED: 'true',
      SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '100',
    },
  })
beforeAll(async () => {
  ;[site, hub] = await Promise.all([start('site'), start('hub')])
})
afterAll(async () => {
  await Promise.all([site?.stop(), hub?.stop()])
  rmSync(folder, { recursive: true, force: true })
})

const at = (gateway: GatewayProcess): HttpClient => httpClient(gateway.httpUrl)
const property = (value: unknown, more: object = {}) => ({ type: 'Property', value, ...more })
const to = (object: string) => ({ type: 'Relationship', object })

async function post(path: string, body: unknown): Promise<void> {
  const answer = await at(site).send('POST', `/ngsi-ld/v1${path}`, body)
  if (answer.status >= 300) expect.unreachable(answer.text)
}

const observe = (value: number, hour: number) =>
  post(`/entities/${observation}/attrs`, {
    [`${sosa}hasSimpleResult`]: property(value, { observedAt: `2026-01-02T0${hour}:00:00Z` }),
  })

type Figures = Record<string, { observedAt?: string } & Record<string, { value: unknown }>>
async function figures(gateway: GatewayProcess): Promise<Figures> {
  const answer = await at(gateway).get(`/ngsi-ld/v1/entities/${quality}`)
  expect(answer.status).toBe(200)
  return answer.json() as Figures
}

/** Settles when the hub has counted this many observations, wrote what it had to, and has the figures of the site. */
const isSame = (observations: number) =>
  vi.waitFor(async () => {
    const row = (await at(hub).get(`/quality/api/streams/${stream}`)).json()
    expect(row).toMatchObject({ observations })
    expect((await at(hub).get('/quality/status')).json()).toMatchObject({ waiting: 0 })
    const [there, here] = [await figures(hub), await figures(site)]
    expect(there[`${qoi}plausibility`]).toEqual(here[`${qoi}plausibility`])
    expect(there[`${qoi}frequency`]).toEqual(here[`${qoi}frequency`])
  }, patience)

it('keeps the quality that the gateway of the stream wrote', async () => {
  await post('/subscriptions', {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: '*' }],
    notification: {
      endpoint: {
        uri: `${hub.httpUrl}/ngsi-ld/v1`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  })
  await post('/entityOperations/create', [
    {
      id: sensor,
      type: `${sosa}Sensor`,
      [`${qoi}updateinterval`]: property(1, { [`${qoi}unit`]: property('hour') }),
      [`${qoi}min`]: property(0),
      [`${qoi}max`]: property(40),
    },
    { id: stream, type: `${iotStream}IotStream`, [`${iotStream}generatedBy`]: to(sensor) },
    { id: observation, type: `${iotStream}StreamObservation`, [`${iotStream}belongsTo`]: to(stream) },
  ])
  await observe(20, 1)
  await isSame(1)
  const since = new Date().toISOString()
  await observe(99, 2)
  await isSame(2)
  await observe(21, 3)
  await isSame(3)
  const path = `/ngsi-ld/v1/temporal/entities/${quality}?attrs=${encodeURIComponent(`${qoi}plausibility`)}`
  const timesAt = async (gateway: GatewayProcess) =>
    ((await at(gateway).get(path)).json() as Record<string, { observedAt: string }[]>)
      [`${qoi}plausibility`]!.map(({ observedAt }) => observedAt)
      .filter((time) => time > since)
  const own = await timesAt(site)
  expect(own.length).toBeGreaterThan(0)
  for (const time of await timesAt(hub)) expect(own).toContain(time)
})
