/** Tables 4.3.6.8 of the standard, row by row. */
import { describe, expect, it } from 'vitest'
import { createCoreContext } from '#ngsi-ld/context/context.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { notificationItems } from '#ngsi-ld/subscription/notification-data.ts'
import { parseSubscription } from '#ngsi-ld/subscription/subscription-parse.ts'
import { createAmendment, minorOf, preferredMinor } from './conformance.ts'

const context = createCoreContext('1.9')
const { compact } = context
const entity: Entity = {
  id: 'urn:e:1',
  type: ['Room', 'Office'],
  scope: '/a',
  expiresAt: '2090-01-01T00:00:00Z',
  name: { type: 'LanguageProperty', languageMap: { en: 'one' } },
  raw: { type: 'JsonProperty', json: { a: [1] }, unitCode: 'C62' },
  kind: { type: 'VocabProperty', vocab: ['Hot', 'Cold'] },
  list: { type: 'ListProperty', valueList: [1, 2] },
  near: { type: 'ListRelationship', objectList: [{ object: 'urn:e:2' }], objectType: 'Room' },
  level: [
    { type: 'Property', value: 1, datasetId: 'urn:d:1' },
    {
      type: 'Property',
      value: 2,
      valueType: 'Integer',
      accuracy: { type: 'JsonProperty', json: 0.5, expiresAt: '2090-01-01T00:00:00Z' },
    },
  ],
}

describe('an entity as version', () => {
  it('1.9 is the entity itself', () => {
    const amendment = createAmendment(9)
    expect(amendment.entity(entity, compact)).toBe(entity)
    expect([amendment.isAltered(), amendment.version]).toEqual([false, '1.9'])
  })

  it('1.8 has all kinds, but no expiry', () => {
    const { expiresAt: _, level, ...others } = entity
    const amendment = createAmendment(8)
    expect(amendment.entity(entity, compact)).toEqual({
      ...others,
      level: [
        (level as unknown[])[0],
        { type: 'Property', value: 2, accuracy: { type: 'JsonProperty', json: 0.5 } },
      ],
    })
    expect(amendment.isAltered()).toBe(true)
  })

  it('1.6 has values, languages and targets', () => {
    expect(createAmendment(6).entity(entity, compact)).toEqual({
      id: 'urn:e:1',
      type: ['Room', 'Office'],
      scope: '/a',
      name: entity['name'],
      raw: { type: 'Property', value: { a: [1] }, unitCode: 'C62' },
      kind: { type: 'Property', value: ['Hot', 'Cold'] },
      list: { type: 'Property', value: [1, 2] },
      near: { type: 'Relationship', object: ['urn:e:2'] },
      level: [
        { type: 'Property', value: 1, datasetId: 'urn:d:1' },
        { type: 'Property', value: 2, accuracy: { type: 'Property', value: 0.5 } },
      ],
    })
  })

  it('1.1 has one type and one instance of each attribute, preferably the default one', () => {
    const amended = createAmendment(1).entity(entity, compact)
    expect(amended).toMatchObject({ type: 'Room', name: { type: 'Property', value: { en: 'one' } } })
    expect(amended).not.toHaveProperty('scope')
    expect(amended['raw']).toEqual({ type: 'Property', value: { a: [1] } })
    expect(amended['level']).toEqual({
      type: 'Property',
      value: 2,
      accuracy: { type: 'Property', value: 0.5 },
    })
  })

  it('is the same object if it needs no amendment', () => {
    const old: Entity = { id: 'urn:e:1', type: 'Room', level: { type: 'Property', value: 1 } }
    const amendment = createAmendment(0)
    expect(amendment.entity(old, compact)).toBe(old)
    expect(amendment.isAltered()).toBe(false)
  })
})

it.each([
  ['1.6', 6],
  ['1.6.1', 6],
  ['1.12', 9],
  ['2.0', 9],
  ['0.9', undefined],
  ['1', undefined],
  ['new', undefined],
])('%s is a version with minor number %s', (text, minor) => expect(minorOf(text)).toBe(minor))

it.each([
  ['ngsi-ld=1.6', 6],
  ['body=json, ngsi-ld="1.3"; wait=10', 3],
  ['my-ngsi-ld=1.3', undefined],
  ['ngsi-ld=now', undefined],
  ['body=json', undefined],
])('Prefer: %s requests %s', (prefer, minor) => expect(preferredMinor(prefer)).toBe(minor))

describe('a notification', () => {
  const told = (more: object, endpoint: object = {}) => {
    const json = {
      type: 'Subscription',
      entities: [{ type: 'Room' }],
      notification: { endpoint: { uri: 'http://x.example', ...endpoint }, showChanges: true },
      ...more,
    }
    const subscription = parseSubscription(json, { context, nowMs: 0, newId: () => 'urn:s:1' })
    const change = {
      entity: { id: 'urn:e:1', type: 'Room', kind: { type: 'VocabProperty', vocab: 'Hot' } },
      times: { created: 0, modified: 0, attributes: {} },
      changes: [{ name: 'kind', before: { type: 'VocabProperty', vocab: 'Cold' }, isDeleted: false }],
      at: 0,
    }
    return notificationItems(subscription, change, { context, follow: () => undefined })[0]!['kind']
  }

  it('conforms to the version of its subscription, or else to that of the Prefer header', () => {
    const old = { type: 'Property', value: 'Hot', previousValue: 'Cold' }
    const prefers = (value: string) => ({ receiverInfo: [{ key: 'Prefer', value }] })
    expect(told({ ngsildConformance: '1.7' })).toEqual(old)
    expect(told({}, prefers('ngsi-ld=1.7'))).toEqual(old)
    expect(told({ ngsildConformance: '1.8' }, prefers('ngsi-ld=1.7'))).toHaveProperty('vocab')
    expect(told({})).toEqual({ type: 'VocabProperty', vocab: 'Hot', previousVocab: 'Cold' })
  })

  it('ignores an invalid version', () => {
    expect(() => told({ ngsildConformance: 'new' })).toThrow(/ngsildConformance/)
  })
})
