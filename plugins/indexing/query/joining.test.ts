/** Queries on linked entities, as they are forwarded to other brokers. */
import { expect, it } from 'vitest'
import { joined, unjoined } from './joining.ts'

const forwarded = (query: string): string | undefined => joined(new URLSearchParams(query))?.toString()

it('adds join with the depth that the query reaches', () => {
  expect(forwarded('q=a{b}==1')).toBe('q=a%7Bb%7D%3D%3D1&join=inline&joinLevel=1')
  expect(forwarded('q=a{b{c}}==1')).toMatch(/joinLevel=2$/)
})

it.each([
  'type=A',
  'q=a==1',
  'q=a{b}==1&join=flat',
  'q=a{b}==1&options=keyValues',
  'q=a{b}==1&format=simplified',
])('leaves %s as it is', (query) => expect(forwarded(query)).toBeUndefined())

it('removes the joined entities of Relationships, and no value of a user', () => {
  const value = { object: 'urn:b:1', entity: 'mine' }
  const entity = {
    id: 'urn:a:1',
    one: { type: 'Relationship', object: 'urn:b:1', entity: { id: 'urn:b:1' } },
    many: { type: 'ListRelationship', objectList: [], entityList: [{ id: 'urn:b:1' }] },
    own: { type: 'Property', value },
  }
  expect(unjoined(entity)).toEqual({
    id: 'urn:a:1',
    one: { type: 'Relationship', object: 'urn:b:1' },
    many: { type: 'ListRelationship', objectList: [] },
    own: { type: 'Property', value },
  })
})
