/**
 * The shipped virtual-sensor model at a place without a history: it takes part where it is not worse, and its
 * predictions name it with its hash.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { type Envelope, idOf, neighbourhoodOf, patience, type ShownState } from './neighbourhood.ts'

const models = join(import.meta.dirname, '../../../models')
const document = readFileSync(join(models, 'air-neighbours', 'model.json'), 'utf8')
const { sha256 } = JSON.parse(document) as { sha256: string }
const method = 'urn:selvedge:ns:method'
const folder = mkdtempSync(join(tmpdir(), 'selvedge-virtual-model-'))
let gateway: GatewayInside
const near = neighbourhoodOf(() => gateway)

/** Degrees north and east of [10, 56] of six stations, within 20 km. */
const stations = [
  [0.05, 0.02],
  [-0.04, 0.06],
  [0.02, -0.07],
  [-0.07, -0.05],
  [0.1, -0.01],
  [-0.02, 0.12],
] as const

/** Pollution that the wind carries over the stations, with the noise of each. */
function pollution([north, east]: readonly [number, number], seed: number): (slot: number) => number {
  const noise = createSeededRandom(seed)
  return (slot) => {
    const along = 9 * north + 5 * east
    const cloud = Math.sin(slot / 9 - 6 * along) + 0.7 * Math.sin(slot / 23 + 4 * along)
    return Math.round((60 + 25 * cloud + 8 * (noise() - 0.5)) * 10) / 10
  }
}

beforeAll(async () => {
  gateway = await startGatewayInside(folder, {
    SELVEDGE_MODELS_ASSIGN: JSON.stringify([{ model: 'air-neighbours', property: 'PM2.5' }]),
  })
  for (const [i, [north, east]] of stations.entries())
    for (const label of ['pm2.5', 'no2']) {
      const name = `${label}-${i}`
      const location = { type: 'GeoProperty', value: { type: 'Point', coordinates: [10 + east, 56 + north] } }
      await near.create(name, { label, more: { location } })
      await near.history(name, 300, pollution([north, east], i + 1))
    }
})
afterAll(async () => {
  await gateway?.close()
  rmSync(folder, { recursive: true, force: true })
})

async function deployed(property: string): Promise<string> {
  const body = { location: [56, 10, 0], propertyID: idOf('ObservableProperty', property), updateInterval: 1 }
  const answer = await gateway.ask('POST', '/virtual-sensors/api/deployVirtualSensor', { body })
  return (answer.json() as Envelope).data['id'] as string
}

async function familyOf(id: string): Promise<string> {
  return vi.waitFor(async () => {
    const { data } = (await gateway.get('/virtual-sensors/api/status')).json() as Envelope
    const shown = (data['virtualSensors'] as (ShownState & { family?: string })[]).find(
      (one) => one.id === id,
    )
    expect(shown).toMatchObject({ state: 'running' })
    return shown!.family!
  }, patience)
}

describe('a place without a history', () => {
  it('gets predictions that name the assigned model and its hash', async () => {
    const id = await deployed('pm2.5-0')
    expect(await familyOf(id)).toBe('air-neighbours')
    const result = await near.published(id, (one) => one[method] !== undefined)
    expect(result[method]).toMatchObject({ value: `model:air-neighbours@sha256:${sha256}` })
    expect(result.value).toBeGreaterThan(0)
    expect(result.value).toBeLessThan(130)
  })

  it('gets those of the built-in families without an assigned model', async () => {
    const id = await deployed('no2-0')
    expect(await familyOf(id)).toBe('blend')
    expect((await near.published(id))[method]).toBeUndefined()
  })
})
