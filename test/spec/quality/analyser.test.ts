/**
 * The quality analyser in a real gateway process: qualities of streams as entities, the fall while a sensor is
 * silent, and counts that no kill changes.
 */
import { describe, expect, it, vi } from 'vitest'
import { analysedSite, iotStream, patience, qoi, qualityId, type Site, streamId, to, value } from './site.ts'

const site = analysedSite({ SELVEDGE_LIMITS: 'qualityLinkWaitMs=1000' })
const { client, observe, entity, quality: qualityOf } = site

const sensor = { [`${qoi}valuetype`]: value('float'), [`${qoi}min`]: value(0), [`${qoi}max`]: value(40) }
const create = (name: string, seconds: number, more: object = {}): ReturnType<Site['create']> =>
  site.create(name, { seconds, label: 'temperature', sensor: { ...sensor, ...more } })

/** What streams link to before the analyser knows them. */
const links = {
  linked: 'urn:ngsi-ld:QoI:of-somebody-else',
  dangling: 'urn:ngsi-ld:QoI:that-does-not-exist',
  new: 'urn:ngsi-ld:Quality:noqualityyet',
}

describe('the quality analyser', () => {
  it('links a new stream to its quality, and rates each observation', async () => {
    await create('a', 3600)
    const begin = Date.now() - 3 * 3_600_000
    for (const [i, given] of [20, 21, 99].entries()) await observe('a', given, begin + i * 3_600_000)
    await vi.waitFor(async () => {
      const quality = await qualityOf('a')
      expect(quality['type']).toBe(`${qoi}Quality`)
      expect(quality[`${qoi}plausibility`]).toMatchObject({
        type: 'Property',
        value: 'NA',
        observedAt: expect.any(String) as string,
        [`${qoi}hasAbsoluteValue`]: { type: 'Property', value: 0 },
        [`${qoi}hasRatedValue`]: { type: 'Property', value: 0.6 },
      })
      expect(quality[`${qoi}frequency`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 3600, unitCode: 'SEC' },
        [`${qoi}hasRatedValue`]: { value: 1 },
      })
      expect(quality[`${qoi}completeness`]).toMatchObject({
        [`${qoi}hasAbsoluteValue`]: { value: 0 },
        [`${qoi}hasRatedValue`]: { value: 1 },
        'urn:selvedge:ns:share': { value: 1 },
      })
      expect(quality[`${qoi}age`]?.[`${qoi}hasAbsoluteValue`]?.['value']).toBeGreaterThan(3500)
    }, patience)
    const stream = await entity(streamId('a'))
    expect(stream[`${qoi}hasQuality`]).toMatchObject(to(qualityId('a')))
  })

  it('lowers the quality of a silent stream, and raises it with its values', async () => {
    const interval = value(400, { [`${qoi}unit`]: value('ms') })
    await create('b', 0.4, { [`${qoi}updateinterval`]: interval })
    await observe('b', 20, Date.now())
    const rated = async () => (await qualityOf('b'))[`${qoi}completeness`]?.[`${qoi}hasRatedValue`]?.['value']
    await vi.waitFor(async () => expect(await rated()).toBe(0), patience)
    await vi.waitFor(async () => {
      await observe('b', 20, Date.now())
      expect(await rated()).toBeGreaterThan(0)
    }, patience)
  })

  it('keeps the quality of a silent stream low through a kill and a restart', async () => {
    await create('silent', 1)
    await observe('silent', 20, Date.now())
    const missing = async () => {
      const { completeness } = (await site.stream('silent')).quality as { completeness: { absolute: number } }
      return completeness.absolute
    }
    const ratedValues = async () => {
      const answer = await client().get(`/quality/api/histories/${streamId('silent')}`)
      return (answer.json() as { completeness: [number, number][] }).completeness.map(([, rated]) => rated)
    }
    await vi.waitFor(async () => expect((await ratedValues()).at(-1)).toBe(0), patience)
    for (const again of [site.kill, site.restart]) {
      const before = await missing()
      await again()
      await vi.waitFor(async () => expect(await missing()).toBeGreaterThan(before), patience)
    }
    const rated = await ratedValues()
    expect(new Set(rated.slice(rated.indexOf(0)))).toEqual(new Set([0]))
  })

  it('counts each observation once, through kills', async () => {
    await create('c', 3600)
    const begin = Date.now() - 100 * 3_600_000
    for (let i = 0; i < 60; i++) {
      await observe('c', i % 40, begin + i * 3_600_000)
      if (i % 20 !== 10) continue
      await site.kill()
    }
    await vi.waitFor(async () => expect((await site.stream('c')).observations).toBe(60), patience)
    await site.restart()
    await vi.waitFor(async () => expect((await site.stream('c')).observations).toBe(60), patience)
  })

  it('lists streams by pages, and rejects a wrong page', async () => {
    const list = async (query: string) => client().get(`/quality/api/streams${query}`)
    const idsOf = async (query: string) =>
      ((await list(query)).json() as { result: { id: string }[] }).result.map(({ id }) => id)
    const all = await idsOf('')
    expect(await idsOf('?limit=1&offset=1')).toEqual(all.slice(1, 2))
    for (const query of ['?offset=-1', '?offset=two', '?limit=0', '?limit=1001', '?limit=']) {
      const answer = await list(query)
      expect([query, answer.status]).toEqual([query, 400])
      expect(answer.text).toMatch(/must be a whole number from [01] to \d+/)
    }
  })

  it('keeps the link to the quality of somebody else, and replaces one without an entity', async () => {
    const foreign = links.linked
    const made = await client().send('POST', '/ngsi-ld/v1/entityOperations/create', [
      { id: foreign, type: `${qoi}Quality`, [`${qoi}plausibility`]: value('NA') },
      ...['linked', 'dangling', 'new'].map((name) => ({
        id: streamId(name),
        type: `${iotStream}IotStream`,
        [`${qoi}hasQuality`]: to(links[name as keyof typeof links]),
      })),
    ])
    expect(made.status).toBe(201)
    const linkOf = async (name: string) => (await entity(streamId(name)))[`${qoi}hasQuality`]?.['object']
    for (const name of ['linked', 'dangling', 'new']) await vi.waitFor(() => qualityOf(name), patience)
    await vi.waitFor(async () => expect(await linkOf('new')).toBe(qualityId('new')), patience)
    await vi.waitFor(async () => expect(await linkOf('dangling')).toBe(qualityId('dangling')), patience)
    expect(await linkOf('linked')).toBe(foreign)
    expect((await entity(foreign))[`${qoi}plausibility`]).toMatchObject({ value: 'NA' })
    // Nobody else has a quality for it any more.
    await client().send('DELETE', `/ngsi-ld/v1/entities/${foreign}`, undefined)
    await vi.waitFor(async () => expect(await linkOf('linked')).toBe(qualityId('linked')), patience)
  })

  it('deletes the quality of a deleted stream', async () => {
    await vi.waitFor(() => qualityOf('a'), patience)
    const gone = await client().send('DELETE', `/ngsi-ld/v1/entities/${streamId('a')}`, undefined)
    expect(gone.status).toBe(204)
    await vi.waitFor(async () => {
      const answer = await client().get(`/ngsi-ld/v1/entities/${qualityId('a')}`)
      expect(answer.status).toBe(404)
    }, patience)
  })
})
