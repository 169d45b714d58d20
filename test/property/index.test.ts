/**
 * The index equals the broker: after any sequence of creates, changes, observations, deletions, restarts and
 * kills, the index returns what a plain scan of the broker's entities finds. The scan does not use the index:
 * it follows relationships by searching entities, and compares stored values.
 */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract'
import type { Plugins } from '#host/plugins.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import indexing from '#plugins/indexing/plugin.ts'
import { type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { environment, startPlugins } from '#test/kit/plugins.ts'
import { runs } from '#test/kit/runs.ts'
import { iri } from '#test/spec/discovery/site.ts'

// ---- Entities, which may all refer to each other

const spots = [
  [8, 50],
  [8.001, 50],
  [9, 50],
] as const
const ids = {
  stream: ['urn:i:1', 'urn:i:2', 'urn:i:3'],
  sensor: ['urn:s:1', 'urn:s:2'],
  platform: ['urn:p:1', 'urn:p:2'],
  property: ['urn:o:1', 'urn:o:2'],
  quality: ['urn:q:1', 'urn:q:2'],
  point: ['urn:g:1'],
  observation: ['urn:b:1', 'urn:b:2'],
} as const
const words = ['roof', 'cellar', 'north tower']
const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()

const to = (targets: readonly string[]) =>
  fc.constantFrom(...targets).map((object) => ({ type: 'Relationship', object }))
const text = fc.constantFrom(...words).map((value) => ({ type: 'Property', value }))
const place = fc
  .constantFrom(...spots)
  .map((coordinates) => ({ type: 'GeoProperty', value: { type: 'Point', coordinates: [...coordinates] } }))
const rate = fc.constantFrom(0.1, 0.5, 0.9)
const rated = fc.oneof(
  rate.map((value) => ({ type: 'Property', value })),
  rate.map((value) => ({ type: 'Property', value: 'NA', [iri.hasRatedValue]: { type: 'Property', value } })),
)
const result = fc
  .tuple(fc.nat(50), fc.nat(3))
  .map(([minute, value]) => ({ type: 'Property', value, observedAt: at(minute) }))

const attributes = {
  stream: {
    [iri.generatedBy]: to(ids.sensor),
    [iri.hasQuality]: to(ids.quality),
    location: place,
    [iri.label]: text,
  },
  sensor: {
    [iri.isHostedBy]: to(ids.platform),
    [iri.observes]: to(ids.property),
    [iri.geoLocation]: to(ids.point),
    location: place,
  },
  platform: { location: place, [iri.label]: text },
  property: { [iri.label]: text },
  quality: { [iri.completeness]: rated },
  point: { [iri.relativeLocation]: text },
  observation: { [iri.belongsTo]: to(ids.stream), [iri.hasSimpleResult]: result },
} as const
const types = {
  stream: iri.IotStream,
  sensor: iri.Sensor,
  platform: iri.Platform,
  property: iri.ObservableProperty,
  quality: iri.Quality,
  point: iri.Point,
  observation: iri.StreamObservation,
} as const
type Kind = keyof typeof ids
const kinds = Object.keys(ids) as Kind[]

const body = (kind: Kind): fc.Arbitrary<Entity> =>
  fc
    .tuple(fc.constantFrom(...ids[kind]), fc.record(attributes[kind] as never, { requiredKeys: [] }))
    .map(([id, members]) => ({ id, type: types[kind], ...(members as object) }) as Entity)

type Step =
  | { readonly kind: 'put' | 'merge'; readonly entity: Entity }
  | { readonly kind: 'delete'; readonly id: string }
  | { readonly kind: 'restart' | 'keep' | 'kill' | 'look' | 'rebuild' }

const anyBody = fc.constantFrom(...kinds).chain(body)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: anyBody.map((entity) => ({ kind: 'put' as const, entity })) },
  { weight: 6, arbitrary: anyBody.map((entity) => ({ kind: 'merge' as const, entity })) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(...kinds.flatMap((kind) => [...ids[kind]]))
      .map((id) => ({ kind: 'delete' as const, id })),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('restart', 'keep', 'kill', 'look', 'look', 'rebuild')
      .map((kind) => ({ kind }) as Step),
  },
)

// ---- The scan

interface Scan {
  readonly all: ReadonlyMap<string, Entity>
}

const objects = (instances: readonly AttributeInstance[]): string[] =>
  instances.flatMap(({ object }) => [object].flat()).filter((one): one is string => typeof one === 'string')

/** Values at the end of a path, through sub-attributes and linked entities. */
function along(scan: Scan, instances: readonly AttributeInstance[], rest: readonly string[]): Json[] {
  const [name, ...others] = rest
  if (name === undefined)
    return instances.flatMap((instance) => {
      const sub = instance[iri.hasRatedValue] as { readonly value?: Json } | undefined
      const own = instance.value ?? instance.object
      return [
        ...(own === undefined ? [] : [own]),
        ...(own === 'NA' && sub?.value !== undefined ? [sub.value] : []),
      ]
    })
  const below = instances.flatMap((one) => [one[name] ?? []].flat()) as unknown as AttributeInstance[]
  const linked = objects(instances).flatMap((id) => {
    const entity = scan.all.get(id)
    return entity === undefined ? [] : instancesOf(entity, name)
  })
  return [...along(scan, below, others), ...along(scan, linked, others)]
}

const valuesOf = (scan: Scan, entity: Entity, path: readonly string[]): Json[] =>
  along(scan, instancesOf(entity, path[0]!), path.slice(1))

const partnersOf = (scan: Scan, entity: Entity, name: string): Entity[] =>
  objects(instancesOf(entity, name)).flatMap((id) => scan.all.get(id) ?? [])

function placesOf(scan: Scan, entity: Entity): number[][] {
  const own = instancesOf(entity, 'location').map(
    ({ value }) => (value as { coordinates: number[] }).coordinates,
  )
  if (own.length > 0) return own
  const by =
    entity.type === iri.IotStream ? iri.generatedBy : entity.type === iri.Sensor ? iri.isHostedBy : ''
  return partnersOf(scan, entity, by).flatMap((partner) => placesOf(scan, partner))
}

function wordsOf(scan: Scan, entity: Entity): string[] {
  const own = [iri.label, iri.relativeLocation].flatMap((name) => valuesOf(scan, entity, [name]))
  const by =
    entity.type === iri.IotStream
      ? [iri.generatedBy]
      : entity.type === iri.Sensor
        ? [iri.isHostedBy, iri.observes, iri.geoLocation]
        : []
  const others = by.flatMap((name) => partnersOf(scan, entity, name).flatMap((one) => wordsOf(scan, one)))
  return [...own.flatMap((one) => (one as string).split(' ')), ...others]
}

const seenOf = (scan: Scan, entity: Entity): number | undefined => {
  const times = [...scan.all.values()]
    .filter((one) => objects(instancesOf(one, iri.belongsTo)).includes(entity.id))
    .flatMap((one) =>
      instancesOf(one, iri.hasSimpleResult).flatMap(({ observedAt }) => Date.parse(observedAt!)),
    )
  return times.length === 0 ? undefined : Math.max(...times)
}

// ---- Queries, each with an equivalent predicate

interface Asked {
  readonly parameters: Readonly<Record<string, string>>
  readonly holds: (scan: Scan, entity: Entity) => boolean
}

const some = (path: readonly string[], test: (value: Json) => boolean) => (scan: Scan, entity: Entity) =>
  valuesOf(scan, entity, path).some(test)
const isNear = (scan: Scan, entity: Entity): boolean =>
  // The first two locations are 72 m apart, the third is far away.
  placesOf(scan, entity).some(([x]) => x! < 8.5)
const near = { georel: 'near;maxDistance==500', geometry: 'Point', coordinates: '[8,50]' }
const path = (...names: string[]): string => names.map((name) => `<${name}>`).join('.')

const queries: readonly Asked[] = [
  { parameters: { type: iri.IotStream }, holds: () => true },
  { parameters: { type: iri.IotStream, ...near }, holds: isNear },
  { parameters: { type: iri.Sensor, ...near }, holds: isNear },
  {
    parameters: { type: iri.IotStream, ...near, georel: 'disjoint' },
    holds: (scan, entity) => placesOf(scan, entity).some(([x]) => x !== 8),
  },
  {
    parameters: { type: iri.IotStream, q: `${path(iri.hasQuality, iri.completeness)}>0.4` },
    holds: some([iri.hasQuality, iri.completeness], (value) => typeof value === 'number' && value > 0.4),
  },
  {
    parameters: { type: iri.Quality, q: `${path(iri.completeness)}==0.1..0.5` },
    holds: some([iri.completeness], (value) => typeof value === 'number' && value <= 0.5),
  },
  {
    parameters: { type: iri.IotStream, q: `${path(iri.generatedBy, iri.observes)}==urn:o:1`, ...near },
    holds: (scan, entity) =>
      isNear(scan, entity) && valuesOf(scan, entity, [iri.generatedBy, iri.observes]).includes('urn:o:1'),
  },
  {
    parameters: {
      type: iri.IotStream,
      q: `${path(iri.generatedBy, iri.geoLocation, iri.relativeLocation)}=="roof"|${path(iri.label)}=="cellar"`,
    },
    holds: (scan, entity) =>
      valuesOf(scan, entity, [iri.generatedBy, iri.geoLocation, iri.relativeLocation]).includes('roof') ||
      valuesOf(scan, entity, [iri.label]).includes('cellar'),
  },
  {
    parameters: { type: iri.IotStream, q: `!${path(iri.generatedBy, iri.observes)}` },
    holds: (scan, entity) => valuesOf(scan, entity, [iri.generatedBy, iri.observes]).length === 0,
  },
  {
    parameters: { type: iri.IotStream, q: `${path(iri.generatedBy, iri.isHostedBy, iri.label)}!="roof"` },
    holds: (scan, entity) =>
      valuesOf(scan, entity, [iri.generatedBy, iri.isHostedBy, iri.label]).some((value) => value !== 'roof'),
  },
  {
    parameters: { type: `${iri.IotStream},${iri.Sensor}`, search: 'roof' },
    holds: (scan, entity) => wordsOf(scan, entity).includes('roof'),
  },
  {
    parameters: { type: iri.IotStream, search: 'tower cell*' },
    holds: (scan, entity) => {
      const all = wordsOf(scan, entity)
      return all.includes('tower') && all.includes('cellar')
    },
  },
  {
    parameters: { type: iri.IotStream, timerel: 'after', timeAt: at(20), timeproperty: 'lastSeen' },
    holds: (scan, entity) => (seenOf(scan, entity) ?? 0) > Date.parse(at(20)),
  },
  {
    parameters: { type: iri.IotStream, attrs: `${iri.label},location` },
    holds: (_, entity) => iri.label in entity || 'location' in entity,
  },
]

// ---- The run

interface World {
  readonly open: OpenBroker
  readonly folder: string
  host: Plugins
  hasKept: boolean
}

const start = (open: OpenBroker, folder: string): Promise<Plugins> =>
  startPlugins(open, folder, [indexing as never], {
    brokers: [],
    crawl: '17 3 * * *',
    pagesPerSecond: 5,
    learn: false,
  })

async function put({ broker }: OpenBroker, { id, ...rest }: Entity, isMerge: boolean): Promise<void> {
  if (broker.retrieve(id) === undefined) await broker.create({ id, ...rest } as Entity, 'http')
  else if (isMerge) await broker.append(id, rest as never, { by: 'http', noOverwrite: false })
  else await broker.replace({ id, ...rest } as Entity, { by: 'http' })
}

async function run(world: World, one: Step): Promise<void> {
  const { open, folder } = world
  const [files, kept] = [join(folder, 'plugins'), join(folder, 'kept')]
  switch (one.kind) {
    case 'put':
    case 'merge':
      return put(open, one.entity, one.kind === 'merge')
    case 'delete':
      if (open.broker.retrieve(one.id) !== undefined) await open.broker.remove(one.id, 'http')
      return undefined
    case 'look':
      return compare(world)
    case 'rebuild':
      await world.host.fetch(
        'indexing',
        new Request('http://x/api/rebuild', { method: 'POST' }),
        environment(),
      )
      return undefined
    case 'keep':
      // The contents of the disk if the process were killed now.
      rmSync(kept, { recursive: true, force: true })
      mkdirSync(kept)
      for (const name of readdirSync(files)) cpSync(join(files, name), join(kept, name))
      world.hasKept = true
      return undefined
    case 'restart':
    case 'kill': {
      await world.host.close()
      if (one.kind === 'kill' && world.hasKept) {
        rmSync(files, { recursive: true })
        cpSync(kept, files, { recursive: true })
      }
      world.host = await start(open, folder)
      return undefined
    }
  }
}

async function compare({ host, open }: World): Promise<void> {
  const { entities } = open.broker.queryAtOnce({ selection: undefined, limit: 1000, offset: 0, count: false })
  const scan = { all: new Map(entities.map((view) => [view.id, view.entity()])) }
  for (const { parameters, holds } of queries) {
    const wanted = new Set(parameters['type']!.split(','))
    const expected = [...scan.all.values()].filter(
      (entity) => wanted.has(entity.type as string) && holds(scan, entity),
    )
    const url = `http://x/ngsi-ld/v1/entities?${new URLSearchParams({ ...parameters, count: 'true' })}`
    const answer = await host.fetch(
      'indexing',
      new Request(url, { headers: { 'Selvedge-Index-Position': 'latest' } }),
      environment(),
    )
    // The index would ask the broker about unknown names; the broker does not run here.
    if (answer.status === 418) continue
    expect(answer.headers.get('selvedge-answered-by')).toBe('index')
    const shown = ((await answer.json()) as { readonly id: string }[]).map(({ id }) => id)
    expect({ parameters, ids: shown.toSorted() }).toEqual({
      parameters,
      ids: expected.map(({ id }) => id).toSorted(),
    })
    expect(answer.headers.get('ngsild-results-count')).toBe(String(expected.length))
    const first = new URL(url)
    first.searchParams.set('limit', '1')
    first.searchParams.set('offset', '1')
    const page = await host.fetch('indexing', new Request(first), environment())
    expect((await page.json()) as unknown).toMatchObject(shown.slice(1, 2).map((id) => ({ id })))
  }
}

describe('the index', () => {
  it('returns the same as a scan of the broker', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const temporary = temporaryFolder()
        const open = await openBroker(temporary.folder)
        const world: World = {
          open,
          folder: temporary.folder,
          host: await start(open, temporary.folder),
          hasKept: false,
        }
        try {
          for (const one of steps) await run(world, one)
          await compare(world)
        } finally {
          await world.host.close()
          await open.close()
          temporary.remove()
        }
      }),
      { numRuns: runs(12) },
    )
  })
})
