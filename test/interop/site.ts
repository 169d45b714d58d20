/**
 * The site whose data go up: a real gateway with devices on MQTT and entities of every kind by HTTP, an uplink to the other
 * broker over a way that can be made bad, and the comparison of both ends. All ids carry the name of the run, so that
 * nothing else at the other broker is touched.
 */
import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { connectRaw, publishPacket, type RawClient } from '#test/kit/mqtt.ts'
import { startGatewayProcess } from '#test/kit/process.ts'
import { type BrokerSettings, type BrokerView, viewBroker } from './broker-view.ts'
import { entityDifferences, historyDifference } from './comparing.ts'
import { kindsOf } from './kinds.ts'

export interface Difference {
  /** Lines that say what is not the same. */
  readonly entities: readonly string[]
  readonly missing: number
  readonly repeated: number
  readonly foreign: number
}

export interface Site {
  readonly run: string
  readonly proxy: FaultProxy
  readonly centre: BrokerView
  /** One new observation per device; those that are late are older than some before them. */
  observe(options?: { count?: number; isLate?: boolean }): Promise<void>
  write(method: string, path: string, body?: unknown): Promise<void>
  /** The id of an entity of this run. */
  id(name: string): string
  kill(): Promise<void>
  start(): Promise<void>
  /** Compares both ends now. */
  compare(): Promise<Difference>
  observations(): number
  /** All entities that go up. */
  ids(): readonly string[]
  log(): string
  close(): Promise<void>
}

export interface SiteSettings extends BrokerSettings {
  readonly devices: number
  readonly hasHistory: boolean
}

const spacingMs = 100
const result = 'http://www.w3.org/ns/sosa/hasSimpleResult'
const thingType = 'InteropThing'
const kindsOfDevice = ['StreamObservation', 'IotStream', 'Sensor']
const typesUp = [
  thingType,
  'http://purl.org/iot/ontology/iot-stream#StreamObservation',
  'http://purl.org/iot/ontology/iot-stream#IotStream',
  'http://www.w3.org/ns/sosa/Sensor',
]

export async function openSite(settings: SiteSettings): Promise<Site> {
  const run = `interop-${Date.now().toString(36)}`
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-interop-'))
  const { hostname, port } = new URL(settings.base)
  const proxy = await createFaultProxy({ target: { host: hostname, port: Number(port || 80) } })
  const centre = viewBroker(settings)
  const baseMs = Math.floor(Date.now() / 1000) * 1000 - 6 * 3_600_000
  const devices = Array.from({ length: settings.devices }, (_, i) => `${run}-${i}`)
  const id = (name: string): string => `urn:ngsi-ld:InteropThing:${run}-${name}`
  const entities = new Set(kindsOf(id).map((one) => one.id))
  let next = 0
  let observations = 0
  let output = ''
  let gateway = await startGatewayProcess({ dataFolder: join(folder, 'data') })
  const clients = new Map<string, RawClient>()
  const connectAll = async (): Promise<void> => {
    for (const device of devices) clients.set(device, await connectRaw(gateway.mqttPort, device))
  }
  await connectAll()
  const ours = (): BrokerView => viewBroker({ base: `${gateway.httpUrl}/ngsi-ld/v1` })

  async function write(method: string, path: string, body?: unknown): Promise<void> {
    const { status, text } = await ours().ask(method, path, body)
    if (status >= 300) throw new AssertionError({ message: `${method} ${path}: ${status} ${text}` })
    const made = (body as { id?: string; type?: unknown } | undefined)?.id
    if (method === 'POST' && path === '/entities' && made !== undefined) entities.add(made)
  }

  async function observe({ count = 1, isLate = false } = {}): Promise<void> {
    const first = next
    next += count
    await Promise.all(
      devices.map(async (device) => {
        const records = Array.from({ length: count }, (_, i) => ({
          ...(i === 0 ? { bn: `${device}:` } : {}),
          n: 'v',
          u: 'Cel',
          v: first + i,
          t: timeOf(baseMs, first + i, isLate) / 1000,
        }))
        const client = clients.get(device)!
        client.send(publishPacket(`senml/${device}`, JSON.stringify(records), { qos: 1, messageId: 1 }))
        await client.next()
        observations += count
      }),
    )
  }

  const ids = (): readonly string[] => [
    ...entities,
    ...devices.flatMap((device) => kindsOfDevice.map((kind) => `urn:ngsi-ld:${kind}:${device}:v`)),
  ]

  async function compareHistories(): Promise<Omit<Difference, 'entities'>> {
    const sum = { missing: 0, repeated: 0, foreign: 0 }
    if (!settings.hasHistory) return sum
    const times: number[] = []
    for (let at = -2; at < next + 400; at += 400) times.push(baseMs + at * spacingMs + spacingMs / 2)
    for (const device of devices) {
      const entity = `urn:ngsi-ld:StreamObservation:${device}:v`
      const [here, there] = [
        await ours().history(entity, result, times),
        await centre.history(entity, result, times),
      ]
      const { missing, repeated, foreign } = historyDifference(here, there)
      sum.missing += missing
      sum.repeated += repeated
      sum.foreign += foreign
    }
    return sum
  }

  async function compareEntities(): Promise<string[]> {
    const differences: string[] = []
    for (const one of ids()) {
      const [here, there] = [await ours().entity(one), await centre.entity(one)]
      differences.push(...entityDifferences(here, there).map((text) => `${one.replace(run, 'RUN')} ${text}`))
    }
    return differences
  }

  for (const entity of kindsOf(id)) await write('POST', '/entities', entity)
  await observe()
  await write(
    'POST',
    '/subscriptions',
    subscriptionTo(`${proxy.url}${new URL(settings.base).pathname}`, run, settings),
  )

  return Object.freeze({
    run,
    proxy,
    centre,
    id,
    ids,
    observe,
    write,
    observations: () => observations,
    log: () => output + gateway.output(),
    async kill() {
      await gateway.kill('SIGKILL')
      output += gateway.output()
    },
    async start() {
      gateway = await startGatewayProcess({ dataFolder: join(folder, 'data') })
      await connectAll()
    },
    async compare() {
      return { entities: await compareEntities(), ...(await compareHistories()) }
    },
    async close() {
      for (const client of clients.values()) client.end()
      await gateway.stop()
      await proxy.close()
      rmSync(folder, { recursive: true })
    },
  } satisfies Site)
}

/** Late values lie ten values back, at a time that no other value has. */
const timeOf = (baseMs: number, value: number, isLate: boolean): number =>
  baseMs + value * spacingMs - (isLate ? 10 * spacingMs - spacingMs / 4 : 0)

const subscriptionTo = (uri: string, run: string, { headers = {} }: BrokerSettings): object => ({
  id: `urn:ngsi-ld:Subscription:${run}`,
  type: 'Subscription',
  entities: typesUp.map((type) => ({ type, idPattern: `.*${run}.*` })),
  notification: {
    endpoint: {
      uri,
      notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      receiverInfo: Object.entries(headers).map(([key, value]) => ({ key, value })),
    },
  },
})
