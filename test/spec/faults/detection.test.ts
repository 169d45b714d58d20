/**
 * Fault detection in a real gateway process, fed by MQTT: a stuck sensor becomes a Fault entity, the state of
 * its stream and a verdict, each once, through kills.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createFaultSite, observationId, patience, sensorId, streamId, yesterday } from './stuck-site.ts'

const selvedge = 'urn:selvedge:ns:'
const fd = 'https://w3id.org/iot/fd/'
const site = createFaultSite()
beforeAll(site.start)
afterAll(site.end)

const minute = 60_000
/** Samples that vary, one a minute. */
const varying = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => [from + i * minute, 20 + (i % 7) + (i % 3) / 10] as const)
const equal = (from: number, count: number, value = 25.5) =>
  Array.from({ length: count }, (_, i) => [from + i * minute, value] as const)

describe('a sensor that sticks', () => {
  const begin = yesterday()
  const stuck = begin + 120 * minute
  const healed = stuck + 10 * minute

  it('is a Fault, a state and a verdict at the eighth equal value', async () => {
    await site.publish('a', [...varying(begin, 120), ...equal(stuck, 7)])
    await vi.waitFor(async () => expect(await site.verdict('a')).toBe('ok'), patience)
    await site.publish('a', equal(stuck + 7 * minute, 1))
    await vi.waitFor(async () => expect(await site.state('a')).toBe('fault'), patience)
    const [fault, ...further] = await site.faults('a')
    expect(further).toEqual([])
    expect(fault).toMatchObject({
      id: `urn:ngsi-ld:Fault:a:temperature:${stuck}`,
      type: `${selvedge}Fault`,
      [`${selvedge}stream`]: { type: 'Relationship', object: streamId('a') },
      [`${selvedge}sensor`]: { type: 'Relationship', object: sensorId('a') },
      [`${selvedge}class`]: { type: 'Property', value: 'stuck' },
      [`${selvedge}kind`]: { value: 'definite' },
      [`${selvedge}likelihood`]: { type: 'Property', value: expect.any(Number) as number },
      [`${selvedge}begin`]: { value: { '@type': 'DateTime', '@value': new Date(stuck).toISOString() } },
      [`${selvedge}method`]: { value: 'rule:stuck' },
    })
    expect(fault).not.toHaveProperty([`${selvedge}end`])
    const observation = await site.entity(observationId('a'))
    expect(observation[`${fd}hasVerdict`]).toMatchObject({
      type: 'Property',
      value: 'faulty',
      observedAt: new Date(stuck + 7 * minute).toISOString(),
    })
  })

  it('lasts through kills, and ends with good values', async () => {
    await site.killAndStart()
    await site.publish('a', equal(stuck + 8 * minute, 2))
    expect(await site.state('a')).toBe('fault')
    await site.publish('a', varying(healed, 1))
    await vi.waitFor(async () => expect(await site.state('a')).toBe('recovering'), patience)
    await site.killAndStart()
    await site.publish('a', varying(healed + minute, 70))
    await vi.waitFor(async () => expect(await site.state('a')).toBe('normal'), patience)
    const all = await site.faults('a')
    const kindOf = (one: (typeof all)[number]): unknown =>
      (one[`${selvedge}kind`] as { value: unknown }).value
    const faults = all.filter((one) => kindOf(one) === 'definite')
    // The return to good values may be an anomaly of its own, which ends.
    for (const one of all.slice(1)) {
      expect(kindOf(one)).toBe('anomaly')
      expect(one).toHaveProperty([`${selvedge}end`])
    }
    expect(faults.map(({ id }) => id)).toEqual([`urn:ngsi-ld:Fault:a:temperature:${stuck}`])
    expect(faults[0]![`${selvedge}end`]).toMatchObject({ value: { '@type': 'DateTime' } })
    const expiresAt = (await site.entity(`${faults[0]!.id}?options=sysAttrs`))['expiresAt'] as unknown
    expect(Date.parse(expiresAt as string)).toBeGreaterThan(Date.now() + 29 * 24 * 60 * minute)
    const observation = await site.entity(observationId('a'))
    expect(observation).toMatchObject({
      [`${fd}hasVerdict`]: { value: 'ok' },
      [`${fd}hasEstimatedResult`]: { value: 'N/A' },
    })
  })

  it('has each verdict and state once in its history', async () => {
    const values = async (id: string, name: string) => {
      const attrs = encodeURIComponent(name)
      const path = `/ngsi-ld/v1/temporal/entities/${id}?attrs=${attrs}&options=temporalValues`
      const body = (await site.client().get(path)).json() as Record<string, { values: [unknown, string][] }>
      return body[name]!.values.map(([value]) => value)
    }
    expect(await values(streamId('a'), `${selvedge}state`)).toEqual([
      'normal',
      'fault',
      'recovering',
      'normal',
    ])
    expect(await values(observationId('a'), `${fd}hasVerdict`)).toEqual(['ok', 'faulty', 'ok'])
  })
})
