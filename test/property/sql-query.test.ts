/**
 * SQL and the predicate are one: whatever a search asks for, pages and counts from the tables equal the filter
 * over all entities, with selective drivers, with walks, with sets, and with values newer than the tables.
 */
import BetterSqlite3 from 'better-sqlite3'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { type AttributeInstance, attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import type { GeoQuery } from '#ngsi-ld/geo.ts'
import { compilePattern } from '#ngsi-ld/pattern.ts'
import type { QueryPath, QueryScalar, QueryTree } from '#ngsi-ld/query.ts'
import type { QueryTimes } from '#ngsi-ld/query-match.ts'
import { compileSearch, type EntitySearch } from '#ngsi-ld/search.ts'
import type { TypeSelection } from '#ngsi-ld/selection.ts'
import { createEntities, type EntityRow, entityWrites } from '#store/entities.ts'
import { diffIndexRows, type IndexRows, indexRows } from '#store/entity-index.ts'
import { createEntityQuery } from '#store/entity-query.ts'
import { migrations } from '#store/schema.ts'

const names = ['a', 'b', 'https://x.org/c', 'place']
const types = ['T', 'U', 'V']
const empty: IndexRows = { types: [], attributes: [], scalars: [], places: [] }

/** A database with the real schema and the write statements of the writer. */
function createTables() {
  const database = new BetterSqlite3(':memory:')
  for (const { sql } of migrations) database.exec(sql)
  const numbers = new Map<string, number>()
  const intern = (text: string): number => {
    const known = numbers.get(text) ?? numbers.size + 1
    numbers.set(text, known)
    return known
  }
  const write = (name: keyof typeof entityWrites, ...params: unknown[]): void => {
    database.prepare(entityWrites[name]).run(...params)
  }
  let lastPlace = 0
  const index = (rid: number, { add, remove }: { add: IndexRows; remove: IndexRows }): void => {
    for (const type of remove.types) write('type.delete', intern(type), rid)
    for (const name of remove.attributes) write('attribute.delete', intern(name), rid)
    for (const [name, kind, value] of remove.scalars) write('scalar.delete', intern(name), kind, value, rid)
    for (const name of new Set(remove.places.map((place) => place.name))) {
      write('place.delete', rid, intern(name))
      write('place.forget', rid, intern(name))
    }
    for (const type of add.types) write('type.insert', intern(type), rid)
    for (const name of add.attributes) write('attribute.insert', intern(name), rid)
    for (const [name, kind, value] of add.scalars) write('scalar.insert', intern(name), kind, value, rid)
    for (const { name, box, lon, lat } of add.places) {
      const i = ++lastPlace
      write('place.insert', i, box.x0, box.x1, box.y0, box.y1, rid, intern(name), lon ?? null, lat ?? null)
      write('place.note', rid, intern(name), i)
    }
  }
  return {
    database,
    nameOf: (text: string) => numbers.get(text),
    create(rid: number, entity: Entity, times: QueryTimes): void {
      const { created, modified, attributes } = times
      write(
        'entity.insert',
        rid,
        entity.id,
        rid,
        created,
        modified,
        JSON.stringify(attributes),
        JSON.stringify(entity),
      )
      index(rid, { add: indexRows(entity), remove: empty })
    },
    reindex: index,
    clear(): void {
      for (const table of ['entity', 'entity_type', 'scalar', 'has_attribute', 'place', 'place_of'])
        database.exec(`DELETE FROM ${table}`)
    },
    dump: () =>
      ['entity_type', 'scalar', 'has_attribute'].map((table) =>
        database
          .prepare(
            `SELECT * FROM ${table} ORDER BY 1, 2, 3`.replace(/, 3$/, table === 'scalar' ? ', 3, 4' : ''),
          )
          .all(),
      ),
    dumpPlaces: () =>
      database
        .prepare('SELECT x0, x1, y0, y1, rid, name, lon, lat FROM place ORDER BY 5, 6, 1, 2, 3, 4')
        .all(),
  }
}

const tables = createTables()
afterAll(() => tables.database.close())

// ---- Values that collide often

const text = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      '',
      'x',
      'xy',
      'y',
      'é',
      '\uffff',
      '😀',
      'x\ud800',
      'urn:x:1',
      '2024-05-01',
      '12:30:00Z',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('2024-05-01T12:00:00Z', '2024-05-01T12:00:00.5Z', '2024-05-01T12:00:01Z'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'x'.repeat(256),
      'x'.repeat(300),
      `${'x'.repeat(255)}😀`,
      `${'x'.repeat(299)}y`,
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
)
const number = fc.oneof(fc.integer({ min: -2, max: 4 }), fc.constantFrom(0.1, 1.5, -0, 1e300, 2 ** 53))
const scalar = fc.oneof(number, text, fc.boolean())
const coordinate = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(179.9, -179.9, 0.001))
const latitude = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(89.9, 0.001))
const position = fc.tuple(coordinate, latitude).map(([x, y]) => [x, y])
const square = (x: number, y: number, size: number): Json => [
  [
    [x, y],
    [x + size, y],
    [x + size, y + size],
    [x, y + size],
    [x, y],
  ],
]
const geometry: fc.Arbitrary<{ type: string; coordinates: Json }> = fc.oneof(
  { weight: 3, arbitrary: position.map((coordinates) => ({ type: 'Point', coordinates })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(position, position)
      .map((coordinates) => ({ type: 'LineString', coordinates: coordinates as Json })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -3, max: 3 }), fc.integer({ min: 1, max: 3 }))
      .map(([x, y, size]) => ({ type: 'Polygon', coordinates: square(x, y, size) })),
  },
)

const instance: fc.Arbitrary<AttributeInstance> = fc.oneof(
  { weight: 5, arbitrary: scalar.map((value) => ({ type: 'Property', value })) },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }).map((value) => ({ type: 'Property', value })) },
  {
    weight: 1,
    arbitrary: text.map((value) => ({ type: 'Property', value: { '@type': 'DateTime', '@value': value } })),
  },
  { weight: 1, arbitrary: scalar.map((value) => ({ type: 'Property', value: { x: value } })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('urn:x:1', 'urn:x:2').map((object) => ({ type: 'Relationship', object })),
  },
  { weight: 1, arbitrary: text.map((en) => ({ type: 'LanguageProperty', languageMap: { en } })) },
  {
    weight: 1,
    arbitrary: fc.array(scalar, { maxLength: 2 }).map((valueList) => ({ type: 'ListProperty', valueList })),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'ListRelationship', objectList: [{ object: 'urn:x:1' }] }) },
  {
    weight: 1,
    arbitrary: scalar.map((value) => ({ type: 'Property', value: 1, sub: { type: 'Property', value } })),
  },
)
const geoInstance: fc.Arbitrary<AttributeInstance> = geometry.map((value) => ({ type: 'GeoProperty', value }))
const attribute = (
  one: fc.Arbitrary<AttributeInstance>,
): fc.Arbitrary<AttributeInstance | AttributeInstance[]> =>
  fc.oneof(
    { weight: 4, arbitrary: one },
    { weight: 1, arbitrary: fc.tuple(one, one).map(([x, y]) => [x, { ...y, datasetId: 'urn:d:1' }]) },
  )

const entityBody = fc.record(
  {
    type: fc.oneof(fc.constantFrom(...types), fc.subarray(types, { minLength: 2 })),
    a: attribute(instance),
    b: attribute(instance),
    'https://x.org/c': attribute(instance),
    place: attribute(fc.oneof({ weight: 5, arbitrary: geoInstance }, { weight: 1, arbitrary: instance })),
  },
  { requiredKeys: ['type'] },
)
const entities = fc
  .array(entityBody, { maxLength: 12 })
  .map((bodies) => bodies.map((body, at): Entity => ({ ...body, id: `urn:e:${at % 3}:${at}` }) as Entity))

// ---- Searches

const queryScalar: fc.Arbitrary<QueryScalar> = fc.oneof(
  number.map((value) => ({ kind: 'number', value }) as const),
  fc.boolean().map((value) => ({ kind: 'boolean', value }) as const),
  text.map((value) => ({ kind: 'string', value }) as const),
  fc.constantFrom('urn:x:1', 'word').map((value) => ({ kind: 'name', value }) as const),
  fc
    .constantFrom('2024-05-01T12:00:00Z', '2024-05-01T12:00:00.500Z')
    .map((value) => ({ kind: 'dateTime', value }) as const),
  fc.constant({ kind: 'date', value: '2024-05-01' } as const),
  fc.constant({ kind: 'time', value: '12:30:00Z' } as const),
)
const ordered = queryScalar.filter(({ kind }) => kind !== 'boolean' && kind !== 'name')
const path: fc.Arbitrary<QueryPath> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...names, 'unheard').map((name) => ({ names: [name] })) },
  { weight: 1, arbitrary: fc.constant({ names: ['a'], member: ['x'] }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { names: ['a', 'sub'] },
      { names: ['a', 'modifiedAt'] },
      { names: ['modifiedAt'] },
    ),
  },
)
const term: fc.Arbitrary<QueryTree> = fc.oneof(
  { weight: 1, arbitrary: path.map((p) => ({ kind: 'exists', path: p }) as const) },
  { weight: 1, arbitrary: path.map((p) => ({ kind: 'absent', path: p }) as const) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(path, fc.constantFrom('==', '!=' as const), queryScalar)
      .map(([p, operator, value]) => ({ kind: 'compare', path: p, operator, value }) as QueryTree),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(path, fc.constantFrom('>', '>=', '<', '<=' as const), ordered)
      .map(([p, operator, value]) => ({ kind: 'compare', path: p, operator, value }) as QueryTree),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        path,
        fc.constantFrom('==', '!=' as const),
        fc.array(queryScalar, { minLength: 2, maxLength: 3 }),
      )
      .map(
        ([p, operator, items]) =>
          ({ kind: 'compare', path: p, operator, value: { kind: 'list', items } }) as QueryTree,
      ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(path, fc.constantFrom('==', '!=' as const), ordered, ordered)
      .filter(([, , low, high]) => low.kind === high.kind)
      .map(
        ([p, operator, low, high]) =>
          ({ kind: 'compare', path: p, operator, value: { kind: 'range', low, high } }) as QueryTree,
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(path, fc.boolean(), fc.constantFrom('^x', 'x$', '^2024', '.', '^xy?', '^x{255}'))
      .map(([p, negated, pattern]) => ({ kind: 'match', path: p, negated, pattern }) as const),
  },
)
const tree: fc.Arbitrary<QueryTree> = fc.letrec<{ tree: QueryTree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 3, arbitrary: term },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('tree'), { minLength: 2, maxLength: 3 })
        .map((parts) => ({ kind: 'and', parts }) as QueryTree),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('tree'), { minLength: 2, maxLength: 3 })
        .map((parts) => ({ kind: 'or', parts }) as QueryTree),
    },
  ),
})).tree
const selection: fc.Arbitrary<TypeSelection> = fc.letrec<{ s: TypeSelection }>((tie) => ({
  s: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    {
      weight: 4,
      arbitrary: fc.constantFrom(...types, 'unheard').map((name) => ({ kind: 'type', name }) as const),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(tie('s'), tie('s')).map((parts) => ({ kind: 'and', parts }) as TypeSelection),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(tie('s'), tie('s')).map((parts) => ({ kind: 'or', parts }) as TypeSelection),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'any' } as const) },
  ),
})).s
const geo: fc.Arbitrary<GeoQuery> = fc
  .record({
    relation: fc.oneof(
      fc
        .constantFrom(200, 120_000, 400_000, 3e7)
        .map((maxDistance) => ({ kind: 'near', maxDistance }) as const),
      fc.constantFrom(200, 400_000).map((minDistance) => ({ kind: 'near', minDistance }) as const),
      fc
        .constantFrom('within', 'contains', 'intersects', 'disjoint', 'equals', 'overlaps' as const)
        .map((kind) => ({ kind })),
    ),
    geometry,
    property: fc.constantFrom('place', 'place', 'a'),
  })
  .map((query) => query as GeoQuery)
const search: fc.Arbitrary<EntitySearch> = fc.record(
  {
    selection,
    ids: fc.subarray(['urn:e:0:0', 'urn:e:1:1', 'urn:e:2:2', 'urn:e:none'], { minLength: 1 }),
    idPattern: fc.constantFrom('^urn:e:1', ':1', '^urn:e:[02]', 'none').map(compilePattern),
    attrs: fc.subarray(['a', 'b', 'place', 'unheard'], { minLength: 1 }),
    q: tree,
    geo,
  },
  { requiredKeys: [] },
)

// ---- The property

const timesOf = (at: number): QueryTimes => ({
  created: Date.UTC(2024, 4, 1, 12) + at,
  modified: Date.UTC(2024, 4, 1, 12) + 500 * (at % 3),
  attributes: { a: [0, Date.UTC(2024, 4, 1, 12) + 500 * (at % 2)] },
})

/** Every way of answering: the defaults, worlds where nothing is selective, and one between. */
const settings = [
  { selectiveRowsMax: 2000, walkedEntitiesMax: 1000, ridsAtFirst: 128 },
  { selectiveRowsMax: -1, walkedEntitiesMax: 1000, ridsAtFirst: 1 },
  { selectiveRowsMax: -1, walkedEntitiesMax: 0, ridsAtFirst: 1 },
  { selectiveRowsMax: 2, walkedEntitiesMax: 3, ridsAtFirst: 2 },
]
const tablePorts = {
  database: tables.database,
  entities: createEntities(tables.database),
  nameOf: tables.nameOf,
}
const queries = settings.map((setting) => createEntityQuery(tablePorts, setting))

function fill(all: readonly Entity[]): void {
  tables.clear()
  tables.database.transaction(() => {
    for (const [at, entity] of all.entries()) tables.create(at + 1, entity, timesOf(at))
  })()
}

function matching(wanted: EntitySearch, all: readonly Entity[]): string[] {
  const isMatch = compileSearch(wanted)
  return all.filter((entity, at) => isMatch(entity, timesOf(at))).map(({ id }) => id)
}

const idsOf = (rows: readonly EntityRow[]): string[] => rows.map(({ id }) => id)

/** One term on one attribute, the grain of everything else. */
const focused: fc.Arbitrary<EntitySearch> = fc.oneof(
  {
    weight: 4,
    arbitrary: term.filter(({ kind }) => kind !== 'and' && kind !== 'or').map((q) => ({ q: onA(q) })),
  },
  { weight: 2, arbitrary: geo.map((query) => ({ geo: { ...query, property: 'place' } })) },
  {
    weight: 1,
    arbitrary: fc.tuple(geo, term).map(([query, q]) => ({ geo: { ...query, property: 'place' }, q: onA(q) })),
  },
)

function onA(q: QueryTree): QueryTree {
  return q.kind === 'and' || q.kind === 'or' ? q : { ...q, path: { names: ['a'] } }
}

/** Entities that all have one instance of `a` and one place, so that terms hit often. */
const plain = fc
  .array(fc.record({ type: fc.constant('T'), a: attribute(instance), place: attribute(geoInstance) }), {
    minLength: 6,
    maxLength: 12,
  })
  .map((bodies) => bodies.map((body, at): Entity => ({ ...body, id: `urn:e:0:${at}` })))

describe('a term answered from the tables', () => {
  it('equals the predicate', () => {
    fc.assert(
      fc.property(plain, fc.array(focused, { minLength: 15, maxLength: 25 }), (all, searches) => {
        fill(all)
        for (const wanted of searches) {
          const expected = matching(wanted, all)
          for (const query of queries.slice(0, 3)) {
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0 }).rows)).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
          }
        }
      }),
      { numRuns: 150 },
    )
  })
})

describe('a search answered from the tables', () => {
  it('equals the predicate, page by page and in number', () => {
    const some = fc.array(fc.oneof(search, focused), { minLength: 4, maxLength: 8 })
    fc.assert(
      fc.property(entities, some, fc.integer({ min: 1, max: 4 }), (all, searches, limit) => {
        fill(all)
        for (const wanted of searches) {
          const expected = matching(wanted, all)
          for (const query of queries) {
            const found: string[] = []
            for (let offset = 0; ; offset += limit) {
              const { rows, more } = query.page(wanted, { limit, offset })
              found.push(...idsOf(rows))
              if (!more) break
            }
            expect(found).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
            const after = 2
            const behind = expected.filter((id) => Number(id.split(':').at(-1)) + 1 > after)
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0, after }).rows)).toEqual(behind)
          }
        }
      }),
      { numRuns: 120 },
    )
  })

  it('sees values that are newer than the tables', () => {
    const newer = fc.array(fc.tuple(fc.nat(11), fc.oneof(scalar, geometry)), { minLength: 1, maxLength: 8 })
    const some = fc.array(fc.oneof(focused, focused, search), { minLength: 8, maxLength: 12 })
    fc.assert(
      fc.property(plain, newer, some, (all, values, searches) => {
        fill(all)
        const current = [...all]
        const dirty = new Map<string, Map<number, Json>>()
        for (const [at, value] of values) {
          const name = typeof value === 'object' ? 'place' : 'a'
          const instances = all[at] === undefined ? [] : instancesOf(all[at], name)
          const kind = name === 'place' ? 'GeoProperty' : 'Property'
          if (instances.length !== 1 || instances[0]!.type !== kind) continue
          current[at] = { ...current[at]!, [name]: { ...instances[0]!, value: value as Json } }
          dirty.set(name, (dirty.get(name) ?? new Map()).set(at + 1, value as Json))
        }
        const newerPorts = {
          ...tablePorts,
          view: ({ rid }: EntityRow) => ({ entity: () => current[rid - 1]!, times: () => timesOf(rid - 1) }),
          unwritten: (name: string, fits: (value: Json) => boolean) => {
            const found = dirty.get(name)
            return found && [...found].filter(([, value]) => fits(value)).map(([rid]) => rid)
          },
        }
        for (const query of settings.slice(0, 3).map((setting) => createEntityQuery(newerPorts, setting))) {
          for (const wanted of searches) {
            const expected = matching(wanted, current)
            expect(idsOf(query.page(wanted, { limit: 100, offset: 0 }).rows)).toEqual(expected)
            expect(query.count(wanted)).toBe(expected.length)
          }
        }
      }),
      { numRuns: 120 },
    )
  })
})

describe('index rows', () => {
  it('follow a changed entity exactly', () => {
    fc.assert(
      fc.property(entityBody, fc.array(entityBody, { maxLength: 4 }), (first, later) => {
        const versions = [first, ...later].map((body) => ({ ...body, id: 'urn:e:0:0' }) as Entity)
        fill([versions[0]!])
        versions.slice(1).forEach((version, at) => {
          // Attributes that stay are the same objects, as merge makes them.
          tables.reindex(1, diffIndexRows(versions[at]!, version))
        })
        const followed = [tables.dump(), tables.dumpPlaces()]
        fill([versions.at(-1)!])
        expect(followed).toEqual([tables.dump(), tables.dumpPlaces()])
        expect(indexRows(versions.at(-1)!).attributes).toEqual(attributeNames(versions.at(-1)!))
      }),
      { numRuns: 150 },
    )
  })
})
