/** A gateway process with fault detection, fed by MQTT, for tests; and what it wrote to its broker. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connectAsync, type MqttClient } from 'mqtt'
import { expect, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

export const patience = { interval: 100 }
const verdicts = 'https://w3id.org/iot/fd/'
const selvedge = 'urn:selvedge:ns:'

export type Instance = Readonly<Record<string, unknown>> & { readonly value?: unknown }
export type Attributes = Readonly<Record<string, Instance>> & { readonly id: string }

export interface LiveDevice {
  /** Resolves after some more samples were acknowledged. */
  sent(more: number): Promise<void>
  end(): Promise<void>
}

export interface FaultSite {
  readonly gateway: () => GatewayProcess
  readonly client: () => ReturnType<typeof httpClient>
  start(): Promise<void>
  /** Kills the gateway, and starts it again on its data after a time in ms. */
  killAndStart(downMs?: number): Promise<void>
  /** Publishes samples of a device, one SenML pack each, in order; settles when all are acknowledged. */
  publish(device: string, samples: readonly (readonly [time: number, value: number])[]): Promise<void>
  /** A device that sends a sample per interval, at the time of sending, while it is connected. */
  device(name: string, intervalMs: number, sample: (i: number) => number): LiveDevice
  entity(id: string): Promise<Attributes>
  /** Fault entities of a stream, by begin. */
  faults(device: string): Promise<readonly Attributes[]>
  state(device: string): Promise<unknown>
  verdict(device: string): Promise<unknown>
  end(): Promise<void>
}

/** Begin of yesterday and some ms: detectors learn by the hour, so the time of day of a test must not matter. */
export const yesterday = (): number => (Math.floor(Date.now() / 86_400_000) - 1) * 86_400_000 + 125

export const sensorId = (device: string): string => `urn:ngsi-ld:Sensor:${device}:temperature`
export const streamId = (device: string): string => `urn:ngsi-ld:IotStream:${device}:temperature`
export const observationId = (device: string): string => `urn:ngsi-ld:StreamObservation:${device}:temperature`

const packOf = (device: string, time: number, v: number): string =>
  JSON.stringify([{ bn: `${device}:`, bt: time / 1000, n: 'temperature', u: 'Cel', v }])

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
    async killAndStart(downMs = 0) {
      await gateway.kill()
      await setTimeout(downMs)
      await start()
    },
    async publish(device, samples) {
      const mqtt = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { reconnectPeriod: 0 })
      const packs = samples.map(([time, v]) => packOf(device, time, v))
      await Promise.all(packs.map((pack) => mqtt.publishAsync(`senml/${device}`, pack, { qos: 1 })))
      await mqtt.endAsync()
    },
    device(name, intervalMs, sample) {
      let sent = 0
      let acknowledged = 0
      let mqtt: MqttClient | undefined
      const send = async (): Promise<void> => {
        try {
          if (mqtt?.connected === false) mqtt = undefined
          mqtt ??= await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`, { reconnectPeriod: 0 })
          await mqtt.publishAsync(`senml/${name}`, packOf(name, Date.now(), sample(sent++)), { qos: 1 })
          acknowledged++
        } catch {
          // The gateway is away.
          mqtt = undefined
        }
      }
      const timer = setInterval(() => void send(), intervalMs)
      return {
        async sent(more) {
          const enough = acknowledged + more
          await vi.waitFor(() => expect(acknowledged).toBeGreaterThanOrEqual(enough), patience)
        },
        async end() {
          clearInterval(timer)
          await mqtt?.endAsync()
        },
      }
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
