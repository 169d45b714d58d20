/** Entity maps expire, and their number and size are bounded. */
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createEntityMaps } from './entity-maps.ts'

const originsOf = (size: number) => new Map(Array.from({ length: size }, (_, i) => [`urn:e:${i}`, ['@none']]))
const setUp = () => {
  let now = 0
  const maps = createEntityMaps({ now: () => now, monotonic: () => now })
  const make = (size: number, lifetimeMs = 1000) =>
    maps.create('', { origins: originsOf(size), linked: new Map() }, lifetimeMs).id
  return { maps, make, pass: (ms: number) => (now += ms) }
}

it('expires after its lifetime, unless it was extended', () => {
  const { maps, make, pass } = setUp()
  const [one, other] = [make(1), make(1)]
  maps.extend('', other, 2000)
  pass(1000)
  expect([maps.get('', one), maps.get('', other)?.id]).toEqual([undefined, other])
  expect(maps.extend('', one, 3000)).toBe(false)
})

it('is visible only in its tenant', () => {
  const { maps, make } = setUp()
  const id = make(1)
  expect([maps.get('other', id), maps.delete('other', id), maps.delete('', id)]).toEqual([
    undefined,
    false,
    true,
  ])
})

it('evicts the oldest map when the limit of maps is reached', () => {
  const { maps, make } = setUp()
  const ids = Array.from({ length: limits.entityMapsMax.value + 1 }, () => make(1))
  expect(ids.map((id) => maps.get('', id) === undefined).indexOf(false)).toBe(1)
})

it('evicts the oldest maps when the limit of entities is reached', () => {
  const { maps, make } = setUp()
  const each = limits.entityMapsIdsMax.value / 10
  const ids = Array.from({ length: 10 }, () => make(each))
  expect(maps.get('', ids[0]!)?.id).toBe(ids[0])
  maps.delete('', ids[5]!)
  make(each)
  expect(maps.get('', ids[0]!)?.id).toBe(ids[0])
  make(1)
  expect(maps.get('', ids[0]!)).toBeUndefined()
  expect(maps.get('', ids[1]!)?.id).toBe(ids[1])
})
