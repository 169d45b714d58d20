/** JSON bodies become entities, fragments and partial updates, or are refused by the name of what is wrong. */
import { describe, expect, it } from 'vitest'
import { isGatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext, coreContext } from './context.ts'
import {
  type Attribute,
  attributeNames,
  parseAttribute,
  parseEntity,
  parseFragment,
  parsePartial,
} from './entity.ts'

const sosa = 'http://www.w3.org/ns/sosa/'
const context = compileContext(
  {
    sosa,
    Sensor: 'sosa:Sensor',
    'hosts#1': 'sosa:hosts',
    'hosts#2': 'sosa:hosts',
    Kind: 'https://uri.etsi.org/ngsi-ld/Property',
  },
  () => undefined,
) as Context
const point = { type: 'Point', coordinates: [8, 49] }
const nothing = 'urn:ngsi-ld:null'

/** The attribute as it is kept. */
const read = (raw: Json, simplified = false): Attribute =>
  parseEntity({ id: 'urn:e', type: 'T', a: raw }, context, { simplified })['a'] as Attribute

function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (isGatewayError(error)) return `${error.code.replace('ngsi-ld.', '')} ${error.message}`
    throw error
  }
  return 'accepted'
}

describe('an entity', () => {
  it('has canonical names, and neither context nor what only the gateway writes', () => {
    const entity = parseEntity(
      {
        '@context': ['anything'],
        createdAt: 'x',
        'sosa:hosts': { type: 'Relationship', object: 'urn:s' },
        id: 'urn:ngsi-ld:Platform:AA bb'.replace(' ', ':'),
        type: ['Sensor', 'sosa:Sensor', 'Other'],
        'ngsi-ld:location': point,
        [`${sosa}resultTime`]: 'now',
        modifiedAt: 5,
        entity: 'is a name here',
        lang: 'too',
        scope: ['/a/b'],
      },
      context,
    )
    expect(entity).toEqual({
      id: 'urn:ngsi-ld:Platform:AA:bb',
      type: [`${sosa}Sensor`, 'Other'],
      [`${sosa}hosts`]: { type: 'Relationship', object: 'urn:s' },
      location: { type: 'GeoProperty', value: point },
      [`${sosa}resultTime`]: { type: 'Property', value: 'now' },
      entity: { type: 'Property', value: 'is a name here' },
      lang: { type: 'Property', value: 'too' },
      scope: '/a/b',
    })
    expect(Object.keys(entity).slice(0, 2)).toEqual(['id', 'type'])
    expect(attributeNames(entity)).toEqual([
      `${sosa}hosts`,
      'location',
      `${sosa}resultTime`,
      'entity',
      'lang',
    ])
  })

  it.each<[string, unknown, RegExp]>([
    ['a list', [], /body: must be an entity/],
    ['null', null, /body/],
    ['without id', { type: 'T' }, /id: is missing/],
    ['with an id that is no URI', { id: 'bus7', type: 'T' }, /id: must be a URI/],
    ['with an id with a blank', { id: 'urn:a b', type: 'T' }, /id: must be a URI/],
    ['with an id that is a number', { id: 7, type: 'T' }, /id: must be a URI/],
    ['without type', { id: 'urn:e' }, /type: must be a name/],
    ['with no types', { id: 'urn:e', type: [] }, /type: must be a name/],
    ['with a type that is a number', { id: 'urn:e', type: 5 }, /type: must be a name/],
    ['with a type with a blank', { id: 'urn:e', type: 'a b' }, /type: a name is/],
    ['with a scope that is no path', { id: 'urn:e', type: 'T', scope: 'a' }, /scope: must be a path/],
    ['with no scopes', { id: 'urn:e', type: 'T', scope: [] }, /scope: must be a path/],
    [
      'that expires',
      { id: 'urn:e', type: 'T', expiresAt: '2030-01-01T00:00:00Z' },
      /not-supported expiresAt/,
    ],
    ['with a name with a blank', { id: 'urn:e', type: 'T', 'a b': 1 }, /a b: a name is/],
    ['with a name with a bracket', { id: 'urn:e', type: 'T', 'a(b)': 1 }, /a\(b\): a name is/],
    ['with an empty name', { id: 'urn:e', type: 'T', '': 1 }, /a name is/],
    [
      'with __proto__',
      JSON.parse('{"id": "urn:e", "type": "T", "__proto__": {"value": 1}}'),
      /__proto__: a name is/,
    ],
    ['with a keyword', { id: 'urn:e', type: 'T', '@value': 1 }, /@value: a name is/],
    ['with an alias that no context explains', { id: 'urn:e', type: 'T', 'a#1': 1 }, /a#1: a name is/],
    ['with a long name', { id: 'urn:e', type: 'T', ['a'.repeat(9999)]: 1 }, /name longer than/],
  ])('may not be %s', (_, json, reason) => expect(refusal(() => parseEntity(json, context))).toMatch(reason))

  it('has a bounded number of attributes', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, i]))
    const max = limits.attributesPerEntityMax.value
    expect(attributeNames(parseEntity({ id: 'urn:e', type: 'T', ...many(max) }, coreContext))).toHaveLength(
      max,
    )
    expect(refusal(() => parseEntity({ id: 'urn:e', type: 'T', ...many(max + 1) }, coreContext))).toMatch(
      /more than/,
    )
  })
})

describe('the kind of an attribute', () => {
  const map = { en: 'hello', 'de-AT': ['servus', 'hallo'], '@none': 'x' }
  it.each<[string, Json, Attribute]>([
    ['stated', { type: 'Property', value: { a: [1, null] } }, { type: 'Property', value: { a: [1, null] } }],
    [
      'stated as an IRI',
      { type: 'https://uri.etsi.org/ngsi-ld/Property', value: 1 },
      { type: 'Property', value: 1 },
    ],
    ['stated by an alias', { type: 'Kind', value: 1 }, { type: 'Property', value: 1 }],
    ['stated by a keyword', { '@type': 'Property', value: 1 }, { type: 'Property', value: 1 }],
    [
      'stated as in 1.7',
      { type: 'VocabularyProperty', vocab: 'Sensor' },
      { type: 'VocabProperty', vocab: `${sosa}Sensor` },
    ],
    ['a bare number', 5, { type: 'Property', value: 5 }],
    ['a bare text', 'x', { type: 'Property', value: 'x' }],
    ['a bare truth', false, { type: 'Property', value: false }],
    ['a bare list', [1, { a: 2 }], { type: 'Property', value: [1, { a: 2 }] }],
    ['an empty list', [], { type: 'Property', value: [] }],
    ['a bare geometry', point, { type: 'GeoProperty', value: point }],
    ['by value', { value: 5, unitCode: 'CEL' }, { type: 'Property', value: 5, unitCode: 'CEL' }],
    ['by a geometry as value', { value: point }, { type: 'GeoProperty', value: point }],
    [
      'by text of a geometry',
      { type: 'GeoProperty', value: JSON.stringify(point) },
      { type: 'GeoProperty', value: point },
    ],
    ['by object', { object: 'urn:t' }, { type: 'Relationship', object: 'urn:t' }],
    ['by objects', { object: ['urn:t', 'urn:u'] }, { type: 'Relationship', object: ['urn:t', 'urn:u'] }],
    ['by languageMap', { languageMap: map }, { type: 'LanguageProperty', languageMap: map }],
    [
      'by vocab',
      { vocab: ['Sensor', 'any-thing'] },
      { type: 'VocabProperty', vocab: [`${sosa}Sensor`, 'any-thing'] },
    ],
    ['by json', { json: { type: 'x', id: 5 } }, { type: 'JsonProperty', json: { type: 'x', id: 5 } }],
    ['by valueList', { valueList: [1, [2]] }, { type: 'ListProperty', valueList: [1, [2]] }],
    [
      'by objectList',
      { objectList: [{ object: 'urn:t' }, 'urn:u'] },
      { type: 'ListRelationship', objectList: [{ object: 'urn:t' }, { object: 'urn:u' }] },
    ],
    [
      'of a relationship, with the type of its target',
      { object: 'urn:t', objectType: 'Sensor' },
      { type: 'Relationship', object: 'urn:t', objectType: `${sosa}Sensor` },
    ],
  ])('is %s', (_, raw, attribute) => expect(read(raw)).toEqual(attribute))

  it.each<[string, Json, RegExp]>([
    ['null', null, /a: null is not a value/],
    ['a value of null', { type: 'Property', value: null }, /a\.value: null is not a value/],
    ['NGSI-LD Null', nothing, /a: urn:ngsi-ld:null is not allowed/],
    ['a value of NGSI-LD Null', { value: nothing }, /a\.value: urn:ngsi-ld:null is not allowed/],
    ['NGSI-LD Null inside a value', { value: { b: [nothing] } }, /a\.value: .*not allowed/],
    ['NGSI-LD Null as a target', { object: nothing }, /a\.object: .*not allowed/],
    [
      'NGSI-LD Null as a language',
      { languageMap: { '@none': nothing } },
      /a\.languageMap\.@none: .*not allowed/,
    ],
    ['an unknown kind', { type: 'Thing', value: 1 }, /a\.type: "Thing" is not a kind/],
    ['a kind that is a number', { type: 5, value: 1 }, /a\.type/],
    ['no value', { unitCode: 'CEL' }, /a: has neither/],
    ['a Property without value', { type: 'Property', unitCode: 'CEL' }, /a\.value: a Property needs it/],
    ['a Relationship without object', { type: 'Relationship' }, /a\.object: a Relationship needs it/],
    [
      'a Property with object',
      { type: 'Property', value: 1, object: 'urn:t' },
      /a\.object: a Property has none/,
    ],
    [
      'a Relationship with value',
      { type: 'Relationship', object: 'urn:t', value: 1 },
      /a\.value: a Relationship has none/,
    ],
    ['a target that is no URI', { object: 'bus' }, /a\.object: must be a URI/],
    ['no targets', { object: [] }, /a\.object: names no target/],
    ['a target among others that is no URI', { object: ['urn:t', 5] }, /a\.object\[1\]: must be a URI/],
    ['an infinite number', { value: JSON.parse('[1e999]') }, /a\.value: number out of range/],
    ['a geometry that is none', { type: 'GeoProperty', value: { type: 'Point' } }, /a\.value\.coordinates/],
    ['a text per no language', { languageMap: { 'no language': 'x' } }, /a\.languageMap\.no language/],
    ['a number per language', { languageMap: { en: 5 } }, /a\.languageMap\.en/],
    ['a languageMap that is a text', { languageMap: 'x' }, /a\.languageMap/],
    ['a vocab that is a number', { vocab: 5 }, /a\.vocab/],
    ['a valueList that is a number', { valueList: 5 }, /a\.valueList/],
    ['an objectList without objects', { objectList: [{}] }, /a\.objectList\[0\]\.object/],
    [
      'a time with offset',
      { value: 1, observedAt: '2024-01-01T00:00:00+01:00' },
      /a\.observedAt: must be a DateTime/,
    ],
    ['a unit that is a number', { value: 1, unitCode: 5 }, /a\.unitCode/],
    ['a datasetId that is no URI', { value: 1, datasetId: 'x' }, /a\.datasetId: must be a URI/],
    ['an objectType that is a number', { object: 'urn:t', objectType: 5 }, /a\.objectType/],
    [
      'an instance that expires',
      { value: 1, expiresAt: '2030-01-01T00:00:00Z' },
      /not-supported a\.expiresAt/,
    ],
    ['an embedded context', { value: 1, '@context': {} }, /a\.@context/],
    ['a wrong sub-attribute', { value: 1, b: { c: 1 } }, /a\.b: has neither/],
    ['a sub-attribute with a wrong name', { value: 1, 'b c': 1 }, /a\.b c: a name is/],
  ])('may not be %s', (_, raw, reason) => expect(refusal(() => read(raw))).toMatch(reason))

  it('may be nested as deep as the limit and no deeper', () => {
    const nested = (depth: number): Json => (depth === 0 ? 1 : { value: 1, b: nested(depth - 1) })
    const list = (depth: number): Json => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    const max = limits.jsonDepthMax.value
    expect(refusal(() => read(nested(max - 2)))).toBe('accepted')
    expect(refusal(() => read(nested(max + 2)))).toMatch(/nested more than/)
    expect(refusal(() => read(list(max - 2)))).toBe('accepted')
    expect(refusal(() => read(list(10_000)))).toMatch(/a: nested more than/)
  })
})

describe('members of an attribute', () => {
  it('are sub-attributes of any kind, or what the standard says', () => {
    expect(
      read({
        type: 'Property',
        value: 21.5,
        observedAt: '2024-01-01T00:00:00,500Z',
        unitCode: 'CEL',
        datasetId: '@none',
        createdAt: '2020-01-01T00:00:00Z',
        instanceId: 'urn:i',
        previousValue: 3,
        id: 'urn:x',
        accuracy: { type: 'Property', value: 0.1, unitCode: 'CEL', by: { object: 'urn:lab' } },
        'sosa:madeBySensor': { object: 'urn:s' },
        note: 'bare',
      }),
    ).toEqual({
      type: 'Property',
      value: 21.5,
      observedAt: '2024-01-01T00:00:00.500Z',
      unitCode: 'CEL',
      accuracy: {
        type: 'Property',
        value: 0.1,
        unitCode: 'CEL',
        by: { type: 'Relationship', object: 'urn:lab' },
      },
      [`${sosa}madeBySensor`]: { type: 'Relationship', object: 'urn:s' },
      note: { type: 'Property', value: 'bare' },
    })
  })
})

describe('several instances', () => {
  const instance = (value: number, datasetId?: string): Json =>
    datasetId === undefined ? { type: 'Property', value } : { type: 'Property', value, datasetId }
  const hosts = (body: Record<string, Json>) =>
    parseEntity({ id: 'urn:e', type: 'T', ...body }, context)[`${sosa}hosts`]

  it('are told apart by datasetId', () => {
    expect(read([instance(1), instance(2, 'urn:d'), { value: 3, datasetId: 'urn:e' }])).toEqual([
      instance(1),
      instance(2, 'urn:d'),
      instance(3, 'urn:e'),
    ])
    expect(read([instance(1, 'urn:d')])).toEqual(instance(1, 'urn:d'))
  })

  it('may not repeat a datasetId', () => {
    expect(refusal(() => read([instance(1), instance(2)]))).toMatch(/a: two instances without datasetId/)
    expect(refusal(() => read([instance(1, 'urn:d'), instance(2, 'urn:d')]))).toMatch(
      /a: datasetId urn:d occurs twice/,
    )
    expect(refusal(() => read([instance(1), { value: 2, datasetId: '@none' }]))).toMatch(/two instances/)
    expect(refusal(() => read([instance(1), 5]))).toMatch(/a\[1\]: is not an attribute instance/)
  })

  it('of one name under several aliases become one', () => {
    expect(hosts({ 'hosts#1': { object: 'urn:1' }, 'hosts#2': { object: ['urn:2', 'urn:1'] } })).toEqual({
      type: 'Relationship',
      object: ['urn:1', 'urn:2'],
    })
    expect(
      hosts({ 'hosts#1': { object: 'urn:1' }, 'hosts#2': { object: 'urn:2', datasetId: 'urn:d' } }),
    ).toEqual([
      { type: 'Relationship', object: 'urn:1' },
      { type: 'Relationship', object: 'urn:2', datasetId: 'urn:d' },
    ])
    expect(hosts({ 'sosa:hosts': [{ object: 'urn:1' }, { object: 'urn:2' }] })).toEqual({
      type: 'Relationship',
      object: ['urn:1', 'urn:2'],
    })
  })

  it('of one name may not differ in more than their targets', () => {
    const time = '2024-01-01T00:00:00Z'
    expect(refusal(() => hosts({ 'hosts#1': 1, 'hosts#2': 2 }))).toMatch(/hosts#2: two instances/)
    expect(
      refusal(() =>
        hosts({ 'hosts#1': { object: 'urn:1', observedAt: time }, 'hosts#2': { object: 'urn:2' } }),
      ),
    ).toMatch(/hosts#2: two instances/)
  })

  it('of sub-attributes too', () => {
    expect(read({ value: 1, b: [instance(1), instance(2, 'urn:d')] })).toMatchObject({
      b: [instance(1), instance(2, 'urn:d')],
    })
  })
})

describe('simplified values', () => {
  it.each<[string, Json, Attribute]>([
    ['an object', { street: 'x' }, { type: 'Property', value: { street: 'x' } }],
    [
      'an object with type and value',
      { type: 'X', value: 1 },
      { type: 'Property', value: { type: 'X', value: 1 } },
    ],
    ['a list of objects', [{ value: 1 }], { type: 'Property', value: [{ value: 1 }] }],
    ['a geometry', point, { type: 'GeoProperty', value: point }],
    ['languages', { languageMap: { en: 'x' } }, { type: 'LanguageProperty', languageMap: { en: 'x' } }],
    ['a vocab', { vocab: 'Sensor' }, { type: 'VocabProperty', vocab: `${sosa}Sensor` }],
    ['json', { json: [1] }, { type: 'JsonProperty', json: [1] }],
    ['a target', 'urn:t', { type: 'Property', value: 'urn:t' }],
    [
      'datasets',
      { dataset: { '@none': 1, 'urn:d': 2 } },
      [
        { type: 'Property', value: 1 },
        { type: 'Property', value: 2, datasetId: 'urn:d' },
      ],
    ],
  ])('may be %s', (_, raw, attribute) => expect(read(raw, true)).toEqual(attribute))
})

describe('a fragment', () => {
  it('needs no id, may repeat it, may not contradict it', () => {
    const options = { id: 'urn:e' }
    expect(parseFragment({ id: 'urn:e', type: 'Sensor', a: 1 }, context, options)).toEqual({
      type: `${sosa}Sensor`,
      a: { type: 'Property', value: 1 },
    })
    expect(refusal(() => parseFragment({ id: 'urn:f', a: 1 }, context, options))).toMatch(
      /bad-request-data id: is not urn:e/,
    )
    expect(refusal(() => parseFragment({ '@context': [] }, context))).toMatch(/names no attribute/)
    expect(refusal(() => parseFragment([], context))).toMatch(/body/)
  })

  it('may ask for deletion where that is allowed', () => {
    const body = {
      a: nothing,
      b: { type: 'Relationship', object: nothing },
      scope: nothing,
      c: { value: 1, d: nothing, unitCode: nothing },
    }
    expect(parseFragment(body, context, { nulls: true })).toEqual({
      a: { type: 'Property', value: nothing },
      b: { type: 'Relationship', object: nothing },
      scope: nothing,
      c: { type: 'Property', value: 1, d: { type: 'Property', value: nothing }, unitCode: nothing },
    })
    for (const [name, value] of Object.entries(body)) {
      expect(refusal(() => parseFragment({ [name]: value }, context))).toContain(name)
    }
  })
})

describe('a single attribute', () => {
  it('may be whole', () => {
    expect(parseAttribute({ '@context': [], value: 1 }, 'a', coreContext)).toEqual({
      type: 'Property',
      value: 1,
    })
    expect(parseAttribute(5, 'a', coreContext)).toEqual({ type: 'Property', value: 5 })
    expect(refusal(() => parseAttribute(null, 'a', coreContext))).toMatch(/^bad-request-data a: null/)
  })

  it('may be a part of one', () => {
    expect(parsePartial({ '@context': [], value: 5, note: 1 }, 'a', coreContext)).toEqual({
      value: 5,
      note: { type: 'Property', value: 1 },
    })
    expect(parsePartial({ type: 'Property', unitCode: nothing }, 'a', coreContext)).toEqual({
      type: 'Property',
      unitCode: nothing,
    })
    expect(parsePartial({ vocab: 'Sensor' }, 'a', context)).toEqual({ vocab: `${sosa}Sensor` })
    for (const wrong of [[], 5, { type: 'X' }, { type: 5 }, { value: null }, { value: 1, object: 'urn:t' }]) {
      expect(refusal(() => parsePartial(wrong, 'a', coreContext))).toMatch(/^bad-request-data (a|body)/)
    }
  })
})
