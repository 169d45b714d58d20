/**
 * A component that queries the index in process receives entities that were not serialized. For any query and
 * any headers they equal the parsed HTTP response, also for rejections; the same holds for a ranking, whether or not
 * it reads the entities of its answer again.
 */
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type BrokerPort, definePlugin, type ListAnswer } from '#contract'
import type { Plugins } from '#host/plugins.ts'
import { compilePlatformContext } from '#ngsi-ld/context/platform-context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import indexing from '#plugins/indexing/plugin.ts'
import { rankedAnswer } from '#plugins/ranking/answer.ts'
import { createBackend } from '#plugins/ranking/backend.ts'
import { parseRankedQuery, splitQuery } from '#plugins/ranking/ranked-query.ts'
import { createRanking } from '#plugins/ranking/ranking.ts'
import { type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { startPlugins } from '#test/kit/plugins.ts'
import { iri, property, quality, sensor, stream } from '#test/spec/discovery/site.ts'

const context = compilePlatformContext('http://a.example/platform.jsonld')
const { folder, remove } = temporaryFolder()
let open: OpenBroker
let host: Plugins
let index: Required<BrokerPort>

const asker = definePlugin<unknown, 'component'>({
  name: 'asker',
  version: '1',
  summary: 'Queries the index.',
  needs: ['component'],
  start({ component }) {
    index = component('indexing') as Required<BrokerPort>
    return {}
  },
})

beforeAll(async () => {
  open = await openBroker(folder)
  for (let i = 0; i < 12; i++) {
    const described = i % 3 === 0 ? { [iri.label]: { type: 'Property', value: `Söke "${i}"\u2028` } } : {}
    const one = { ...stream(i), ...described, [iri.completeness]: { type: 'Property', value: i / 12 } }
    for (const entity of [one, sensor(i, [8 + i / 1000, 50]), quality(i, (i * 5) % 12)])
      await open.broker.create(entity as unknown as Entity, 'http')
  }
  await open.broker.create(property('temperature') as unknown as Entity, 'http')
  host = await startPlugins(open, join(folder, 'p'), [indexing as never, asker as never], {
    brokers: [],
    crawl: '17 3 * * *',
    pagesPerSecond: 5,
    learn: false,
  })
  // Repeated queries have the same result only after all initial reads are finished.
  await vi.waitFor(async () => {
    const path = `/ngsi-ld/v1/entities?type=${encodeURIComponent(iri.ObservableProperty)}`
    const answer = JSON.stringify(await index.exchange({ method: 'GET', path, headers: {} }))
    expect(answer).toContain('ObservableProperty:temperature')
    expect(answer).not.toContain('ngsild-warning')
  })
})
afterAll(async () => {
  await host.close()
  await open.close()
  remove()
})

const types = fc.constantFrom(
  iri.IotStream,
  iri.Sensor,
  `${iri.Sensor},${iri.Quality}`,
  iri.IotStream,
  'Unknown',
  undefined,
)
/** Rarely, so that not every query contains an error. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
const near = { georel: 'near;maxDistance==400', geometry: 'Point', coordinates: '[8.004,50]' }
const parameters = fc
  .record({
    type: types,
    id: maybe(fc.constantFrom('urn:ngsi-ld:Sensor:3,urn:ngsi-ld:IotStream:4', 'urn:ngsi-ld:QoI:2')),
    q: maybe(
      fc.constantFrom(
        'qoi:hasQuality.qoi:completeness>3',
        'iot-stream:generatedBy.sosa:observes',
        'qoi:completeness~="1.*"',
        '(',
      ),
    ),
    attrs: maybe(fc.constantFrom('qoi:completeness', 'rdfs:label,location')),
    pick: maybe(fc.constantFrom('id', 'qoi:hasQuality,id', 'location')),
    omit: maybe(fc.constantFrom('type', 'id')),
    options: maybe(fc.constantFrom('keyValues', 'concise', 'count', 'sysAttrs', 'none')),
    offset: maybe(fc.nat(5).map(String)),
    limit: maybe(fc.constantFrom('3', '1000', '1001', '-1')),
    search: maybe(fc.constantFrom('soke', 'roof')),
    place: maybe(fc.constant(near)),
    local: maybe(fc.constantFrom('true', 'false')),
  })
  .map(({ place: spot, ...rest }) => {
    const given = Object.entries({ ...rest, ...spot }).filter(([, value]) => value !== undefined)
    return new URLSearchParams(given as [string, string][]).toString()
  })
const headers = fc
  .record({
    Accept: maybe(
      fc.constantFrom('*/*', 'application/ld+json', 'application/geo+json', 'text/html', 'application/json'),
    ),
    Link: maybe(fc.constant('<http://a.example/c>; rel="x"')),
    'Selvedge-Index-Derived': maybe(fc.constantFrom('true', 'no')),
    'Selvedge-Index-Position': maybe(fc.constantFrom('latest', 'x')),
    'NGSILD-Tenant': maybe(fc.constantFrom('default', 'other')),
  })
  .map(
    (all) =>
      Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >,
  )

it('equals the parsed response', async () => {
  let lists = 0
  await fc.assert(
    fc.asyncProperty(parameters, headers, async (query, given) => {
      const request = { method: 'GET', path: `/ngsi-ld/v1/entities?${query}`, headers: given }
      const [read, listed] = [await index.exchange(request), await index.list(request)]
      if ('items' in listed) lists++
      const { headers: listedHeaders } = listed as ListAnswer
      const written =
        'items' in listed
          ? { status: 200, headers: listedHeaders, text: JSON.stringify(listed.items) }
          : listed
      expect(written).toEqual(read)
    }),
    { numRuns: 400 },
  )
  expect(lists).toBeGreaterThan(20)
})

const weights = fc.constantFrom(
  'qoi:hasQuality.qoi:completeness:0.7,qoi:completeness:0.3',
  '@freshness:1',
  '@proximity:0.5,location:0.5',
  '{"iot-stream:generatedBy.@proximity":1,"nobody.has":2}',
)

it('is ranked alike', async () => {
  const clock = { ...open.clock, now: () => 1_800_000_000_000 }
  const ask = async (port: BrokerPort, query: string, given: Record<string, string>): Promise<unknown> => {
    try {
      const rankedQuery = parseRankedQuery(splitQuery(query))
      const ranking = createRanking({
        backend: createBackend(port, clock.now),
        clock,
        context: () => context,
      })
      const asking = { headers: given, signal: new AbortController().signal, until: clock.now() + 60_000 }
      const found = await ranking.rank(rankedQuery, asking)
      if (found.kind !== 'ranked') return found
      const answer = rankedAnswer(rankedQuery, found)
      return { headers: Object.fromEntries(answer.headers), text: await answer.text() }
    } catch (error) {
      return (error as Error).message
    }
  }
  await fc.assert(
    fc.asyncProperty(
      parameters,
      weights,
      headers,
      async (query, weighted, { 'NGSILD-Tenant': _, ...given }) => {
        const all = `${query}&weights=${encodeURIComponent(weighted)}&rankPoint=8,50`
        const { address, exchange } = index
        const listed = await ask(index, all, given)
        expect(await ask({ address, exchange }, all, given)).toEqual(listed)
        setLimit('rankingHeldBytes', 0)
        expect(await ask(index, all, given)).toEqual(listed)
        restoreLimits()
      },
    ),
    { numRuns: 200 },
  )
})
