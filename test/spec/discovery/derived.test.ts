/**
 * Derived facts (last-seen time, places of related entities, update interval of sensors): shown to clients
 * that request them, and used by the ranking over the index.
 */
import { describe, expect, it } from 'vitest'
import { indexOfFile, latest } from '#test/kit/index-of-file.ts'
import { iri, sensor, stream } from './site.ts'

describe('a derived fact', () => {
  const wanted = { ...latest, 'Selvedge-Index-Derived': 'true' }
  const derivedName = 'urn:selvedge:ns:derived'
  const every = (seconds: number) => ({ type: 'Property', value: seconds })
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, '')
  const observation = (i: number, at: string) => ({
    id: `urn:ngsi-ld:StreamObservation:${i}`,
    type: iri.StreamObservation,
    [iri.belongsTo]: { type: 'Relationship', object: `urn:ngsi-ld:IotStream:${i}` },
    [iri.hasSimpleResult]: { type: 'Property', value: i, observedAt: at },
    [`${iri.StreamObservation}Other`]: { type: 'Property', value: 1 },
  })
  const interval = 'https://w3id.org/iot/qoi#updateinterval'
  const madeObservation = 'http://www.w3.org/ns/sosa/madeObservation'
  const times = { 51: ago(30), 52: ago(3000) } as const

  const gateway = indexOfFile([
    stream(50),
    sensor(50),
    stream(51),
    stream(52),
    {
      ...sensor(51, [20, 50]),
      [interval]: every(600),
      [madeObservation]: { type: 'Relationship', object: 'urn:ngsi-ld:StreamObservation:51' },
    },
    { ...sensor(52, [21, 50]), [interval]: every(600) },
    observation(51, times[51]),
    observation(52, times[52]),
  ])

  const scored = async (query: Record<string, string>): Promise<Record<string, number | undefined>> => {
    const all = { options: 'keyValues', limit: '1000', ...query }
    const answer = await gateway.get(`/ranking/ngsi-ld/v1/entities?${new URLSearchParams(all)}`, latest)
    expect([answer.status, answer.text]).toEqual([200, expect.not.stringContaining(derivedName)])
    const items = answer.json() as { id: string; 'http://iotcrawler.eu/rankScore': number }[]
    return Object.fromEntries(
      items.map((one) => [one.id.split(':').at(-1)!, one['http://iotcrawler.eu/rankScore']]),
    )
  }

  it('is shown on request', async () => {
    const query = { type: 'IotStream', id: 'urn:ngsi-ld:IotStream:51', pick: 'id' }
    const known = {
      lastSeen: times[51],
      updateInterval: every(600),
      places: [{ type: 'Point', coordinates: [20, 50] }],
    }
    const shown = { id: query.id, [derivedName]: { type: 'Property', value: known } }
    expect((await gateway.find(query, wanted)).json()).toEqual([shown])
    expect((await gateway.find(query)).json()).toEqual([{ id: query.id }])
    const path = `/indexing/ngsi-ld/v1/entities/${query.id}?pick=id&options=keyValues`
    expect((await gateway.get(path, wanted)).json()).toEqual({ id: query.id, [derivedName]: known })
    const forwarded = await gateway.find({ type: 'Sensor', idPattern: '.*:51', options: 'keyValues' }, wanted)
    expect(forwarded.json()).toMatchObject([{ [derivedName]: known }])
    expect((await gateway.find(query, { 'Selvedge-Index-Derived': 'yes' })).status).toBe(400)
  })

  it('is not removed by pick', async () => {
    const all = { type: 'StreamObservation', weights: '@freshness:1', rankAge: '3000', limit: '1000' }
    const newer = ago(0)
    await gateway.send('PATCH', `/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:52/attrs`, {
      'urn:x:level': { type: 'Property', value: 1, observedAt: newer },
    })
    for (const more of [
      {},
      { pick: `id,${iri.belongsTo}` },
      { omit: 'urn:x:level' },
      { attrs: iri.belongsTo },
    ])
      expect({ more, isFresh: (await scored({ ...all, ...more }))['52']! > 0.9 }).toEqual({
        more,
        isFresh: true,
      })
    await gateway.ask('DELETE', '/ngsi-ld/v1/entities/urn:ngsi-ld:StreamObservation:52/attrs/urn:x:level')
  })

  it.each([
    { type: 'IotStream' },
    { type: 'Sensor' },
    { type: 'StreamObservation' },
    { type: 'IotStream', pick: 'id' },
    { type: 'StreamObservation', pick: 'id' },
    { type: 'StreamObservation', attrs: `${iri.StreamObservation}Other` },
  ])('ranks recently seen streams as fresh and available: %j', async (query) => {
    const fresh = await scored({ ...query, weights: '@freshness:1', rankAge: '3000' })
    expect(fresh['51']).toBeCloseTo(0.99, 1)
    expect(fresh['52']).toBeCloseTo(0.5, 1)
    const available = await scored({ ...query, weights: '@availability:1' })
    expect(available['51']).toBe(1)
    expect(available['52']).toBeCloseTo(0.4, 1)
  })

  it('counts for related entities, too', async () => {
    const path = 'iot-stream:generatedBy'
    const fresh = await scored({ type: 'IotStream', weights: `${path}.@freshness:1`, rankAge: '3000' })
    expect(fresh['52']).toBeCloseTo(0.5, 1)
    const available = await scored({ type: 'IotStream', weights: `${path}.@availability:1` })
    expect(available['52']).toBeCloseTo(0.4, 1)
    const linked = await scored({ type: 'IotStream', weights: `${path}.sosa:madeObservation.@freshness:1` })
    expect(linked['51']).toBeGreaterThan(0.9)
    const value = await scored({
      type: 'IotStream',
      weights: `${path}.sosa:madeObservation.sosa:hasSimpleResult:1`,
    })
    expect(value['51']).toBe(51)
  })

  it.each([{ type: 'IotStream' }, { type: 'Sensor' }, { type: 'IotStream', pick: 'id' }])(
    'is near if related entities are: %j',
    async (query) => {
      const near = await scored({ ...query, weights: '@proximity:1', rankPoint: '21,50' })
      expect(near['52']).toBe(1)
      expect(near['51']).toBeLessThan(0.1)
      expect(Object.keys(near)[0]).not.toBe('51')
    },
  )

  it('is omitted by default, and pick limits the members to those named', async () => {
    const query = 'type=IotStream&weights=@freshness:1&pick=type&limit=1'
    const answer = await gateway.get(`/ranking/ngsi-ld/v1/entities?${query}`, latest)
    expect(answer.json()).toEqual([
      { type: iri.IotStream, 'http://iotcrawler.eu/rankScore': expect.anything() },
    ])
  })
})
