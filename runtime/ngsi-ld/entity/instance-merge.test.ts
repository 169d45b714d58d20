/** Merging fragments into entities, down into values and sub-attributes. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { refusal } from '#test/kit/refusal.ts'
import type { AttributeInstance } from './attribute.ts'
import { type Entity, parseEntity, parseFragment } from './entity.ts'
import { mergeEntity } from './merge.ts'

const at = (second: number): string => `2024-01-01T00:00:0${second}Z`
const nothing = 'urn:ngsi-ld:null'

function frozen<T>(value: T): T {
  for (const inner of Object.values(value as object)) {
    if (typeof inner === 'object' && inner !== null) frozen(inner)
  }
  return Object.freeze(value)
}

const entity: Entity = frozen(
  parseEntity(
    {
      id: 'urn:e',
      type: 'Room',
      temperature: { value: 20, observedAt: at(0), unitCode: 'CEL', accuracy: 0.5, by: { object: 'urn:s' } },
      speed: [{ value: 1 }, { value: 2, datasetId: 'urn:d' }],
      owner: { object: 'urn:p' },
      greeting: { languageMap: { en: 'hello', de: 'hallo' } },
      address: { value: { street: 'x', city: { name: 'y', zip: 1 } } },
      location: { type: 'Point', coordinates: [8, 49] },
    },
    coreContext,
  ),
)
const fragment = (body: Record<string, Json>, simplified = false) =>
  frozen(parseFragment(body, coreContext, { merging: true, simplified }))
const instance = (name: string, of: Entity = entity): AttributeInstance => of[name] as AttributeInstance

describe('merge', () => {
  it('reaches values, members and languages', () => {
    const result = mergeEntity(
      entity,
      fragment({
        temperature: { value: 22, accuracy: { value: 0.1, note: 'x' }, by: nothing, unitCode: nothing },
        address: { value: { street: nothing, city: { zip: 2 } } },
        greeting: { languageMap: { de: nothing, fr: 'salut' } },
        owner: nothing,
        unknown: nothing,
        humidity: { value: 40, note: nothing },
        type: 'Hall',
        scope: '/a',
      }),
    )
    const { owner: _, ...rest } = entity
    expect(result.entity).toEqual({
      ...rest,
      type: ['Room', 'Hall'],
      scope: '/a',
      temperature: {
        type: 'Property',
        value: 22,
        observedAt: at(0),
        accuracy: { type: 'Property', value: 0.1, note: { type: 'Property', value: 'x' } },
      },
      address: { type: 'Property', value: { city: { name: 'y', zip: 2 } } },
      greeting: { type: 'LanguageProperty', languageMap: { en: 'hello', fr: 'salut' } },
      humidity: { type: 'Property', value: 40 },
    })
    expect(result.notUpdated).toEqual([])
  })

  it('accepts members alone if there is an instance to merge them into', () => {
    const result = mergeEntity(
      entity,
      fragment({
        temperature: { observedAt: at(5), accuracy: { unitCode: 'P1' } },
        speed: { type: 'Property', datasetId: 'urn:d', unitCode: 'KMH' },
      }),
    )
    expect(result.entity['temperature']).toEqual({
      ...instance('temperature'),
      observedAt: at(5),
      accuracy: { type: 'Property', value: 0.5, unitCode: 'P1' },
    })
    expect(result.entity['speed']).toEqual([
      { type: 'Property', value: 1 },
      { type: 'Property', value: 2, datasetId: 'urn:d', unitCode: 'KMH' },
    ])
    for (const body of [
      { unknown: { unitCode: 'CEL' } },
      { unknown: { type: 'Property', unitCode: 'CEL' } },
      { temperature: { type: 'Relationship', observedAt: at(5) } },
      { temperature: { note: { unitCode: 'CEL' } } },
      { temperature: {} },
    ]) {
      expect(() => mergeEntity(entity, fragment(body as Record<string, Json>))).toThrow()
    }
  })

  it('replaces an attribute that changes its kind', () => {
    const result = mergeEntity(entity, fragment({ temperature: { object: 'urn:t' } }))
    expect(result.entity['temperature']).toEqual({ type: 'Relationship', object: 'urn:t' })
  })

  it('refreshes observedAt and one language on request', () => {
    const body = fragment({ temperature: { value: 22 }, owner: { object: 'urn:q' }, greeting: 'servus' })
    const merged = mergeEntity(entity, body, { observedAt: at(9), lang: 'de' }).entity
    expect(instance('temperature', merged).observedAt).toBe(at(9))
    expect(instance('owner', merged)).not.toHaveProperty('observedAt')
    expect(instance('greeting', merged)['languageMap']).toEqual({ en: 'hello', de: 'servus' })
    expect(refusal(() => mergeEntity(entity, fragment({ greeting: 5 }), { lang: 'de' }))).toMatch(
      /greeting\.de/,
    )
  })

  it('gives bare values the existing kind', () => {
    const body = fragment(
      { temperature: 22, owner: 'urn:q', location: { type: 'Point', coordinates: [1, 2] } },
      true,
    )
    const merged = mergeEntity(entity, body, { simplified: true }).entity
    expect(merged['owner']).toEqual({ type: 'Relationship', object: 'urn:q' })
    expect(instance('temperature', merged)).toMatchObject({ value: 22, unitCode: 'CEL' })
    for (const wrong of [{ owner: 5 }, { location: 'x' }, { greeting: 'x' }]) {
      expect(refusal(() => mergeEntity(entity, fragment(wrong, true), { simplified: true }))).toMatch(
        /bad-request-data/,
      )
    }
  })

  it('treats __proto__ as an ordinary member', () => {
    const body = fragment({ address: { value: JSON.parse('{"__proto__": {"x": 1}}') as Json } })
    const merged = instance('address', mergeEntity(entity, body).entity)
    expect(JSON.stringify(merged.value)).toBe(
      '{"street":"x","city":{"name":"y","zip":1},"__proto__":{"x":1}}',
    )
    expect((merged.value as { x?: number }).x).toBeUndefined()
  })

  it('of sub-attributes works instance by instance', () => {
    const before = parseEntity(
      { id: 'urn:e', type: 'T', a: { value: 1, b: [{ value: 1 }, { value: 2, datasetId: 'urn:d' }] } },
      coreContext,
    )
    const merge = (b: Json) =>
      instance('a', mergeEntity(before, fragment({ a: { value: 1, b } })).entity)['b']
    expect(merge({ value: 3, datasetId: 'urn:d' })).toMatchObject([{ value: 1 }, { value: 3 }])
    expect(merge({ value: nothing, datasetId: 'urn:d' })).toEqual({ type: 'Property', value: 1 })
    expect(
      merge(
        [nothing, { value: nothing, datasetId: 'urn:d' }].map((item) =>
          item === nothing ? { value: item } : item,
        ),
      ),
    ).toBe(undefined)
  })
})
