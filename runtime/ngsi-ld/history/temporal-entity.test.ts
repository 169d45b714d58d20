/** A long body of history is read in portions, whatever its instances state. */
import { describe, expect, it } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { parseTemporalEntity } from './temporal-entity.ts'

const name = coreContext.expand('v')
const instants = Array.from({ length: 9000 }, (_, i) => new Date(1.7e12 + i * 1000).toISOString())

const read = (v: readonly object[], keepsTimes: boolean) => readAll({ v }, keepsTimes)

async function readAll(attributes: Record<string, readonly object[]>, keepsTimes: boolean) {
  let yields = 0
  const yieldIfDue = async (): Promise<void> => void yields++
  const body = { id: 'urn:x:1', type: 'T', ...attributes }
  const entity = await parseTemporalEntity(body, coreContext, { keepsTimes, yieldIfDue })
  return { entity, yields }
}

describe('a body of 9,000 instances', () => {
  it('yields between portions of observations', async () => {
    const v = instants.map((observedAt, value) => ({ type: 'Property', value, observedAt }))
    const { entity, yields } = await read(v, false)
    expect(entity.attributes.get(name)).toHaveLength(9000)
    expect(yields).toBeGreaterThanOrEqual(36)
  })

  it('yields between portions of instances that state system times', async () => {
    const v = instants.map((modifiedAt, value) => ({ type: 'Property', value, modifiedAt }))
    const { entity, yields } = await read(v, true)
    expect(entity.past).toHaveLength(9000)
    expect(yields).toBeGreaterThanOrEqual(36)
  })
  it('yields between portions of observations of many attributes', async () => {
    const v = instants.slice(0, 9).map((observedAt, value) => ({ type: 'Property', value, observedAt }))
    const attributes = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`v${i}`, v]))
    const { entity, yields } = await readAll(attributes, false)
    expect(entity.attributes.size).toBe(1000)
    expect(yields).toBeGreaterThanOrEqual(36)
  })
})
