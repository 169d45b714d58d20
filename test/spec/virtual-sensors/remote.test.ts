/**
 * The creator of one gateway serves another over HTTP: BROKER_ADDRESS and CALLBACK_ADDRESS as host:port, real
 * subscriptions and notifications, a kill, and the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { noPlugins } from '#test/kit/gateway-inside.ts'
import { httpClient } from '#test/kit/http-gateway.ts'
import { freePort } from '#test/kit/ports.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { courseOf, type Envelope, idOf, neighbourhoodOf, patience, type ShownState } from './neighbourhood.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-virtual-remote-'))
const broken = idOf('Sensor', 'broken')
const virtual = `${broken}:VS`

/** Holds the sensors, and has no creator. */
let site: GatewayProcess
let creator: GatewayProcess
let port: number

const near = neighbourhoodOf(() => httpClient(site.httpUrl))
const there = () => httpClient(site.httpUrl)
const here = () => httpClient(`http://127.0.0.1:${port}`)

const startCreator = () =>
  startGatewayProcess({
    dataFolder: join(folder, 'creator'),
    env: {
      ...noPlugins,
      SELVEDGE_MQTT_PORT: 'off',
      BROKER_ADDRESS: `127.0.0.1:${site.httpPort}`,
      CALLBACK_ADDRESS: `127.0.0.1:${port}`,
      SELVEDGE_VIRTUAL_SENSORS_PORT: String(port),
      SELVEDGE_LIMITS: 'followCheckMs=500',
    },
  })

beforeAll(async () => {
  port = await freePort()
  site = await startGatewayProcess({
    dataFolder: join(folder, 'site'),
    env: {
      ...noPlugins,
      SELVEDGE_MQTT_PORT: 'off',
      SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'false',
      SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
    },
  })
  creator = await startCreator()
  await near.create('broken')
  await near.history('broken', 200, courseOf(9, { offset: 5 }))
  for (const [i, name] of ['one', 'two'].entries()) {
    await near.create(name, { north: 0.01 * (i + 1) })
    await near.history(name, 200, courseOf(i))
  }
})
afterAll(async () => {
  await creator?.stop()
  await site?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function call(name: string, body: object): Promise<Envelope> {
  const answer = await here().ask('GET', `/api/${name}/`, { body })
  expect(answer.status).toBe(200)
  return answer.json() as Envelope
}

const subscriptions = async (): Promise<readonly { readonly id: string; readonly entities: unknown[] }[]> =>
  (await there().get('/ngsi-ld/v1/subscriptions')).json() as never

describe('the creator of another gateway', () => {
  it('publishes at the remote broker', async () => {
    const { success, data } = await call('replaceBrokenSensor', { sensorID: broken, updateInterval: 1 })
    expect({ success, id: data['id'] }).toEqual({ success: true, id: virtual })
    const result = await near.published(virtual)
    expect((result['urn:selvedge:ns:usedSensors'] as { value: unknown }).value).toHaveLength(2)
    expect((await there().get(`/ngsi-ld/v1/entities/${virtual}`)).status).toBe(200)
  })

  it('is notified of new values and faults', async () => {
    await vi.waitFor(async () => expect(await subscriptions()).toHaveLength(2), patience)
    const before = await near.published(virtual)
    await near.observe('one', 50)
    await near.observe('two', 50)
    await near.published(virtual, ({ value }) => value > before.value + 20)
    await near.setState('two', 'fault')
    const one = [idOf('Sensor', 'one')]
    await near.published(
      virtual,
      (result) =>
        JSON.stringify((result['urn:selvedge:ns:usedSensors'] as { value: unknown }).value) ===
        JSON.stringify(one),
    )
  })

  it('rejects a notification without the secret of a subscription', async () => {
    const body = { type: 'Notification', data: [] }
    for (const secret of ['observation', `observation.${'0'.repeat(40)}`])
      expect((await here().ask('POST', `/callback/${secret}`, { body })).status).toBe(401)
  })

  it('goes on after a kill, and deletes everything at the end', async () => {
    await creator.kill()
    creator = await startCreator()
    const startedAt = Date.now()
    await near.published(virtual, ({ observedAt }) => Date.parse(observedAt) > startedAt)
    const { data } = await call('status', {})
    expect(data['virtualSensors'] as ShownState[]).toMatchObject([{ id: virtual, state: 'running' }])
    expect(await call('stopVirtualSensor', { sensorID: virtual })).toMatchObject({ success: true })
    expect(await subscriptions()).toEqual([])
    for (const kind of ['Sensor', 'Platform', 'IotStream', 'StreamObservation'])
      expect((await there().get(`/ngsi-ld/v1/entities/${idOf(kind, 'broken:VS')}`)).status).toBe(404)
  })
})
