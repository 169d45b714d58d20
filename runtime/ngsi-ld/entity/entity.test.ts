/** JSON bodies become entities, fragments and partial updates; rejections name the invalid member. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { refusal } from '#test/kit/refusal.ts'
import { attributeNames, parseAttribute, parseEntity, parseFragment, parsePartial } from './entity.ts'

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

describe('an entity', () => {
  it('has canonical names, and neither context nor members that only the gateway writes', () => {
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
        title: 'is a name here',
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
      title: { type: 'Property', value: 'is a name here' },
      scope: '/a/b',
    })
    expect(Object.keys(entity).slice(0, 2)).toEqual(['id', 'type'])
    expect(attributeNames(entity)).toEqual([`${sosa}hosts`, 'location', `${sosa}resultTime`, 'title'])
  })

  it.each<[string, unknown, RegExp]>([
    ['a list', [], /body: must be an entity/],
    ['null', null, /body/],
    ['without id', { type: 'T' }, /id: is missing/],
    ['with an id that is not a URI', { id: 'bus7', type: 'T' }, /id: must be a URI/],
    ['with an id with a blank', { id: 'urn:a b', type: 'T' }, /id: must be a URI/],
    ['with an id that is a number', { id: 7, type: 'T' }, /id: must be a URI/],
    ['without type', { id: 'urn:e' }, /type: must be a name/],
    ['with no types', { id: 'urn:e', type: [] }, /type: must be a name/],
    ['with a type that is a number', { id: 'urn:e', type: 5 }, /type: must be a name/],
    ['with a type with a blank', { id: 'urn:e', type: 'a b' }, /type: must be a URI, or a letter/],
    ['with a scope that is not a path', { id: 'urn:e', type: 'T', scope: 'a//b' }, /scope: must be a path/],
    ['with no scopes', { id: 'urn:e', type: 'T', scope: [] }, /scope: must be a path/],
    ['that expires on some day', { id: 'urn:e', type: 'T', expiresAt: '2030-01-01' }, /expiresAt/],
    ['with a name with a blank', { id: 'urn:e', type: 'T', 'a b': 1 }, /a b: must be a URI, or a letter/],
    [
      'with a name with a bracket',
      { id: 'urn:e', type: 'T', 'a(b)': 1 },
      /a\(b\): must be a URI, or a letter/,
    ],
    ['with an empty name', { id: 'urn:e', type: 'T', '': 1 }, /must be a URI, or a letter/],
    [
      'with __proto__',
      JSON.parse('{"id": "urn:e", "type": "T", "__proto__": {"value": 1}}'),
      /__proto__: must be a URI, or a letter/,
    ],
    ['with a keyword', { id: 'urn:e', type: 'T', '@value': 1 }, /@value: must be a URI, or a letter/],
    [
      'with an alias that no context explains',
      { id: 'urn:e', type: 'T', 'a#1': 1 },
      /a#1: must be a URI, or a letter/,
    ],
    ['with a long name', { id: 'urn:e', type: 'T', ['a'.repeat(9999)]: 1 }, /name longer than/],
  ])('may not be %s', (_, json, reason) => expect(refusal(() => parseEntity(json, context))).toMatch(reason))

  it('has a bounded number of attributes', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, i]))
    const max = limits.attributesPerEntityMax.value
    expect(attributeNames(parseEntity({ id: 'urn:e', type: 'T', ...many(max) }, coreContext))).toHaveLength(
      max,
    )
    expect(refusal(() => parseEntity({ id: 'urn:e', type: 'T', ...many(max + 1) }, coreContext))).toMatch(
      /at most/,
    )
  })
})

describe('a fragment', () => {
  it('needs no id, may repeat it, may not contradict it', () => {
    const options = { id: 'urn:e' }
    expect(parseFragment({ id: 'urn:e', type: 'Sensor', a: 1 }, context, options)).toEqual({
      type: `${sosa}Sensor`,
      a: { type: 'Property', value: 1 },
    })
    expect(refusal(() => parseFragment({ id: 'urn:f', a: 1 }, context, options))).toMatch(
      /bad-request-data id: must be urn:e/,
    )
    expect(refusal(() => parseFragment({ '@context': [] }, context))).toMatch(
      /must contain at least one attribute/,
    )
    expect(refusal(() => parseFragment([], context))).toMatch(/body/)
  })

  it('may request deletion if allowed', () => {
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
    expect(parseAttribute({ value: 1 }, 'a', coreContext)).toEqual({ type: 'Property', value: 1 })
    expect(refusal(() => parseAttribute({ '@context': [], value: 1 }, 'a', coreContext))).toMatch(/context/)
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
