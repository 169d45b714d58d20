/** When parts of an entity expire: the earliest instant is found at any position. */
import { expect, it } from 'vitest'
import { coreContext } from '#ngsi-ld/context/context.ts'
import { type Entity, parseEntity, parseFragment } from './entity.ts'
import { firstExpiryOf, isExpired, withoutExpired } from './expiry.ts'
import { appendAttributes, deleteAttribute, updateAttributes } from './merge.ts'

const at = (second: number): string => `2026-01-01T00:00:0${second}Z`
const ms = (second: number): number => Date.UTC(2026, 0, 1, 0, 0, second)
const read = (members: object): Entity => parseEntity({ id: 'urn:e', type: 'T', ...members }, coreContext)

it('is the earliest of the entity and all instances', () => {
  const a = [
    { value: 1, expiresAt: at(5) },
    { value: 1, datasetId: 'urn:d:1', expiresAt: at(3) },
  ]
  expect(firstExpiryOf(read({ b: 1 }))).toBeUndefined()
  expect(firstExpiryOf(read({ a }))).toBe(ms(3))
  expect(firstExpiryOf(read({ a, expiresAt: at(2) }))).toBe(ms(2))
  expect(firstExpiryOf(read({ a: { value: 1, sub: { value: 2, expiresAt: at(1) } } }))).toBeUndefined()
})

it('takes effect at its instant', () => {
  const entity = read({ expiresAt: at(2), a: { value: 1, expiresAt: at(3) }, b: 1 })
  expect([ms(2) - 1, ms(2)].map((now) => isExpired(entity, now))).toEqual([false, true])
  expect(withoutExpired(entity, ms(3) - 1).entity).toBe(entity)
  expect(withoutExpired(entity, ms(3)).entity).not.toHaveProperty('a')
  expect(withoutExpired(entity, ms(3)).entity).toHaveProperty('b')
})

it('is written like a scope: set, kept by noOverwrite, deleted', () => {
  const entity = read({ expiresAt: at(2) })
  const later = parseFragment({ expiresAt: at(4) }, coreContext)
  expect(appendAttributes(entity, later, { noOverwrite: false }).entity.expiresAt).toBe(at(4))
  const kept = appendAttributes(entity, later, { noOverwrite: true })
  expect([kept.entity.expiresAt, kept.notUpdated[0]?.attributeName]).toEqual([at(2), 'expiresAt'])
  expect(updateAttributes(read({}), later, { appendMissing: true }).entity.expiresAt).toBe(at(4))
  expect(deleteAttribute(entity, 'expiresAt', { deleteAll: false }).entity).toEqual(read({}))
})

it.each([7, 'soon', '2026-01-01', null, 'urn:ngsi-ld:null'])('rejects %s', (expiresAt) => {
  expect(() => read({ expiresAt })).toThrow('expiresAt')
  expect(() => read({ a: { value: 1, expiresAt } })).toThrow('expiresAt')
})
