/** The forms in which brokers and clients send entities. */
import { afterEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { itemsOf, listIn, nonEmpty, notifiedItems } from './broker-messages.ts'

afterEach(restoreLimits)

const entity = { id: 'urn:a:1', type: 'A' }

describe('a body', () => {
  it.each<readonly [string, Json, readonly Json[] | undefined]>([
    ['a notification', { id: 'urn:n:1', type: 'Notification', data: [entity] }, [entity]],
    ['a notification of one object', { type: 'Notification', data: entity }, [entity]],
    ['a list', [entity], [entity]],
    ['a bare entity', entity, [entity]],
    ['a notification without data', { id: 'urn:n:1', type: 'Notification' }, undefined],
    ['GeoJSON features', { type: 'Notification', data: { features: [entity] } }, undefined],
    ['a text', 'x', undefined],
  ])('that is %s has its entities', (_, body, expected) => expect(notifiedItems(body)).toEqual(expected))

  it('may have a number of entities', () => {
    setLimit('clientItemsMax', 2)
    expect(notifiedItems([entity, entity])).toHaveLength(2)
    expect(() => notifiedItems([entity, entity, entity])).toThrow('has 3 entities, at most 2 are taken')
  })
})

describe('items', () => {
  it('are entities, deletions, and reasons of those that cannot be read', () => {
    const items = itemsOf([entity, { ...entity, deletedAt: '2026-06-01T00:00:00Z' }, { id: 'x' }], 0)
    expect(items.entities.map(({ id }) => id)).toEqual(['urn:a:1'])
    expect(items.deleted).toEqual(['urn:a:1'])
    expect(items.unreadable).toHaveLength(1)
  })

  it('are rejected with the first reason if there is nothing to apply', () => {
    expect(() => nonEmpty({ entities: [], deleted: [], unreadable: ['no type'] })).toThrow('no type')
    expect(() => nonEmpty({ entities: [], deleted: [], unreadable: [] })).toThrow('has no entity')
    const deletion = { entities: [], deleted: ['urn:a:1'], unreadable: [] }
    expect(nonEmpty(deletion)).toBe(deletion)
  })
})

it.each([
  ['[{"id":"a"}]', [{ id: 'a' }]],
  ['[1]', undefined],
  ['{}', undefined],
  ['<html>', undefined],
])('the response %s is the list %j', (text, expected) => expect(listIn(text)).toEqual(expected))

const entityOf = (id: string, attributes: number) => ({
  id,
  type: 'T',
  ...Object.fromEntries(
    Array.from({ length: attributes }, (_, i) => [`a${i}`, { type: 'Property', value: i }]),
  ),
})

it('leaves out an entity with too many members, and reads the others', () => {
  const most = limits.clientMembersMax.value
  const items = [entityOf('urn:large', 60_000), entityOf('urn:full', most - 2)]
  const { entities, unreadable } = itemsOf(items, 0)
  expect(entities.map(({ id }) => id)).toEqual(['urn:full'])
  expect(unreadable).toEqual([`an entity has 60002 members, at most ${most} are read`])
})
