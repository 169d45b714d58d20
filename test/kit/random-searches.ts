/**
 * Random entities and random searches that meet often: few names, few values, values at every edge (long texts, texts
 * cut within a character, minus zero, the antimeridian). What they mean is for the tests to say.
 */
import fc from 'fast-check'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { EntitySelector, TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import type { GeoQuery } from '#ngsi-ld/query/geo-query.ts'
import type { QueryPath, QueryScalar, QueryTree } from '#ngsi-ld/query/query.ts'
import { parseScopeQuery, type ScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import type { EntitySearch } from '#ngsi-ld/query/search.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'

const names = ['a', 'b', 'https://x.org/c', 'place']
const types = ['T', 'U', 'V']

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
export const scalar = fc.oneof(number, text, fc.boolean())
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
export const geometry: fc.Arbitrary<{ type: string; coordinates: Json }> = fc.oneof(
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
    arbitrary: fc
      .constantFrom('urn:x:1', 'urn:x:2', 'urn:e:0:0', 'urn:e:1:1', 'urn:e:2:2')
      .map((object) => ({ type: 'Relationship', object })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('x', 'https://x.org/x').map((vocab) => ({ type: 'VocabProperty', vocab })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(text, fc.option(fc.array(text, { maxLength: 2 })))
      .map(([en, de]) => ({ type: 'LanguageProperty', languageMap: de === null ? { en } : { en, de } })),
  },
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

const scope = fc.constantFrom('/a', '/a/b', '/ab', '/a/b/c', '/c/b', `/a/${'x'.repeat(300)}`)

export const entityBody = fc.record(
  {
    type: fc.oneof(fc.constantFrom(...types), fc.subarray(types, { minLength: 2 })),
    scope: fc.oneof(scope, fc.uniqueArray(scope, { minLength: 2, maxLength: 3 })),
    a: attribute(instance),
    b: attribute(instance),
    'https://x.org/c': attribute(instance),
    place: attribute(fc.oneof({ weight: 5, arbitrary: geoInstance }, { weight: 1, arbitrary: instance })),
  },
  { requiredKeys: ['type'] },
)
export const entities = fc
  .array(entityBody, { maxLength: 12 })
  .map((bodies) => bodies.map((body, at): Entity => ({ ...body, id: `urn:e:${at % 3}:${at}` }) as Entity))

// ---- Searches

const queryScalar: fc.Arbitrary<QueryScalar> = fc.oneof(
  number.map((value) => ({ kind: 'number', value }) as const),
  fc.boolean().map((value) => ({ kind: 'boolean', value }) as const),
  text.map((value) => ({ kind: 'string', value }) as const),
  fc.constantFrom('urn:x:1', 'word').map((value) => ({ kind: 'name', value }) as const),
  fc
    .constantFrom('string', 'name' as const)
    .map((kind) => ({ kind, value: 'x', name: 'https://x.org/x' }) as const),
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
    arbitrary: fc.tuple(fc.subarray(['T', 'U']), fc.constantFrom('a', 'b')).map(([linkedTypes, name]) => ({
      names: ['a'],
      linked: { types: linkedTypes, path: { names: [name] } },
    })),
  },
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
const scopeTerm = fc
  .constantFrom('/a', '/a/b', '/a/#', '/+/b', '/a/+/c', '/#', '/none', `/a/${'x'.repeat(300)}`, '/ab/#')
  .map((text) => parseScopeQuery(text))
const scopes: fc.Arbitrary<ScopeQuery> = fc.oneof(
  { weight: 3, arbitrary: scopeTerm },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('and', 'or' as const), fc.tuple(scopeTerm, scopeTerm))
      .map(([kind, parts]) => ({ kind, parts }) as ScopeQuery),
  },
)
const selectors: fc.Arbitrary<EntitySelector[]> = fc.array(
  fc.record(
    {
      types: selection,
      ids: fc.subarray(['urn:e:0:0', 'urn:e:1:1', 'urn:e:none'], { minLength: 1 }),
      idPattern: fc.constantFrom('^urn:e:1', ':1'),
    },
    { requiredKeys: ['types'] },
  ),
  { minLength: 1, maxLength: 3 },
)

export const search: fc.Arbitrary<EntitySearch> = fc.record(
  {
    selection,
    scope: scopes,
    selectors,
    ids: fc.subarray(['urn:e:0:0', 'urn:e:1:1', 'urn:e:2:2', 'urn:e:none'], { minLength: 1 }),
    idPattern: fc.constantFrom('^urn:e:1', ':1', '^urn:e:[02]', 'none').map(compilePattern),
    attrs: fc.subarray(['a', 'b', 'place', 'unheard'], { minLength: 1 }),
    q: tree,
    geo,
  },
  { requiredKeys: [] },
)

/** Two bounds on one attribute, which may hold for different values of it. */
const between: fc.Arbitrary<QueryTree> = fc
  .tuple(fc.constantFrom('>', '>=' as const), ordered, fc.constantFrom('<', '<=' as const), ordered)
  .filter(([, low, , high]) => low.kind === high.kind || low.kind === 'number')
  .map(([above, low, below, high]) => ({
    kind: 'and',
    parts: [
      { kind: 'compare', path: { names: ['a'] }, operator: below, value: high },
      { kind: 'compare', path: { names: ['a'] }, operator: above, value: low },
    ],
  }))

/** One term on one attribute, the grain of everything else. */
export const focused: fc.Arbitrary<EntitySearch> = fc.oneof(
  { weight: 2, arbitrary: between.map((q) => ({ q })) },
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
export const plain = fc
  .array(fc.record({ type: fc.constant('T'), a: attribute(instance), place: attribute(geoInstance) }), {
    minLength: 6,
    maxLength: 12,
  })
  .map((bodies) => bodies.map((body, at): Entity => ({ ...body, id: `urn:e:0:${at}` })))
