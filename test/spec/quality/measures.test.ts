/**
 * Measures of the quality analyser in a real gateway process: concordance with neighbours, and quality of
 * service by which the ranking orders streams.
 */
import { describe, expect, it, vi } from 'vitest'
import { analysedSite, iotStream, patience, qoi, selvedge, streamId } from './site.ts'

const hour = 3_600_000
const site = analysedSite()

describe('concordance', () => {
  const concordance = async (name: string) => {
    const metric = (await site.quality(name))[`${qoi}concordance`]
    return [metric?.[`${qoi}hasAbsoluteValue`]?.['value'], metric?.[`${qoi}hasRatedValue`]?.['value']]
  }

  it('compares streams of the same property label within 20 km, and survives a restart', async () => {
    const places = {
      near: [10.2, 56.15],
      nearer: [10.25, 56.15],
      stuck: [10.3, 56.2],
      far: [10.8, 56.15],
    } as const
    for (const [name, place] of Object.entries(places))
      await site.create(name, {
        seconds: 3600,
        label: name === 'stuck' ? 'Temperature' : 'temperature',
        place,
      })
    await site.create('other', { seconds: 3600, label: 'humidity', place: places.near })
    const begin = Date.now() - 12 * hour
    for (let i = 0; i < 9; i++)
      for (const name of Object.keys(places)) await site.observe(name, i, begin + i * hour)
    for (let i = 0; i < 12; i++) await site.observe('other', i, begin + i * hour)
    await vi.waitFor(async () => expect((await site.stream('other')).observations).toBe(12), patience)
    expect(await concordance('near')).toEqual([undefined, undefined])
    for (const name of ['near', 'nearer', 'far']) await site.observe(name, 20, begin + 9 * hour)
    await vi.waitFor(async () => {
      expect(await concordance('near')).toEqual([1, 1])
      expect(await concordance('nearer')).toEqual([1, 1])
    }, patience)
    for (const name of ['far', 'other']) expect(await concordance(name)).toEqual([undefined, undefined])

    await site.restart()
    await site.create('constant', { seconds: 3600, label: 'temperature', place: places.near })
    for (let i = 0; i < 10; i++) await site.observe('constant', 21.5, begin + i * hour)
    await vi.waitFor(async () => expect(await concordance('constant')).toEqual([0, 0]), patience)
  })
})

describe('quality of service', () => {
  const ranked = async (path: string): Promise<string[]> => {
    const query = new URLSearchParams({
      type: `${iotStream}IotStream`,
      idPattern: '^urn:ngsi-ld:IotStream:qos',
      weights: `<${qoi}hasQuality>.${path}:1`,
    })
    const answer = await site.client().get(`/ranking/ngsi-ld/v1/entities?${query}`)
    expect(answer.status).toBe(200)
    return (answer.json() as { id: string }[]).map(({ id }) => id)
  }

  it('orders streams by delivery ratio, availability and completeness', async () => {
    await site.create('qos-gaps', { seconds: 3600, label: 'noise' })
    await site.create('qos-whole', { seconds: 3600, label: 'noise' })
    await site.create('qos-late', { seconds: 3600, label: 'noise' })
    const now = Date.now()
    for (const at of [9, 0]) await site.observe('qos-gaps', 40, now - at * hour)
    await site.observe('qos-whole', 40, now)
    for (let at = 3; at >= 0; at--) await site.observe('qos-late', 40, now - at * hour)
    await vi.waitFor(async () => {
      expect(await site.quality('qos-gaps')).toMatchObject({
        [`${selvedge}deliveryRatio`]: { value: 0.1 },
        [`${selvedge}deliveryDelay`]: { unitCode: 'SEC' },
        [`${qoi}completeness`]: { [`${selvedge}share`]: { value: 0.2 } },
      })
      expect(await site.quality('qos-late')).toMatchObject({ [`${selvedge}deliveryRatio`]: { value: 0.25 } })
      expect(await site.quality('qos-whole')).toMatchObject({ [`${selvedge}deliveryRatio`]: { value: 1 } })
      const [whole, late, gaps] = ['qos-whole', 'qos-late', 'qos-gaps'].map(streamId)
      expect(await ranked(`<${selvedge}deliveryRatio>`)).toEqual([whole, late, gaps])
      expect((await ranked(`<${selvedge}availability>`))[2]).toBe(gaps)
      expect((await ranked(`<${qoi}completeness>.<${selvedge}share>`))[2]).toBe(gaps)
      expect((await ranked('qoi:completeness'))[2]).toBe(gaps)
    }, patience)
  })
})
