/**
 * A board without a battery, as a real process: it starts in 1970, stores observations, is killed, and its
 * clock is set at last. Then all times are correct, here and at the central broker. A jump of its clock
 * removes nothing.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'

const withinMs = { interval: 100 }
const to1970 = -1_700_000_000_000
const hasSimpleResult = 'http://www.w3.org/ns/sosa/hasSimpleResult'
const resultTime = 'http://www.w3.org/ns/sosa/resultTime'
const observation = (device: string): string => `urn:ngsi-ld:StreamObservation:${device}:temp`
const deviceTime = 1_779_000_000

let folder: string
let site: GatewayProcess
let centre: GatewayProcess | undefined

const at = (name: string): string => join(folder, name)
const client = (gateway = site): HttpClient => httpClient(gateway.httpUrl)
const setWrongBy = (ms: number): void => writeFileSync(at('shift'), String(ms))
/** Acts as an NTP client that has set the clock; the gateway re-reads the simulated error periodically. */
const setRight = async (): Promise<void> => {
  setWrongBy(0)
  await new Promise((resolve) => setTimeout(resolve, 250))
  writeFileSync(at('run/synchronized'), String(Date.now()))
}
const startSite = (
  config: object = {},
  env: Readonly<Record<string, string>> = {},
): Promise<GatewayProcess> =>
  startGatewayProcess({
    dataFolder: at('site'),
    env: { SELVEDGE_CLOCK_SHIFT: at('shift'), SELVEDGE_CLOCK_SYNCED_FILE: at('run/synchronized'), ...env },
    config: { ...config },
  })
const say = async (device: string, value: number, time?: number): Promise<void> => {
  const record = {
    bn: `${device}:`,
    n: 'temp',
    u: 'Cel',
    v: value,
    ...(time === undefined ? {} : { bt: time }),
  }
  const answer = await client().ask('POST', '/senml', {
    body: [record],
    headers: { 'Content-Type': 'application/senml+json' },
  })
  expect(answer.status).toBe(204)
}
const current = async (
  device: string,
  gateway = site,
): Promise<Record<string, { value: unknown; observedAt: string }>> =>
  (await client(gateway).get(`/ngsi-ld/v1/entities/${observation(device)}`)).json()
const history = async (device: string, gateway = site): Promise<[number, string][]> => {
  const path = `/ngsi-ld/v1/temporal/entities/${observation(device)}?attrs=${hasSimpleResult}&options=temporalValues`
  const answer = await client(gateway).get(path)
  if (answer.status !== 200) return []
  return (answer.json() as Record<string, { values: [number, string][] }>)[hasSimpleResult]!.values
}
const clockOf = async (): Promise<string> =>
  ((await client().get('/health/ready')).json() as { clock: { state: string } }).clock.state
/** Sent values and their true times, by the clock of the test. */
const truth: { value: number; from: number; to: number }[] = []
const sayNow = async (device: string, value: number): Promise<void> => {
  const from = Date.now()
  await say(device, value)
  truth.push({ value, from, to: Date.now() })
}
const expectTrue = (stored: [number, string][]): void => {
  expect(stored.map(([value]) => value)).toEqual(truth.map(({ value }) => value))
  for (const [i, [, time]] of stored.entries()) {
    // A process knows its boot time to within some ms.
    expect(Date.parse(time)).toBeGreaterThanOrEqual(truth[i]!.from - 100)
    expect(Date.parse(time)).toBeLessThanOrEqual(truth[i]!.to + 100)
  }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'selvedge-clock-'))
  mkdirSync(at('run'))
  truth.length = 0
  centre = undefined
})
afterEach(async () => {
  await Promise.all([site.stop(), centre?.stop()])
  rmSync(folder, { recursive: true })
})

it('corrects the times of earlier values when the clock is set, also after a kill, and publishes none before', async () => {
  centre = await startGatewayProcess({ dataFolder: at('centre') })
  setWrongBy(to1970)
  site = await startSite()
  expect(await clockOf()).toBe('unsynced')
  const subscription = {
    id: 'urn:up',
    type: 'Subscription',
    entities: [{ type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation' }],
    notification: {
      endpoint: {
        uri: `${centre.httpUrl}/ngsi-ld/v1`,
        notifierInfo: [{ key: 'selvedge:mode', value: 'uplink' }],
      },
    },
  }
  expect((await client().send('POST', '/ngsi-ld/v1/subscriptions', subscription)).status).toBe(201)
  await sayNow('d1', 20)
  await sayNow('d1', 21)
  await say('d2', 5, deviceTime)
  // A readable time after the release date of this version, but not the true time.
  const provisional = Date.parse((await current('d1'))[hasSimpleResult]!.observedAt)
  expect(provisional).toBeGreaterThanOrEqual(Date.UTC(2026, 0, 1))
  expect(provisional).toBeLessThan(truth[1]!.from - 86_400_000)
  await site.kill('SIGKILL')
  site = await startSite()
  expect((await history('d1')).map(([value]) => value)).toEqual([20, 21])
  await sayNow('d1', 22)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(await history('d1', centre)).toEqual([])
  expect((await client().get('/selvedge/v1/uplinks/urn:up')).json()).toMatchObject({
    state: 'waiting',
    waitsFor: 'clock',
  })

  await setRight()
  await site.event('clock.settled')
  await sayNow('d1', 23)
  expect(await clockOf()).toBe('synced')
  expectTrue(await history('d1'))
  const now = await current('d1')
  expect(now[hasSimpleResult]).toMatchObject({ value: 23 })
  expect(now[resultTime]!.value).toBe(now[hasSimpleResult]!.observedAt)
  expect(await history('d2')).toEqual([[5, '2026-05-17T06:40:00Z']])
  const settled = await history('d1')
  await vi.waitFor(async () => {
    expect(await history('d1', centre)).toEqual(settled)
    expect((await current('d1', centre))[hasSimpleResult]).toEqual(now[hasSimpleResult])
  }, withinMs)
  expect(await history('d2', centre)).toEqual([[5, '2026-05-17T06:40:00Z']])

  await site.kill('SIGKILL')
  site = await startSite()
  expect(await history('d1')).toEqual(settled)
  expect((await current('d1'))[hasSimpleResult]).toEqual(now[hasSimpleResult])
  expect((await client().get('/metrics')).text).toContain('\nselvedge_clock_unsettled_rows 0\n')
})

it('corrects, after a start with the right time, values stored before a kill with the wrong one, despite another kill', async () => {
  setWrongBy(to1970)
  site = await startSite()
  for (const value of [1, 2, 3]) await sayNow('d1', value)
  await site.kill('SIGKILL')
  await setRight()
  for (const point of ['writer:before-commit', 'writer:after-commit']) {
    site = await startSite({}, { SELVEDGE_FAILPOINTS: `${point}=kill` })
    expect(await site.exited).toMatchObject({ signal: 'SIGKILL' })
  }
  site = await startSite()
  // Corrections on disk at the kill are already visible.
  expectTrue(await history('d1'))
  expect(site.output()).not.toContain('clock.unsynced')
  expect((await client().get('/metrics')).text).toContain('\nselvedge_clock_unsettled_rows 0\n')
})

it('removes nothing because of a jump to 2038 and back, logs it, and keeps the times', async () => {
  await setRight()
  site = await startSite({ history: { maxAgeDays: 30 } })
  const expiresAt = new Date(Date.now() + 365 * 86_400_000).toISOString()
  const entity = { id: 'urn:x:1', type: 'T', expiresAt, a: { type: 'Property', value: 1 } }
  expect((await client().send('POST', '/ngsi-ld/v1/entities', entity)).status).toBe(201)
  await sayNow('d1', 1)
  setWrongBy(Date.UTC(2038, 0, 19) - Date.now())
  await site.event('clock.jumped')
  await sayNow('d1', 2)
  expect((await client().get('/ngsi-ld/v1/entities/urn:x:1')).status).toBe(200)
  expect(await clockOf()).toBe('unsynced')
  setWrongBy(0)
  await site.event('clock.settled')
  await sayNow('d1', 3)
  expectTrue(await history('d1'))
  expect((await client().get('/ngsi-ld/v1/entities/urn:x:1')).status).toBe(200)
  expect((await client().get('/metrics')).text).toMatch(/selvedge_clock_jumps_total [1-9]/)
})
