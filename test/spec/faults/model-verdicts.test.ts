/**
 * A shipped fault model in a real gateway process: it decides verdicts, which name model and hash, and the
 * rules go on without it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { type Attributes, createFaultSite, observationId, patience, yesterday } from './stuck-site.ts'

const selvedge = 'urn:selvedge:ns:'
const fd = 'https://w3id.org/iot/fd/'
const folder = join(import.meta.dirname, '../../../models/stream-window')
const { sha256 } = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8')) as { sha256: string }
const site = createFaultSite({
  SELVEDGE_MODELS_ASSIGN: JSON.stringify([{ model: 'stream-window', property: 'temperature' }]),
})
beforeAll(site.start)
afterAll(site.end)

const minute = 60_000
const begin = yesterday()

/** A slow course with noise, which never has equal neighbours. */
function varying(count: number): (readonly [number, number])[] {
  const random = createSeededRandom(3)
  return Array.from({ length: count }, (_, i) => {
    const value = 21 + 2 * Math.sin(i / 40) + (random() - 0.5)
    return [begin + i * minute, Math.round(value * 100 + (i % 2)) / 100] as const
  })
}
const equal = (from: number, count: number, value: number) =>
  Array.from({ length: count }, (_, i) => [begin + (from + i) * minute, value] as const)

describe('a fault model that is assigned to a stream', () => {
  it('decides the verdict before the rule does, and is named with its hash', async () => {
    await site.publish('m', [...varying(150), ...equal(150, 7, 22.22)])
    await vi.waitFor(async () => expect(await site.verdict('m')).toBe('faulty'), patience)
    const [fault, ...further] = await site.faults('m')
    expect(further).toEqual([])
    expect(fault).toMatchObject({
      id: `urn:ngsi-ld:Fault:m:temperature:${begin + 150 * minute}`,
      [`${selvedge}class`]: { value: 'stuck' },
      [`${selvedge}kind`]: { value: 'definite' },
      [`${selvedge}method`]: { value: `model:stream-window@sha256:${sha256}` },
    })
    const observation = await site.entity(observationId('m'))
    expect(observation[`${fd}hasVerdict`]).toMatchObject({
      value: 'faulty',
      [`${selvedge}method`]: { value: `model:stream-window@sha256:${sha256}` },
    })
  })

  it('judges what arrives around a kill, each sample once', async () => {
    await site.publish('m', equal(157, 3, 22.22))
    await site.killAndStart()
    await site.publish('m', [...equal(160, 2, 22.22), ...varying(300).slice(162)])
    await vi.waitFor(async () => expect(await site.state('m')).toBe('normal'), patience)
    const isStuck = (one: Attributes): boolean => one[`${selvedge}class`]!.value === 'stuck'
    const [fault, ...further] = (await site.faults('m')).filter(isStuck)
    expect(further).toEqual([])
    expect(fault!.id).toBe(`urn:ngsi-ld:Fault:m:temperature:${begin + 150 * minute}`)
    expect(fault![`${selvedge}end`]).toBeDefined()
  })
})
