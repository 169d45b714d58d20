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
const start = () =>
  startGatewayProcess({ dataFolder: join(folder, 'data'), env: { SELVEDGE_MQTT_PORT: 'off' } })

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
  await near.history('mast:temperature', 300, courseOf(9, { factor: 1.2, offset: 20 }))
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
})
