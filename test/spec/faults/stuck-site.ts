/** A gateway process with fault detection, fed by MQTT, for tests; and what it wrote to its broker. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

export const patience = { interval: 100, timeout: 60_000 }
const verdicts = 'https://w3id.org/iot/fd/'
const selvedge = 'urn:selvedge:ns:'

export type Instance = Readonly<Record<string, unknown>> & { readonly value?: unknown }
export type Attributes = Readonly<Record<string, Instance>> & { readonly id: string }

export interface FaultSite {
  readonly gateway: () => GatewayProcess
  readonly client: () => ReturnType<typeof httpClient>
  start(): Promise<void>
  /** Kills the gateway, and starts it again on its data. */
  killAndStart(): Promise<void>
  /** Publishes samples of a device, one SenML pack each, in order; settles when all are acknowledged. */
  publish(device: string, samples: readonly (readonly [time: number, value: number])[]): Promise<void>
  entity(id: string): Promise<Attributes>
  /** Fault entities of a stream, by begin. */
  faults(device: string): Promise<readonly Attributes[]>
  state(device: string): Promise<unknown>
  verdict(device: string): Promise<unknown>
  end(): Promise<void>
}

export const sensorId = (device: string): string => `urn:ngsi-ld:Sensor:${device}:temperature`
export const streamId = (device: string): string => `urn:ngsi-ld:IotStream:${device}:temperature`
export const observationId = (device: string): string => `urn:ngsi-ld:StreamObservation:${device}:temperature`

/** @param env further settings. @param config the settings file. */
export function createFaultSite(
  env: Readonly<Record<string, string>> = {},
  config: Readonly<Record<string, unknown>> = {},
): FaultSite {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-faults-'))
  let gateway: GatewayProcess
  const client = () => httpClient(gateway.httpUrl)

  async function start(): Promise<void> {
    gateway = await startGatewayProcess({
      dataFolder: join(folder, 'data'),
      env: { SELVEDGE_FAULTS_ENABLED: 'true', ...env },
      config,
    })
  }

  async function read(path: string): Promise<unknown> {
    const answer = await client().get(path)
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}: ${answer.text}`)
    return answer.json()
  }
  const entity = async (id: string) => (await read(`/ngsi-ld/v1/entities/${id}`)) as Attributes

  return {
    gateway: () => gateway,
    client,
    start,
    async killAndStart() {
      await gateway.kill()
      await start()
    },
    async publish(device, samples) {
      const mqtt = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { reconnectPeriod: 0 })
      const packs = samples.map(([time, v]) =>
        JSON.stringify([{ bn: `${device}:`, bt: time / 1000, n: 'temperature', u: 'Cel', v }]),
      )
      await Promise.all(packs.map((pack) => mqtt.publishAsync(`senml/${device}`, pack, { qos: 1 })))
      await mqtt.endAsync()
    },
    entity,
    async faults(device) {
      const type = encodeURIComponent(`${selvedge}Fault`)
      const all = (await read(`/ngsi-ld/v1/entities?type=${type}&limit=1000`)) as readonly Attributes[]
      const own = all.filter((one) => one[`${selvedge}stream`]!['object'] === streamId(device))
      return own.toSorted((a, b) => a.id.localeCompare(b.id))
    },
    state: async (device) => (await entity(streamId(device)))[`${selvedge}state`]?.value,
    verdict: async (device) => (await entity(observationId(device)))[`${verdicts}hasVerdict`]?.value,
    async end() {
      await gateway.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
