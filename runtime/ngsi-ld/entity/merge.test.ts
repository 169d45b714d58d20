/** The effect of each write on an entity: new state, names, changes. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { refusal } from '#test/kit/refusal.ts'
import type { AttributeInstance } from './attribute.ts'
import { type Entity, parseEntity, parseFragment, parsePartial } from './entity.ts'
import { changesBetween } from './entity-draft.ts'
import {
  appendAttributes,
  deleteAttribute,
  fromShape,
  observationOf,
  replaceAttribute,
  replaceEntity,
  shapeOf,
  updateAttributes,
  updatePartially,
} from './merge.ts'

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
const scoped: Entity = frozen({ ...entity, scope: '/a' })
const fragment = (body: Record<string, Json>, simplified = false) =>
  frozen(parseFragment(body, coreContext, { nulls: true, simplified }))
const partial = (body: Record<string, Json>) => frozen(parsePartial(body, 'a', coreContext))
const instance = (name: string, of: Entity = entity): AttributeInstance => of[name] as AttributeInstance

describe('append', () => {
  it('adds missing instances and replaces existing ones', () => {
    const body = fragment({
      humidity: 40,
      speed: { value: 9, datasetId: 'urn:d' },
      owner: { object: 'urn:q' },
    })
    const result = appendAttributes(entity, body, { noOverwrite: false })
    expect(result.entity).toEqual({
      ...entity,
      humidity: { type: 'Property', value: 40 },
      speed: [
        { type: 'Property', value: 1 },
        { type: 'Property', value: 9, datasetId: 'urn:d' },
      ],
      owner: { type: 'Relationship', object: 'urn:q' },
    })
    expect(result.updated).toEqual(['humidity', 'speed', 'owner'])
    expect(result.notUpdated).toEqual([])
    expect(result.changes).toEqual([
      { name: 'humidity', datasetId: undefined, before: undefined, after: { type: 'Property', value: 40 } },
      {
        name: 'speed',
        datasetId: 'urn:d',
        before: { type: 'Property', value: 2, datasetId: 'urn:d' },
        after: { type: 'Property', value: 9, datasetId: 'urn:d' },
      },
      {
        name: 'owner',
        datasetId: undefined,
        before: entity['owner'],
        after: { type: 'Relationship', object: 'urn:q' },
      },
    ])
    expect(result.entity['temperature']).toBe(entity['temperature'])
  })

  it('keeps existing instances with noOverwrite', () => {
    const body = fragment({
      humidity: 40,
      owner: { object: 'urn:q' },
      speed: { value: 3, datasetId: 'urn:new' },
    })
    const result = appendAttributes(entity, body, { noOverwrite: true })
    expect(result.entity['owner']).toBe(entity['owner'])
    expect(result.entity['speed']).toHaveLength(3)
    expect(result.updated).toEqual(['humidity', 'speed'])
    expect(result.notUpdated).toEqual([
      { attributeName: 'owner', reason: expect.stringContaining('noOverwrite') as string },
    ])
  })

  it('adds types and sets scopes', () => {
    const body = fragment({ type: ['Room', 'Hall'], scope: '/b' })
    expect(appendAttributes(scoped, body, { noOverwrite: false }).entity).toEqual({
      ...scoped,
      type: ['Room', 'Hall'],
      scope: '/b',
    })
    expect(appendAttributes(scoped, body, { noOverwrite: true }).entity.scope).toEqual(['/a', '/b'])
    expect(appendAttributes(entity, fragment({ type: 'Room' }), { noOverwrite: false }).entity).toBe(entity)
  })
})

describe('update', () => {
  const body = fragment({
    owner: { object: 'urn:q' },
    humidity: 40,
    speed: { value: 3, datasetId: 'urn:new' },
  })

  it('appends missing attributes in the newer profiles', () => {
    const result = updateAttributes(entity, body, { appendMissing: true })
    expect(result).toEqual(appendAttributes(entity, body, { noOverwrite: false }))
  })

  it('refuses missing attributes in the oldest profile', () => {
    const result = updateAttributes(entity, body, { appendMissing: false })
    expect(result.entity).toEqual({ ...entity, owner: { type: 'Relationship', object: 'urn:q' } })
    expect(result.updated).toEqual(['owner'])
    expect(result.notUpdated.map(({ attributeName }) => attributeName)).toEqual(['humidity', 'speed'])
  })

  it('deletes by NGSI-LD Null, also inside values', () => {
    const result = updateAttributes(
      entity,
      fragment({
        owner: nothing,
        greeting: { languageMap: { '@none': nothing } },
        speed: { value: nothing, datasetId: 'urn:d' },
        address: { value: { city: 'z' }, note: nothing },
        unknown: nothing,
      }),
      { appendMissing: true },
    )
    const { owner: _owner, greeting: _greeting, ...rest } = entity
    expect(result.entity).toEqual({
      ...rest,
      speed: { type: 'Property', value: 1 },
      address: { type: 'Property', value: { city: 'z' } },
    })
    expect(result.notUpdated.map(({ attributeName }) => attributeName)).toEqual(['unknown'])
    expect(result.changes[0]).toEqual({
      name: 'owner',
      datasetId: undefined,
      before: entity['owner'],
      after: undefined,
    })
  })

  it('replaces a scope and never adds one', () => {
    expect(
      updateAttributes(scoped, fragment({ scope: ['/b', '/c'] }), { appendMissing: true }).entity.scope,
    ).toEqual(['/b', '/c'])
    const refused = updateAttributes(entity, fragment({ scope: '/b' }), { appendMissing: true })
    expect(refused.notUpdated).toEqual([{ attributeName: 'scope', reason: expect.any(String) as string }])
    expect(refused.entity).toBe(entity)
  })
})

describe('partial update', () => {
  it('overwrites the given members and keeps the others', () => {
    const result = updatePartially(
      entity,
      'temperature',
      partial({ value: 21, accuracy: 0.1, note: 'x', by: nothing }),
    )
    expect(result.entity['temperature']).toEqual({
      type: 'Property',
      value: 21,
      observedAt: at(0),
      unitCode: 'CEL',
      accuracy: { type: 'Property', value: 0.1 },
      note: { type: 'Property', value: 'x' },
    })
    expect(result.changes).toHaveLength(1)
    expect(
      updatePartially(entity, 'temperature', partial({ unitCode: nothing })).entity['temperature'],
    ).not.toHaveProperty('unitCode')
  })

  it('touches the named instance only, or deletes it', () => {
    const result = updatePartially(entity, 'speed', partial({ value: 5, datasetId: 'urn:d' }))
    expect(result.entity['speed']).toEqual([
      { type: 'Property', value: 1 },
      { type: 'Property', value: 5, datasetId: 'urn:d' },
    ])
    expect(updatePartially(entity, 'speed', partial({ value: nothing })).entity['speed']).toEqual({
      type: 'Property',
      value: 2,
      datasetId: 'urn:d',
    })
  })

  it('keeps the kind', () => {
    expect(refusal(() => updatePartially(entity, 'owner', partial({ value: 1 })))).toMatch(
      /bad-request.*owner\.value/,
    )
    expect(refusal(() => updatePartially(entity, 'owner', partial({ type: 'Property', value: 1 })))).toMatch(
      /owner\.type/,
    )
    expect(refusal(() => updatePartially(entity, 'location', partial({ value: 'x' })))).toMatch(
      /location\.value/,
    )
    expect(
      updatePartially(entity, 'owner', partial({ type: 'Relationship', object: 'urn:q' })).updated,
    ).toEqual(['owner'])
    const text = JSON.stringify({ type: 'Point', coordinates: [1, 2] })
    expect(updatePartially(entity, 'location', partial({ value: text })).entity['location']).toEqual({
      type: 'GeoProperty',
      value: { type: 'Point', coordinates: [1, 2] },
    })
  })

  it('requires an existing instance', () => {
    expect(refusal(() => updatePartially(entity, 'humidity', partial({ value: 1 })))).toMatch(
      /not-found.*humidity/,
    )
    expect(
      refusal(() => updatePartially(entity, 'speed', partial({ value: 1, datasetId: 'urn:x' }))),
    ).toMatch(/urn:x/)
    expect(refusal(() => updatePartially(entity, 'constructor', partial({ value: 1 })))).toMatch(/not-found/)
    expect(refusal(() => updatePartially(scoped, 'scope', partial({ value: 1 })))).toMatch(
      /bad-request-data scope/,
    )
  })
})

describe('replacing an attribute', () => {
  it('requires an existing instance and may change the kind', () => {
    const replaced = replaceAttribute(entity, 'owner', [{ type: 'Property', value: 'nobody' }])
    expect(replaced.entity['owner']).toEqual({ type: 'Property', value: 'nobody' })
    expect(refusal(() => replaceAttribute(entity, 'humidity', [{ type: 'Property', value: 1 }]))).toMatch(
      /not-found/,
    )
    expect(refusal(() => replaceAttribute(entity, 'type', [{ type: 'Property', value: 1 }]))).toMatch(
      /bad-request/,
    )
  })
})

describe('deletion of an attribute', () => {
  it('deletes the default instance, the named one, or all', () => {
    expect(deleteAttribute(entity, 'speed', { deleteAll: false }).entity['speed']).toMatchObject({
      datasetId: 'urn:d',
    })
    expect(
      deleteAttribute(entity, 'speed', { deleteAll: false, datasetId: 'urn:d' }).entity['speed'],
    ).toEqual({
      type: 'Property',
      value: 1,
    })
    const gone = deleteAttribute(entity, 'speed', { deleteAll: true })
    expect(gone.entity).not.toHaveProperty('speed')
    expect(gone.changes).toHaveLength(2)
    expect(gone.updated).toEqual(['speed'])
  })

  it('requires an existing instance, refuses id and type, accepts the scope', () => {
    expect(refusal(() => deleteAttribute(entity, 'humidity', { deleteAll: true }))).toMatch(/not-found/)
    expect(refusal(() => deleteAttribute(entity, 'owner', { deleteAll: false, datasetId: 'urn:x' }))).toMatch(
      /not-found/,
    )
    expect(refusal(() => deleteAttribute(entity, 'type', { deleteAll: false }))).toMatch(
      /bad-request-data type/,
    )
    expect(refusal(() => deleteAttribute(entity, 'scope', { deleteAll: false }))).toMatch(/not-found/)
    expect(deleteAttribute(scoped, 'scope', { deleteAll: false }).entity).toEqual(entity)
  })
})

describe('replacing an entity', () => {
  it('is one change per instance that exists before or after', () => {
    const replacement = parseEntity({ id: 'urn:e', type: 'Hall', speed: 7, humidity: 1 }, coreContext)
    const result = replaceEntity(entity, replacement)
    expect(result.entity).toBe(replacement)
    expect(result.changes.find(({ name }) => name === 'speed')).toMatchObject({
      before: { value: 1 },
      after: { value: 7 },
    })
    expect(result.changes.find(({ datasetId }) => datasetId === 'urn:d')?.after).toBeUndefined()
    expect(new Set(result.updated)).toEqual(
      new Set(['speed', 'humidity', 'temperature', 'owner', 'greeting', 'address', 'location']),
    )
  })

  it('creation and deletion are special cases', () => {
    expect(
      changesBetween(undefined, entity).every(({ before, after }) => before === undefined && after),
    ).toBe(true)
    expect(
      changesBetween(entity, undefined).every(({ before, after }) => before && after === undefined),
    ).toBe(true)
    expect(changesBetween(undefined, entity)).toHaveLength(7)
  })
})

describe('an observation', () => {
  const change = (body: Record<string, Json>) =>
    updatePartially(entity, 'temperature', partial(body)).changes[0]!

  it('is a change of only value and time', () => {
    expect(observationOf(change({ value: 21, observedAt: at(1) }))).toEqual({
      value: 21,
      observedAtMs: Date.UTC(2024, 0, 1, 0, 0, 1),
    })
    expect(observationOf(change({ value: 20 }))).toEqual({ value: 20, observedAtMs: Date.UTC(2024, 0, 1) })
    const moved = updateAttributes(
      entity,
      fragment({ location: { value: { type: 'Point', coordinates: [1, 2] }, observedAt: at(1) } }),
      { appendMissing: false },
    ).changes[0]!
    expect(observationOf(moved)?.value).toEqual({ type: 'Point', coordinates: [1, 2] })
  })

  it.each<[string, Record<string, Json>]>([
    ['unit', { value: 21, observedAt: at(1), unitCode: 'FAH' }],
    ['sub-attribute', { value: 21, observedAt: at(1), accuracy: 1 }],
    ['new sub-attribute', { value: 21, observedAt: at(1), note: 1 }],
    ['lost sub-attribute', { value: 21, observedAt: at(1), by: nothing }],
    ['time finer than milliseconds', { value: 21, observedAt: '2024-01-01T00:00:00.000001Z' }],
    ['lost time', { value: 21, observedAt: nothing }],
    ['deletion', { value: nothing }],
  ])('is not a change of %s', (_, body) => expect(observationOf(change(body))).toBeUndefined())

  it('is not a creation, nor of a kind without value', () => {
    const created = appendAttributes(entity, fragment({ a: { value: 1, observedAt: at(1) } }), {
      noOverwrite: false,
    })
    expect(observationOf(created.changes[0]!)).toBeUndefined()
    const related = appendAttributes(entity, fragment({ owner: { object: 'urn:q', observedAt: at(1) } }), {
      noOverwrite: false,
    })
    expect(observationOf(related.changes[0]!)).toBeUndefined()
  })

  it('and its shape determine the instance', () => {
    const before = instance('temperature')
    expect(shapeOf(before)).toBe(
      '{"accuracy":{"type":"Property","value":0.5},"by":{"object":"urn:s","type":"Relationship"},"type":"Property","unitCode":"CEL"}',
    )
    expect(fromShape(shapeOf(before), 20, Date.UTC(2024, 0, 1))).toEqual(before)
    expect(fromShape('{"type":"Property"}', null)).toEqual({ type: 'Property', value: null })
    expect(Object.keys(fromShape(shapeOf(before), 1, 0)).slice(0, 3)).toEqual(['type', 'value', 'observedAt'])
  })
})
