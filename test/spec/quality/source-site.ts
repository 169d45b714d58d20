/** A gateway process whose streams have their data at other brokers, and what a test asks it. */
import { expect, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
const iotLite = 'http://purl.oclc.org/NET/UNIS/fiware/iot-lite#'
const qoi = 'https://w3id.org/iot/qoi#'
const sosa = 'http://www.w3.org/ns/sosa/'

/** What a test waits for may take a busy machine long. */
export const patience = { interval: 100 }

const value = (given: unknown) => ({ type: 'Property', value: given })
const to = (object: string) => ({ type: 'Relationship', object })

export const streamId = (name: string): string => `urn:ngsi-ld:IotStream:${name}`

/** The entities of a stream whose data is at another broker; `service` has its access details by full name. */
export const streamAt = (name: string, endpoint: string, service: Readonly<Record<string, unknown>>) => [
  {
    id: `urn:ngsi-ld:Service:${name}`,
    type: `${iotLite}Service`,
    [`${iotLite}endpoint`]: value(endpoint),
    ...Object.fromEntries(Object.entries(service).map(([key, given]) => [key, value(given)])),
  },
  {
    id: `urn:ngsi-ld:Sensor:${name}`,
    type: `${sosa}Sensor`,
    [`${qoi}min`]: value(0),
    [`${qoi}max`]: value(40),
  },
  {
    id: streamId(name),
    type: `${iotStream}IotStream`,
    [`${iotStream}generatedBy`]: to(`urn:ngsi-ld:Sensor:${name}`),
    [`${iotStream}providedBy`]: to(`urn:ngsi-ld:Service:${name}`),
  },
]

export interface SourceStatus {
  readonly source: string
  readonly state: string
  readonly [name: string]: unknown
}

export interface SourceSite {
  /** Starts the gateway, or another one on the same data. */
  start(failpoints?: string): Promise<void>
  readonly gateway: () => GatewayProcess
  create(entities: readonly object[]): Promise<void>
  send(method: string, path: string, body?: unknown): Promise<number>
  /** Observations that the analyser counted of a stream; -1 if it is unknown. */
  count(name: string): Promise<number>
  quality(
    name: string,
  ): Promise<Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>>
  sources(): Promise<readonly SourceStatus[]>
  connected(address: string): Promise<void>
}

/** @param mqttPort of the gateway's own broker; without one it has none. */
export function sourceSite(dataFolder: string, sources: object = {}, mqttPort?: number): SourceSite {
  let running: GatewayProcess
  const client = () => httpClient(running.httpUrl)
  const site: SourceSite = {
    async start(failpoints = '') {
      running = await startGatewayProcess({
        dataFolder,
        env: {
          SELVEDGE_MQTT_PORT: String(mqttPort ?? 'off'),
          SELVEDGE_QUALITY_ENABLED: 'true',
          SELVEDGE_FAILPOINTS: failpoints,
        },
        config: { quality: { writeIntervalMs: 100, sources } },
      })
    },
    gateway: () => running,
    async create(entities) {
      expect(await site.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)).toBe(201)
    },
    send: async (method, path, body) => (await client().send(method, path, body)).status,
    async count(name) {
      const answer = await client().get(`/quality/api/streams/${streamId(name)}`)
      return answer.status === 200 ? (answer.json() as { observations: number }).observations : -1
    },
    async quality(name) {
      const answer = await client().get(`/ngsi-ld/v1/entities/urn:ngsi-ld:QoI:${streamId(name)}`)
      expect(answer.status).toBe(200)
      return answer.json()
    },
    async sources() {
      const answer = await client().get('/quality/status')
      return (answer.json() as { sources: SourceStatus[] }).sources
    },
    async connected(address) {
      const connected = expect.objectContaining({ source: address, state: 'connected' })
      await vi.waitFor(async () => expect(await site.sources()).toContainEqual(connected), patience)
    },
  }
  return site
}
