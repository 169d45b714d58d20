/**
 * Places and words of streams and sensors have the same meaning in GraphQL and in the index: streams inherit
 * places and words from related entities. With and without ranking, for each backend of this gateway.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  fieldEntities,
  idOf,
  place,
  platformOf,
  type SearchSite,
  startSearchSite,
} from '#test/kit/search-site.ts'

const devices = ['roof', 'cellar', 'garden', 'gate']
const metres = 0.000009

/** The roof is at the point, the cellar 50 m away, the garden 500 m, the gate 900 m. */
const data = [
  platformOf('roof', ['Temperature', 'Humidity'], [8, 52]),
  platformOf('cellar', ['Temperature', 'Humidity'], [8, 52 + 50 * metres]),
  platformOf('garden', ['Temperature', 'Humidity'], [8, 52 + 500 * metres]),
  platformOf('gate', ['Temperature', 'Humidity'], [8, 52 + 900 * metres]),
  ...devices.flatMap((device, index) => [
    ...fieldEntities({ device, field: 'Temperature', value: index, completeness: index / 10 }),
    ...fieldEntities({ device, field: 'Humidity', value: 50 + index, completeness: 0.5 + index / 10 }),
  ]),
].map((entity) => {
  // A sensor of the garden is hosted on the roof, and a stream of the roof describes the garden.
  const isAway = entity.id === idOf('Sensor', 'garden', 'Humidity')
  if (isAway) return { ...entity, location: place(8, 52) }
  if (entity.id === idOf('IotStream', 'roof', 'Humidity')) {
    return { ...entity, location: place(8, 52 + 500 * metres) }
  }
  return entity
})

/** Far away, and more than one broker query can name. */
const many = Array.from({ length: 130 }, (_, index) => `n${index}`)
const crowd = many.flatMap((device) => [
  platformOf(device, ['Pressure'], [20, 10]),
  ...fieldEntities({ device, field: 'Pressure', value: 1, completeness: 0.5 }),
])

const near = 'near: { lon: 8, lat: 52, maxDistance: 100 }'
const expected = [
  idOf('IotStream', 'cellar', 'Humidity'),
  idOf('IotStream', 'cellar', 'Temperature'),
  idOf('IotStream', 'garden', 'Humidity'),
  idOf('IotStream', 'roof', 'Temperature'),
]

async function startPlaces(backend: string): Promise<SearchSite> {
  const site = await startSearchSite({
    SELVEDGE_SEARCH_BACKEND: backend,
    SELVEDGE_INDEXING_ENABLED: 'true',
    SELVEDGE_RANKING_BACKEND: 'indexing',
  })
  await site.create([...data, ...crowd])
  // Wait until the index includes all entities.
  const url = `${site.url}/indexing/ngsi-ld/v1/entities?type=IotStream&limit=0&count=true`
  const count = async (): Promise<string | null> => {
    const answer = await fetch(url, { headers: { 'Selvedge-Index-Position': 'latest' } })
    return answer.headers.get('ngsild-results-count')
  }
  await vi.waitFor(async () => expect(await count()).toBe('138'), { interval: 50 })
  return site
}

describe.each(['mdr', 'indexing'])('over %s', (backend) => {
  let site: SearchSite

  beforeAll(async () => {
    site = await startPlaces(backend)
  })

  afterAll(() => site.close())

  async function found(root: string, given: string): Promise<string[]> {
    const answer = await site.data<Record<string, { id: string }[]>>(`{ ${root}(${given}) { id } }`)
    return answer[root]!.map(({ id }) => id).toSorted()
  }
  async function inIndex(query: Record<string, string>): Promise<string[]> {
    const answer = await fetch(`${site.url}/indexing/ngsi-ld/v1/entities?${new URLSearchParams(query)}`)
    return ((await answer.json()) as { id: string }[]).map(({ id }) => id).toSorted()
  }
  const geo = { georel: 'near;maxDistance==100', geometry: 'Point', coordinates: '[8,52]' }

  it('a stream has the place of its sensor or platform, ranked or not', async () => {
    expect(await inIndex({ type: 'IotStream', ...geo })).toEqual(expected)
    expect(await found('streams', near)).toEqual(expected)
    const ranking = 'ranking: [{ name: "qoi:hasQuality.qoi:completeness", value: 1 }]'
    expect(await found('streams', `${near}, ${ranking}`)).toEqual(expected)
    const far = `${near.replace('maxDistance: 100', 'minDistance: 700')}, filter: { generatedBy: { isHostedBy: { search: "g" } } }`
    expect(await found('streams', far)).toEqual([
      idOf('IotStream', 'gate', 'Humidity'),
      idOf('IotStream', 'gate', 'Temperature'),
    ])
  })

  it('returns many streams without duplicates', async () => {
    const crowded = 'near: { lon: 20, lat: 10, maxDistance: 1 }, limit: 200'
    const wanted = many.map((device) => idOf('IotStream', device, 'Pressure')).toSorted()
    const label = 'generatedBy: { observes: { label: "pressure" } }'
    const ranking = 'ranking: [{ name: "@proximity", value: 1 }]'
    expect(await found('streams', crowded)).toEqual(wanted)
    expect(await found('streams', `${crowded}, ${label}`)).toEqual(wanted)
    expect(await found('streams', `${crowded}, ${label}, ${ranking}`)).toEqual(wanted)
    const { streamsConnection } = await site.data<{ streamsConnection: { totalCount: number } }>(
      `{ streamsConnection(near: { lon: 20, lat: 10, maxDistance: 1 }) { totalCount } }`,
    )
    expect(streamsConnection.totalCount).toBe(130)
  })

  it('combines places with other criteria', async () => {
    const only = [idOf('IotStream', 'cellar', 'Temperature'), idOf('IotStream', 'roof', 'Temperature')]
    const label = 'generatedBy: { observes: { label: "temperature" } }'
    expect(await found('streams', `${near}, ${label}`)).toEqual(only)
    expect(await found('streams', `generatedBy: { observes: { label: "temperature" }, ${near} }`)).toEqual(
      only,
    )
    const good = 'quality: { completeness: { rated: { gte: 0.6 } } }'
    expect(await found('streams', `${near}, ${good}`)).toEqual([
      idOf('IotStream', 'cellar', 'Humidity'),
      idOf('IotStream', 'garden', 'Humidity'),
    ])
    expect(await found('streams', `${near}, ids: ["${only[0]}", "urn:nothing"]`)).toEqual([only[0]])
    const pages = await Promise.all(
      [0, 2].map((offset) => found('streams', `${near}, limit: 2, offset: ${offset}`)),
    )
    expect(pages.flat().toSorted()).toEqual(expected)
    const { streamsConnection } = await site.data<{ streamsConnection: { totalCount: number } }>(
      `{ streamsConnection(${near}) { totalCount } }`,
    )
    expect(streamsConnection.totalCount).toBe(4)
  })

  it('combines places and words with a ranking', async () => {
    const ranking = 'ranking: [{ name: "qoi:hasQuality.qoi:completeness", value: 1 }]'
    const ask = async (more: string): Promise<[string, number][]> => {
      const { streams } = await site.data<{ streams: { id: string; rankScore: number }[] }>(
        `{ streams(${near}, search: "cellar humid*", ${ranking}${more}) { id rankScore } }`,
      )
      return streams.map(({ id, rankScore }) => [id, rankScore])
    }
    expect(await ask('')).toEqual([[idOf('IotStream', 'cellar', 'Humidity'), 0.6]])
    expect(await ask(', offset: 1')).toEqual([])
    const { streams } = await site.data<{ streams: { id: string; rankScore: number }[] }>(
      `{ streams(${near}, search: "humidity", ${ranking}) { id rankScore } }`,
    )
    const scores = streams.map(({ rankScore }) => rankScore)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(streams[0]!.id).toBe(idOf('IotStream', 'garden', 'Humidity'))
  })

  it('applies to sensors and systems, too', async () => {
    const sensors = [
      ...['Humidity', 'Temperature'].map((field) => idOf('Sensor', 'cellar', field)),
      idOf('Sensor', 'garden', 'Humidity'),
      ...['Humidity', 'Temperature'].map((field) => idOf('Sensor', 'roof', field)),
    ]
    expect(await found('sensors', near)).toEqual(sensors)
    expect(await found('systems', near)).toEqual(sensors)
    expect(await found('platforms', near)).toEqual([idOf('Platform', 'cellar'), idOf('Platform', 'roof')])
  })

  it('finds words of related entities', async () => {
    const roof = [idOf('IotStream', 'roof', 'Humidity'), idOf('IotStream', 'roof', 'Temperature')]
    expect(await inIndex({ type: 'IotStream', search: 'roof' })).toEqual(roof)
    expect(await found('streams', 'search: "Roof"')).toEqual(roof)
    expect(await found('streams', 'search: "roof temp*"')).toEqual([roof[1]])
    expect(await found('streams', `search: "humidity", ${near}`)).toEqual(
      expected.filter((id) => id.endsWith('Humidity')),
    )
    expect(await found('sensors', 'search: "roof temperature"')).toEqual([
      idOf('Sensor', 'roof', 'Temperature'),
    ])
    expect(await found('streamObservations', 'belongsTo: { search: "roof humidity" }')).toEqual([
      idOf('StreamObservation', 'roof', 'Humidity'),
    ])
    const { errors } = await site.ask('{ streams(search: "?") { id } }')
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('search') as string,
      extensions: { code: 'BAD_REQUEST' },
    })
  })

  it('geo returns the inherited place', async () => {
    const { streams } = await site.data<{ streams: { id: string; geo: { lat: number } | null }[] }>(
      '{ streams(limit: 200) { id geo { lat } } }',
    )
    const lat = (device: string, field: string): number =>
      Math.round((streams.find(({ id }) => id === idOf('IotStream', device, field))!.geo!.lat - 52) / metres)
    expect([lat('gate', 'Humidity'), lat('garden', 'Humidity'), lat('roof', 'Humidity')]).toEqual([
      900, 0, 500,
    ])
    const { systems } = await site.data<{ systems: { geo: unknown }[] }>('{ systems { geo { lon } } }')
    expect(systems.every(({ geo: at }) => at !== null)).toBe(true)
  })
})

it('uses places of the ranking backend when searching over the ranking', async () => {
  const site = await startPlaces('ranking')
  const { streams } = await site.data<{ streams: { id: string }[] }>(`{ streams(${near}) { id } }`)
  expect(streams.map(({ id }) => id).toSorted()).toEqual(expected)
  const ranked = await site.data<{ streams: { id: string }[] }>(
    `{ streams(${near}, ranking: [{ name: "qoi:hasQuality.qoi:completeness", value: 1 }]) { id } }`,
  )
  expect(ranked.streams.map(({ id }) => id)).toEqual(
    ['garden:Humidity', 'cellar:Humidity', 'cellar:Temperature', 'roof:Temperature'].map((name) =>
      idOf('IotStream', ...(name.split(':') as [string, string])),
    ),
  )
  const { errors } = await site.ask('{ streams(ranking: [{ name: "a..b", value: 1 }]) { id } }')
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_REQUEST' })
  await site.close()
})

it('uses only the own places and words of entities without the index, with a warning', async () => {
  const site = await startSearchSite()
  await site.create(data)
  const { data: answer, extensions } = await site.ask(`{ streams(${near}) { id } }`)
  expect(answer).toEqual({ streams: [] })
  expect(extensions?.warnings).toEqual([expect.stringContaining('the index is not running')])
  const plain = await site.ask(`{ platforms(${near}) { id } }`)
  expect(plain.extensions).not.toHaveProperty('warnings')
  await site.close()
})
