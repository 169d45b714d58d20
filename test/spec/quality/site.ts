/** A gateway process with the quality analyser, its streams, and observations of them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

/** What a test waits for may take a busy machine long. */
export const patience = { interval: 100 }

export const sosa = 'http://www.w3.org/ns/sosa/'
export const iotStream = 'http://purl.org/iot/ontology/iot-stream#'
export const qoi = 'https://w3id.org/iot/qoi#'
export const selvedge = 'urn:selvedge:ns:'
const rdfs = 'http://www.w3.org/2000/01/rdf-schema#'

export interface Site {
  /** Of the process that runs at the moment. */
  readonly client: () => HttpClient
  /** Stops the gateway, and starts it on the same data. */
  restart(): Promise<void>
  /** Kills the gateway, and starts it on the same data. */
  kill(): Promise<void>
  /** Creates a stream whose sensor sends at this interval. */
  create(name: string, stream: SiteStream): Promise<void>
  observe(name: string, given: unknown, time: number): Promise<void>
  entity(id: string): Promise<Attributes>
  /** The QoI entity of a stream. */
  quality(name: string): Promise<Attributes>
  /** The analyser's own figures of a stream. */
  stream(name: string): Promise<{
    readonly observations: number
    readonly lastObservedAt: string
    readonly quality: Quality
  }>
}

interface SiteStream {
  /** Update interval. */
  readonly seconds: number
  readonly label: string
  readonly place?: readonly [number, number]
  /** Further attributes of the Sensor. */
  readonly sensor?: object
}

export type Attributes = Record<string, Record<string, Record<string, unknown>>>
type Quality = Readonly<Record<string, unknown>>

export const value = (given: unknown, more: object = {}) => ({ type: 'Property', value: given, ...more })
export const streamId = (name: string): string => `urn:ngsi-ld:IotStream:${name}`
export const qualityId = (name: string): string => `urn:ngsi-ld:QoI:${streamId(name)}`
export const observationId = (name: string): string => `urn:ngsi-ld:StreamObservation:${name}`
export const to = (object: string) => ({ type: 'Relationship', object })

function entitiesOf(name: string, { seconds, label, place, sensor = {} }: SiteStream): object[] {
  return [
    {
      id: `urn:ngsi-ld:Sensor:${name}`,
      type: `${sosa}Sensor`,
      [`${sosa}observes`]: to(`urn:ngsi-ld:ObservableProperty:${name}`),
      [`${qoi}updateinterval`]: value(seconds, { [`${qoi}unit`]: value('seconds') }),
      ...(place && { location: { type: 'GeoProperty', value: { type: 'Point', coordinates: place } } }),
      ...sensor,
    },
    {
      id: `urn:ngsi-ld:ObservableProperty:${name}`,
      type: `${sosa}ObservableProperty`,
      [`${rdfs}label`]: value(label),
    },
    {
      id: streamId(name),
      type: `${iotStream}IotStream`,
      [`${iotStream}generatedBy`]: to(`urn:ngsi-ld:Sensor:${name}`),
    },
    observationEntity(name),
  ]
}

const observationEntity = (name: string) => ({
  id: observationId(name),
  type: `${iotStream}StreamObservation`,
  [`${iotStream}belongsTo`]: to(streamId(name)),
})

/** The observation entity of a stream with a value. */
export const observationOf = (name: string, given: unknown, time: number) => ({
  ...observationEntity(name),
  [`${sosa}hasSimpleResult`]: result(given, time),
})

export const result = (given: unknown, time: number) =>
  value(given, { observedAt: new Date(time).toISOString() })

/** Starts the gateway before the tests of a file, and stops it after them. @param env further settings. */
export function analysedSite(env: Readonly<Record<string, string>> = {}): Site {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-quality-'))
  let gateway: GatewayProcess
  const client = () => httpClient(gateway.httpUrl)

  async function start(): Promise<void> {
    gateway = await startGatewayProcess({
      dataFolder: join(folder, 'data'),
      env: {
        SELVEDGE_MQTT_PORT: 'off',
        SELVEDGE_QUALITY_ENABLED: 'true',
        SELVEDGE_QUALITY_WRITE_INTERVAL_MS: '100',
        ...env,
      },
    })
  }
  beforeAll(start)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function read(path: string): Promise<unknown> {
    const answer = await client().get(path)
    expect({ path, status: answer.status }).toEqual({ path, status: 200 })
    return answer.json()
  }
  const entity = async (id: string) => (await read(`/ngsi-ld/v1/entities/${id}`)) as Attributes
  return {
    client,
    async restart() {
      await gateway.stop()
      await start()
    },
    async kill() {
      await gateway.kill()
      await start()
    },
    async create(name, stream) {
      const answer = await client().send(
        'POST',
        '/ngsi-ld/v1/entityOperations/create',
        entitiesOf(name, stream),
      )
      expect(answer.status).toBe(201)
    },
    async observe(name, given, time) {
      const answer = await client().send('POST', `/ngsi-ld/v1/entities/${observationId(name)}/attrs`, {
        [`${sosa}hasSimpleResult`]: result(given, time),
      })
      expect(answer.status).toBeLessThan(300)
    },
    entity,
    quality: (name) => entity(qualityId(name)),
    stream: async (name) =>
      (await read(`/quality/api/streams/${streamId(name)}`)) as Awaited<ReturnType<Site['stream']>>,
  }
}
