/**
 * Any JSON as entity, fragment, partial update or context is either accepted or rejected with a clear error;
 * no other error is thrown. An accepted value survives rendering and parsing.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { type Entity, parseEntity, parseFragment, parsePartial } from '#ngsi-ld/entity/entity.ts'
import { mergeEntity, updateAttributes, updatePartially } from '#ngsi-ld/entity/merge.ts'
import { renderEntity } from '#ngsi-ld/representation/representation.ts'
import { refusal } from '#test/kit/refusal.ts'

const nothing = 'urn:ngsi-ld:null'
const key = fc.constantFrom(
  ...[
    'a',
    'b',
    'type',
    '@type',
    'value',
    'object',
    'languageMap',
    'vocab',
    'json',
    'valueList',
    'objectList',
    'dataset',
  ],
  ...[
    'observedAt',
    'unitCode',
    'datasetId',
    'objectType',
    'scope',
    'location',
    'en',
    '@none',
    '__proto__',
    'constructor',
  ],
  ...[
    'coordinates',
    'createdAt',
    'lang',
    'entity',
    'sosa:hosts',
    'http://x.org/y',
    'hosts#1',
    'hosts#2',
    '@context',
  ],
)
const scalar = fc.oneof(
  fc.constantFrom(
    nothing,
    'Property',
    'Relationship',
    'GeoProperty',
    'LanguageProperty',
    'VocabProperty',
    'Point',
    'sosa:Sensor',
  ),
  fc.constantFrom(
    'urn:a',
    'urn:b',
    '2024-01-01T00:00:00Z',
    '/a/b',
    'en',
    'text',
    '',
    null,
    true,
    1,
    -0.5,
    Number.POSITIVE_INFINITY,
  ),
)
const json: fc.Arbitrary<Json> = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    { arbitrary: scalar, weight: 3 },
    { arbitrary: fc.array(tie('json'), { maxLength: 3 }), weight: 1 },
    { arbitrary: fc.dictionary(key, tie('json'), { maxKeys: 5 }), weight: 4 },
  ),
})).json
/** Valid attribute names are drawn more often, so that enough bodies are accepted. */
const attribute = fc.constantFrom(
  'a',
  'b',
  'location',
  'en',
  'sosa:hosts',
  'http://x.org/y',
  'hosts#1',
  'hosts#2',
)
const member = fc.oneof({ arbitrary: attribute, weight: 2 }, { arbitrary: key, weight: 1 })
const body = fc.dictionary(member, json, { maxKeys: 6 })

const context = compileContext(
  {
    sosa: 'http://www.w3.org/ns/sosa/',
    'hosts#1': 'sosa:hosts',
    'hosts#2': 'sosa:hosts',
    b: 'http://x.org/b',
  },
  () => undefined,
) as Context
const stored = parseEntity(
  {
    id: 'urn:e',
    type: 'T',
    a: { value: { b: 1 } },
    b: { object: 'urn:t' },
    location: { type: 'Point', coordinates: [1, 2] },
  },
  context,
)
const runs = { numRuns: 3000 }

/** Succeeds or is rejected; every other error fails the test. */
function taken<T>(action: () => T): T | undefined {
  let result: T | undefined
  const said = refusal(() => {
    result = action()
  })
  expect(said).toMatch(/^(accepted|bad-request-data .|not-supported .|not-found .)/)
  return result
}

const copied = (entity: Entity): unknown => JSON.parse(JSON.stringify(entity))

describe('any JSON', () => {
  it('is an entity or is rejected, and an entity parses back to itself', () => {
    let entities = 0
    fc.assert(
      fc.property(body, (members) => {
        const entity = taken(() => parseEntity({ ...members, id: 'urn:e', type: 'T' }, context))
        if (entity === undefined) return
        entities++
        for (const format of ['normalized', 'concise'] as const) {
          const shown: unknown = JSON.parse(
            JSON.stringify(renderEntity(entity, undefined, { context, format })),
          )
          expect(parseEntity(shown, context)).toEqual(copied(entity))
        }
        expect(parseEntity(copied(entity), coreContext)).toEqual(copied(entity))
      }),
      runs,
    )
    expect(entities).toBeGreaterThan(100)
  })

  it('is a fragment or is rejected, and appending it results in an entity', () => {
    let merges = 0
    fc.assert(
      fc.property(body, fc.boolean(), (members, simplified) => {
        const fragment = taken(() => parseFragment(members, context, { nulls: true, simplified }))
        if (fragment === undefined) return
        const updated = updateAttributes(stored, fragment, { appendMissing: true }).entity
        expect(JSON.stringify(updated.scope ?? '')).not.toContain(nothing)
        const merged = taken(() => mergeEntity(stored, fragment, { simplified, lang: 'en' }))
        if (merged === undefined) return
        merges++
        expect(parseEntity(copied(merged.entity), coreContext, { nulls: true })).toEqual(
          copied(merged.entity),
        )
      }),
      runs,
    )
    expect(merges).toBeGreaterThan(100)
  })

  it('is a partial update or is rejected', () => {
    fc.assert(
      fc.property(body, fc.constantFrom('a', 'b', 'location'), (members, name) => {
        const partial = taken(() => parsePartial(members, name, context))
        if (partial === undefined) return
        const result = taken(() => updatePartially(stored, context.expand(name), partial))
        if (result !== undefined)
          expect(parseEntity(copied(result.entity), coreContext, { nulls: true })).toEqual(
            copied(result.entity),
          )
      }),
      runs,
    )
  })

  it('is a context or is rejected', () => {
    const term = fc.constantFrom(
      'a',
      'b',
      'a:b',
      '@vocab',
      '@id',
      '@context',
      '@import',
      '@base',
      '__proto__',
      'ngsi-ld',
      'id',
      '',
      ':',
    )
    const text = fc.oneof(
      term,
      fc.constantFrom('http://x.org/', 'x', '_:b', 'a:c', '@type', 'b:'),
      fc.webUrl(),
    )
    const definition = fc.oneof(
      text,
      fc.constant(null),
      fc.dictionary(
        fc.constantFrom('@id', '@type', '@prefix', '@context'),
        fc.oneof(text, fc.boolean(), fc.constant(null)),
      ),
      json,
    )
    const local = fc.array(fc.oneof(fc.dictionary(term, definition), text, fc.constant(null), json), {
      maxLength: 3,
    })
    fc.assert(
      fc.property(local, text, (contexts, name) => {
        const result = taken(() => compileContext(contexts as Json, () => undefined))
        if (result === undefined || !('expand' in result)) return
        expect(typeof result.compact(result.expand(name))).toBe('string')
        expect(JSON.parse(JSON.stringify(result.reference))).toEqual(result.reference)
      }),
      runs,
    )
  })
})
