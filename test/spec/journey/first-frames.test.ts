/**
 * A burst of first frames: a thousand messages of fifty unknown devices at once, over many connections. Every device
 * is made once, with all its fields, and no reading is lost or counted twice.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { connectRaw } from '#test/kit/mqtt.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { observationId, publishAll, reading, result, streamObservation } from './observations.ts'

const devices = Array.from({ length: 50 }, (_, i) => `meter-${i}`)
const fields = ['power', 'voltage', 'current', 'frequency']
const timesPerField = 5
const connections = 20
const sosa = 'http://www.w3.org/ns/sosa/'

let gateway: GatewayProcess
let client: HttpClient

const messages = Array.from({ length: timesPerField }, (_, time) =>
  fields.flatMap((field) =>
    devices.map((device) => ({
      topic: `senml/${device}`,
      payload: reading(`${device}:${field}`, time, 1_700_000_000 + time),
    })),
  ),
).flat()

/** Dealt out like cards, so that the frames of one device come by many connections at once. */
async function burst(): Promise<void> {
  const raw = await Promise.all(
    Array.from({ length: connections }, (_, i) => connectRaw(gateway.mqttPort, `burst-${i}`)),
  )
  await Promise.all(
    raw.map((one, i) =>
      publishAll(
        one,
        messages.filter((_, n) => n % connections === i),
      ),
    ),
  )
  for (const one of raw) one.end()
}

beforeAll(async () => {
  gateway = await startGatewayProcess()
  client = httpClient(gateway.httpUrl)
  expect(messages).toHaveLength(1000)
  await burst()
})
afterAll(() => gateway.stop())

async function entitiesOf(type: string): Promise<Record<string, unknown>[]> {
  const answer = await client.get(
    `/ngsi-ld/v1/entities?limit=1000&count=true&type=${encodeURIComponent(type)}`,
  )
  const entities = answer.json() as Record<string, unknown>[]
  expect(answer.headers['ngsild-results-count']).toBe(String(entities.length))
  return entities
}

it.each([
  [`${sosa}Platform`, devices.length],
  [`${sosa}Sensor`, devices.length * fields.length],
  ['http://purl.org/iot/ontology/iot-stream#IotStream', devices.length * fields.length],
  [`${sosa}ObservableProperty`, devices.length * fields.length],
  [streamObservation, devices.length * fields.length],
  ['http://purl.oclc.org/NET/UNIS/fiware/iot-lite#Service', devices.length],
])('makes each %s once', async (type, count) => {
  const ids = (await entitiesOf(type)).map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toHaveLength(count)
})

it('lets every platform host all its sensors, each once', async () => {
  for (const platform of await entitiesOf(`${sosa}Platform`)) {
    const { object } = platform[`${sosa}hosts`] as { object: string[] }
    const device = String(platform['id']).split(':').at(-1)
    const sensors = fields.map((field) => `urn:ngsi-ld:Sensor:${device}:${field}`)
    expect(object.toSorted()).toEqual(sensors.toSorted())
  }
})

it('keeps every reading once, even when all are sent again, and the newest is current', async () => {
  await burst()
  for (const device of devices) {
    for (const field of fields) {
      const path = `/ngsi-ld/v1/temporal/entities/${observationId(`${device}:${field}`)}`
      const answer = await client.get(`${path}?attrs=${encodeURIComponent(result)}&options=temporalValues`)
      const { values } = (answer.json() as Record<string, { values: [number, string][] }>)[result]!
      expect([device, field, values.map(([value]) => value)]).toEqual([device, field, [0, 1, 2, 3, 4]])
    }
  }
  const current = (await entitiesOf(streamObservation)).map((one) => (one[result] as { value: number }).value)
  expect(new Set(current)).toEqual(new Set([timesPerField - 1]))
})

it('has provisioned each field once', () => {
  const provisioned = gateway.logLines().filter(({ event }) => event === 'intake.provisioned')
  expect(provisioned).toHaveLength(devices.length * fields.length)
})
