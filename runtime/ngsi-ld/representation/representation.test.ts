/** Rendering of entities for responses. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext, coreContext } from '#ngsi-ld/context/context.ts'
import { type Entity, parseEntity } from '#ngsi-ld/entity/entity.ts'
import { languageRanges } from '#ngsi-ld/entity/language.ts'
import { type Format, type RenderOptions, renderEntity, renderInstance } from './representation.ts'

const context = compileContext(
  { sosa: 'http://www.w3.org/ns/sosa/', temp: 'https://uri.etsi.org/ngsi-ld/default-context/temperature' },
  () => undefined,
) as Context
const point = { type: 'Point', coordinates: [8, 49] }

const body: Record<string, Json> = {
  id: 'urn:e',
  type: ['sosa:Sensor', 'Room'],
  scope: '/a',
  temperature: {
    type: 'Property',
    value: 20,
    observedAt: '2024-01-01T00:00:00Z',
    'sosa:by': { type: 'Relationship', object: 'urn:s' },
  },
  plain: { type: 'Property', value: 5 },
  list: { type: 'Property', value: [{ value: 1 }] },
  address: { type: 'Property', value: { street: 'x' } },
  disguised: { type: 'Property', value: point },
  location: { type: 'GeoProperty', value: point },
  'sosa:hosts': { type: 'Relationship', object: 'urn:t', objectType: 'sosa:Sensor' },
  greeting: { type: 'LanguageProperty', languageMap: { en: 'hello', 'de-AT': 'servus' } },
  state: { type: 'VocabProperty', vocab: ['sosa:Sample', 'other'] },
  data: { type: 'JsonProperty', json: { a: 1 } },
  steps: { type: 'ListProperty', valueList: [1, 2] },
  route: { type: 'ListRelationship', objectList: [{ object: 'urn:t' }] },
  speed: [
    { type: 'Property', value: 1 },
    { type: 'Property', value: 2, datasetId: 'urn:d', by: { type: 'Property', value: 'x' } },
  ],
}
const entity: Entity = parseEntity(body, context)
const render = (options: Partial<RenderOptions> = {}) =>
  renderEntity(entity, undefined, { context, format: 'normalized', ...options })

describe('normalized', () => {
  it('is the input, under the same context', () => {
    const { temperature, ...rest } = body
    expect(render()).toEqual({ ...rest, temp: temperature })
  })

  it('is the stored document under the core', () => {
    const rendered = render({ context: coreContext })
    expect(rendered).toEqual(entity)
    expect(rendered['temperature']).toBe(entity['temperature'])
  })
})

describe('concise', () => {
  it('omits members that can be inferred', () => {
    expect(render({ format: 'concise' })).toEqual({
      id: 'urn:e',
      type: ['sosa:Sensor', 'Room'],
      scope: '/a',
      temp: { value: 20, observedAt: '2024-01-01T00:00:00Z', 'sosa:by': { object: 'urn:s' } },
      plain: 5,
      list: { value: [{ value: 1 }] },
      address: { value: { street: 'x' } },
      disguised: { type: 'Property', value: point },
      location: point,
      'sosa:hosts': { object: 'urn:t', objectType: 'sosa:Sensor' },
      greeting: { languageMap: { en: 'hello', 'de-AT': 'servus' } },
      state: { vocab: ['sosa:Sample', 'other'] },
      data: { json: { a: 1 } },
      steps: { valueList: [1, 2] },
      route: { objectList: ['urn:t'] },
      speed: [{ value: 1 }, { value: 2, datasetId: 'urn:d', by: 'x' }],
    })
  })

  it('parses back to the same entity', () => {
    for (const which of [context, coreContext]) {
      expect(parseEntity(render({ format: 'concise', context: which }), which)).toEqual(entity)
    }
  })
})

describe('simplified', () => {
  it('is values alone', () => {
    expect(render({ format: 'simplified' })).toEqual({
      id: 'urn:e',
      type: ['sosa:Sensor', 'Room'],
      scope: '/a',
      temp: 20,
      plain: 5,
      list: [{ value: 1 }],
      address: { street: 'x' },
      disguised: point,
      location: point,
      'sosa:hosts': 'urn:t',
      greeting: { languageMap: { en: 'hello', 'de-AT': 'servus' } },
      state: { vocab: ['sosa:Sample', 'other'] },
      data: { json: { a: 1 } },
      steps: [1, 2],
      route: ['urn:t'],
      speed: { dataset: { '@none': 1, 'urn:d': 2 } },
    })
  })
})

describe('a projection', () => {
  const names = (options: Partial<RenderOptions>): string[] =>
    Object.keys(render({ context: coreContext, ...options }))

  it('shows the chosen attributes', () => {
    expect(names({ attrs: new Set(['plain', 'unknown']) })).toEqual(['id', 'type', 'scope', 'plain'])
    expect(names({ pick: new Set(['id', 'plain']) })).toEqual(['id', 'plain'])
    expect(names({ omit: new Set(['scope', 'type', ...Object.keys(entity).slice(4)]) })).toEqual([
      'id',
      'temperature',
    ])
  })

  it('shows the chosen instances', () => {
    const attrs = new Set(['speed', 'plain'])
    expect(render({ attrs, datasetId: new Set(['urn:d']) })).toMatchObject({ speed: { value: 2 } })
    expect(render({ attrs, datasetId: new Set(['urn:d']) })).not.toHaveProperty('plain')
    expect(render({ attrs, datasetId: new Set(['@none', 'urn:d']) })).toMatchObject({
      plain: {},
      speed: [{}, {}],
    })
    expect(render({ attrs, datasetId: new Set(['urn:d']), format: 'simplified' })).toMatchObject({
      speed: { dataset: { 'urn:d': 2 } },
    })
  })
})

describe('system attributes', () => {
  const times = {
    created: 0,
    modified: 1000,
    attributes: { plain: [2000, 3000], 'speed urn:d': [4000, 5000] },
  } as const
  const stamped = (format: Format) =>
    renderEntity(entity, times, {
      context: coreContext,
      format,
      sysAttrs: true,
      attrs: new Set(['plain', 'speed']),
    })

  it('are on the entity and on each instance', () => {
    expect(stamped('normalized')).toMatchObject({
      createdAt: '1970-01-01T00:00:00Z',
      modifiedAt: '1970-01-01T00:00:01Z',
      plain: { type: 'Property', createdAt: '1970-01-01T00:00:02Z', modifiedAt: '1970-01-01T00:00:03Z' },
      speed: [{ type: 'Property', value: 1 }, { createdAt: '1970-01-01T00:00:04Z' }],
    })
    expect(stamped('concise')['plain']).toEqual({
      value: 5,
      createdAt: '1970-01-01T00:00:02Z',
      modifiedAt: '1970-01-01T00:00:03Z',
    })
    expect(stamped('simplified')).toMatchObject({ createdAt: '1970-01-01T00:00:00Z', plain: 5 })
    expect(entity['plain']).toEqual({ type: 'Property', value: 5 })
  })

  it('only on request', () => {
    expect(renderEntity(entity, times, { context, format: 'normalized' })).not.toHaveProperty('createdAt')
  })
})

describe('a language', () => {
  const spoken = (lang: string, format: Format = 'normalized') =>
    render({ context: coreContext, format, lang: languageRanges(lang) })['greeting']

  it('reduces the map to one text', () => {
    expect(spoken('de')).toEqual({ type: 'Property', value: 'servus', lang: 'de-AT' })
    expect(spoken('fr, en;q=0.5, de;q=0.8')).toEqual({ type: 'Property', value: 'servus', lang: 'de-AT' })
    expect(spoken('en-GB')).toEqual({ type: 'Property', value: 'hello', lang: 'en' })
    expect(spoken('*')).toEqual({ type: 'Property', value: 'hello', lang: 'en' })
    expect(spoken('fr')).toEqual({ type: 'Property', value: 'hello', lang: 'en' })
    expect(spoken('en', 'simplified')).toBe('hello')
    expect(spoken('en', 'concise')).toEqual({ value: 'hello', lang: 'en' })
  })

  it('falls back to the text without language', () => {
    const instance = { type: 'LanguageProperty', languageMap: { en: 'hello', '@none': 'ho' } }
    expect(renderInstance(instance, { context, format: 'normalized', lang: ['fr'] })).toEqual({
      type: 'Property',
      value: 'ho',
      lang: '@none',
    })
  })

  it('orders ranges by weight and drops those of weight 0', () =>
    expect(languageRanges('fr;q=0.5, DE-at ,, en;q=0, x;q=nonsense,*;q=0.1')).toEqual(['de-at', 'fr', '*']))
})

describe('the context of an answer', () => {
  it('is a member', () => {
    expect(render({ pick: new Set(['id']), atContext: ['x'] })).toEqual({ id: 'urn:e', '@context': ['x'] })
  })
})
