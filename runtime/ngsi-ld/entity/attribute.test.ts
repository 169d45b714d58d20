/** Attributes of every kind and form; rejections name the invalid part. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from '#ngsi-ld/context/context.ts'
import { refusal } from '#test/kit/refusal.ts'
import type { Attribute } from './attribute.ts'
import { parseEntity } from './entity.ts'

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

/** The attribute as stored. */
const read = (raw: Json, simplified = false): Attribute =>
  parseEntity({ id: 'urn:e', type: 'T', a: raw }, context, { simplified })['a'] as Attribute

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
    ['a bare boolean', false, { type: 'Property', value: false }],
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
    ['an unknown kind', { type: 'Thing', value: 1 }, /a\.type: Thing is not a kind/],
    ['a kind that is a number', { type: 5, value: 1 }, /a\.type/],
    ['no value', { unitCode: 'CEL' }, /a: has neither/],
    [
      'a Property without value',
      { type: 'Property', unitCode: 'CEL' },
      /a\.value: is required in a Property/,
    ],
    ['a Relationship without object', { type: 'Relationship' }, /a\.object: is required in a Relationship/],
    [
      'a Property with object',
      { type: 'Property', value: 1, object: 'urn:t' },
      /a\.object: is not allowed in a Property/,
    ],
    [
      'a Relationship with value',
      { type: 'Relationship', object: 'urn:t', value: 1 },
      /a\.value: is not allowed in a Relationship/,
    ],
    ['a target that is not a URI', { object: 'bus' }, /a\.object: must be a URI/],
    ['no targets', { object: [] }, /a\.object: must contain at least one target/],
    ['a target among others that is not a URI', { object: ['urn:t', 5] }, /a\.object\[1\]: must be a URI/],
    ['an infinite number', { value: JSON.parse('[1e999]') as Json }, /a\.value: number is out of range/],
    ['an invalid geometry', { type: 'GeoProperty', value: { type: 'Point' } }, /a\.value\.coordinates/],
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
    ['a datasetId that is not a URI', { value: 1, datasetId: 'x' }, /a\.datasetId: must be a URI/],
    ['an objectType that is a number', { object: 'urn:t', objectType: 5 }, /a\.objectType/],
    ['an instance that expires on some day', { value: 1, expiresAt: '2030-01-01' }, /a\.expiresAt/],
    ['an embedded context', { value: 1, '@context': {} }, /a\.@context/],
    ['a wrong sub-attribute', { value: 1, b: { c: 1 } }, /a\.b: has neither/],
    ['a sub-attribute with a wrong name', { value: 1, 'b c': 1 }, /a\.b c: must be a URI, or a letter/],
  ])('may not be %s', (_, raw, reason) => expect(refusal(() => read(raw))).toMatch(reason))

  it('may be nested as deep as the limit and no deeper', () => {
    const nested = (depth: number): Json => (depth === 0 ? 1 : { value: 1, b: nested(depth - 1) })
    const list = (depth: number): Json => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`) as Json
    const max = limits.jsonDepthMax.value
    expect(refusal(() => read(nested(max - 2)))).toBe('accepted')
    expect(refusal(() => read(nested(max + 2)))).toMatch(/nested more than/)
    expect(refusal(() => read(list(max - 2)))).toBe('accepted')
    expect(refusal(() => read(list(10_000)))).toMatch(/a: is nested more than/)
  })
})

describe('members of an attribute', () => {
  it('are sub-attributes of any kind, or members of the standard', () => {
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

  it('are distinguished by datasetId', () => {
    expect(read([instance(1), instance(2, 'urn:d'), { value: 3, datasetId: 'urn:e' }])).toEqual([
      instance(1),
      instance(2, 'urn:d'),
      instance(3, 'urn:e'),
    ])
    expect(read([instance(1, 'urn:d')])).toEqual(instance(1, 'urn:d'))
  })

  it('may not repeat a datasetId', () => {
    expect(refusal(() => read([instance(1), instance(2)]))).toMatch(/a: has two instances without datasetId/)
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
    expect(refusal(() => hosts({ 'hosts#1': 1, 'hosts#2': 2 }))).toMatch(/hosts: has two instances/)
    expect(
      refusal(() =>
        hosts({ 'hosts#1': { object: 'urn:1', observedAt: time }, 'hosts#2': { object: 'urn:2' } }),
      ),
    ).toMatch(/hosts: has two instances/)
  })

  it('are so many at most', () => {
    const max = limits.instancesPerAttributeMax.value
    const many = (count: number) => Array.from({ length: count }, (_, i) => instance(i, `urn:d:${i}`))
    expect(read(many(max))).toHaveLength(max)
    expect(refusal(() => read(many(max + 1)))).toMatch(/a: has more than/)
    const targets = Array.from({ length: 5000 }, (_, i) => ({ object: `urn:t:${i}` }))
    expect((read(targets) as { object: unknown }).object).toHaveLength(5000)
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
