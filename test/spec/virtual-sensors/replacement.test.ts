/**
 * A broken sensor is replaced in a real gateway process: description, predictions, faulty sources, a kill,
 * changed parameters, and the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { httpClient } from '#test/kit/http-gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import {
  courseOf,
  type Envelope,
  idOf,
  neighbourhoodOf,
  patience,
  qoi,
  type Result,
  type ShownState,
  slotMs,
  sosa,
} from './neighbourhood.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-virtual-'))
const broken = idOf('Sensor', 'mast:temperature')
const virtual = `${broken}:VS`
const sources = ['north', 'middle', 'south']

let gateway: GatewayProcess
const client = () => httpClient(gateway.httpUrl)
const near = neighbourhoodOf(client)
const start = (limits = '') =>
  startGatewayProcess({
    dataFolder: join(folder, 'data'),
    env: { SELVEDGE_MQTT_PORT: 'off', ...(limits !== '' && { SELVEDGE_LIMITS: limits }) },
  })

async function call(name: string, body: object): Promise<Envelope> {
  const answer = await client().send('POST', `/virtual-sensors/api/${name}`, body)
  expect({ name, status: answer.status }).toEqual({ name, status: 200 })
  return answer.json() as Envelope
}

async function stateOf(id: string): Promise<ShownState | undefined> {
  const { data } = await call('status', {})
  return (data['virtualSensors'] as ShownState[]).find((one) => one.id === id)
}

const running = (id: string): Promise<ShownState> =>
  vi.waitFor(async () => {
    const shown = await stateOf(id)
    expect(shown).toMatchObject({ state: 'running' })
    return shown!
  }, patience)

beforeAll(async () => {
  gateway = await start()
  await near.create('mast:temperature', { more: { [`${qoi}min`]: { type: 'Property', value: -40 } } })
  const course = courseOf(9, { factor: 1.2, offset: 20 })
  const stuckSince = Math.floor(Date.now() / slotMs) - 50
  await near.history('mast:temperature', 300, (slot) => (slot < stuckSince ? course(slot) : 21.5))
  for (const [i, name] of sources.entries()) {
    await near.create(name, { north: 0.01 * (i + 1) })
    await near.history(name, 300, courseOf(i, { offset: 10 }))
  }
})
afterAll(async () => {
  await gateway?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('a broken sensor', () => {
  it('is replaced: the description comes at once, predictions follow', async () => {
    const { status, success, description, data } = await call('replaceBrokenSensor', {
      sensorID: broken,
      updateInterval: 1,
    })
    expect({ status, success, description }).toEqual({ status: 'ok', success: true, description: '' })
    const notAvailable = { type: 'Property', value: 'NA' }
    expect(data).toMatchObject({
      id: virtual,
      type: `${sosa}Sensor`,
      location: { type: 'GeoProperty', value: { type: 'Point', coordinates: [10, 56] } },
      [`${sosa}isHostedBy`]: { type: 'Relationship', object: 'urn:ngsi-ld:Platform:mast:temperature:VS' },
      [`${sosa}observes`]: { object: idOf('ObservableProperty', 'mast:temperature') },
      [`${sosa}madeObservation`]: { object: idOf('StreamObservation', 'mast:temperature:VS') },
      [`${qoi}min`]: notAvailable,
      [`${qoi}max`]: notAvailable,
      [`${qoi}updateinterval`]: { ...notAvailable, [`${qoi}unit`]: notAvailable },
      [`${qoi}valuetype`]: notAvailable,
      'urn:selvedge:ns:predictionInterval': { value: 1, unitCode: 'SEC' },
    })
    const shown = await running(virtual)
    expect(shown).toMatchObject({ error: null, sources: sources.map((name) => idOf('Sensor', name)) })
    const result = await near.published(virtual)
    const expected = courseOf(9, { factor: 1.2, offset: 20 })(Math.floor(Date.now() / slotMs))
    expect(Math.abs(result.value - expected)).toBeLessThan(3)
    expect(result).toMatchObject({
      [`${qoi}artificiality`]: { type: 'Property', value: 1 },
      'urn:selvedge:ns:usedSensors': { type: 'Property', value: shown.sources },
    })
    expect((result['urn:selvedge:ns:standardError'] as { value: number }).value).toBeGreaterThan(0)
  })

  it('is replaced once: the same request returns the same virtual sensor', async () => {
    const { data } = await call('replaceBrokenSensor', { sensorID: broken, updateInterval: 1 })
    expect(data['id']).toBe(virtual)
    expect(await stateOf(virtual)).toMatchObject({ state: 'running' })
    const { data: listed } = await call('list', {})
    expect(listed).toEqual({ [virtual]: data })
  })

  it('has visible subscriptions to the sources', async () => {
    const watched = await subscriptions()
    expect(watched.map(({ entities }) => entities.map(({ id }) => id))).toEqual([
      sources.map((name) => idOf('StreamObservation', name)),
      sources.map((name) => idOf('IotStream', name)),
    ])
  })

  it('takes no values from a source whose stream is in state fault', async () => {
    const used = (names: readonly string[]) => (result: Result) =>
      JSON.stringify((result['urn:selvedge:ns:usedSensors'] as { value: unknown }).value) ===
      JSON.stringify(names.map((name) => idOf('Sensor', name)))
    await near.setState('middle', 'fault')
    await near.published(virtual, used(['north', 'south']))
    await near.setState('middle', 'normal')
    await near.published(virtual, used(sources))
  })

  it('is predicted on after the gateway was killed', async () => {
    await gateway.kill()
    gateway = await start()
    const startedAt = Date.now()
    await near.published(virtual, ({ observedAt }) => Date.parse(observedAt) > startedAt)
    expect(await stateOf(virtual)).toMatchObject({ state: 'running', error: null })
    expect(await subscriptions()).toHaveLength(2)
  })

  it('gets its entities again when somebody deletes one', async () => {
    const id = idOf('StreamObservation', 'mast:temperature:VS')
    expect((await client().ask('DELETE', `/ngsi-ld/v1/entities/${id}`)).status).toBe(204)
    await near.published(virtual)
    await gateway.event('virtual-sensors.entities-gone')
  })

  it('is trained anew with other parameters', async () => {
    const { data } = await call('replaceBrokenSensor', {
      sensorID: broken,
      updateInterval: 2,
      limitSourceSensors: 2,
    })
    expect(data).toMatchObject({ 'urn:selvedge:ns:predictionInterval': { value: 2 } })
    const shown = await running(virtual)
    expect(shown.sources).toEqual(['north', 'middle'].map((name) => idOf('Sensor', name)))
    await vi.waitFor(async () => {
      const [watched] = await subscriptions()
      expect(watched?.entities).toHaveLength(2)
      expect(await subscriptions()).toHaveLength(2)
    }, patience)
  })

  it('loses its replacement with all entities and subscriptions', async () => {
    const ids = ['Sensor', 'Platform', 'IotStream', 'StreamObservation'].map((kind) =>
      idOf(kind, 'mast:temperature:VS'),
    )
    const quality = `urn:ngsi-ld:QoI:${idOf('IotStream', 'mast:temperature:VS')}`
    await client().send('POST', '/ngsi-ld/v1/entities', { id: quality, type: `${qoi}Quality` })
    const all = [...ids, quality]
    const found = async (): Promise<number[]> =>
      Promise.all(all.map(async (id) => (await client().get(`/ngsi-ld/v1/entities/${id}`)).status))
    expect(await found()).toEqual(all.map(() => 200))
    const { success } = await call('stopVirtualSensor', { sensorID: broken })
    expect(success).toBe(true)
    expect(await found()).toEqual(all.map(() => 404))
    expect(await subscriptions()).toEqual([])
    expect((await client().get(`/ngsi-ld/v1/entities/${broken}`)).status).toBe(200)
    const again = await client().send('POST', '/virtual-sensors/api/stopVirtualSensor', { sensorID: virtual })
    expect(again.status).toBe(404)
    expect(again.json()).toMatchObject({ status: 'error', success: false })
    expect((await call('list', {})).data).toEqual({})
  })

  it('is trained again after a failure, without another request', async () => {
    await gateway.stop()
    gateway = await start('virtualTrainingMs=1,virtualRetrainMs=200')
    await call('replaceBrokenSensor', { sensorID: broken })
    for (const _ of [1, 2]) await gateway.event('virtual-sensors.training-failed')
    await gateway.kill()
    gateway = await start('virtualRetrainMs=200')
    expect(await running(virtual)).toMatchObject({ error: null })
    await call('stopVirtualSensor', { sensorID: broken })
  })
})

interface Watched {
  readonly id: string
  readonly description: string
  readonly entities: readonly { readonly id: string }[]
}

/** Those of the virtual sensor, the observations before the streams. */
async function subscriptions(): Promise<readonly Watched[]> {
  const answer = await client().get('/ngsi-ld/v1/subscriptions?options=followers&limit=100')
  return (answer.json() as Watched[])
    .filter(({ id }) => id.startsWith('urn:ngsi-ld:Subscription:VS_'))
    .toSorted((a, b) => a.description.length - b.description.length)
}
