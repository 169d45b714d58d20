/** The neighbours of a place: all within the radius, the nearest first, on any part of the globe. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { createNeighbours, type Place } from './neighbours.ts'

const radius = 20_000

describe('neighbours', () => {
  it('are those of the same label within the radius, also across the date line and near a pole', () => {
    const spread = fc.double({ min: -0.4, max: 0.4, noNaN: true })
    fc.assert(
      fc.property(
        fc.constantFrom<Place>([10, 56], [180, 0], [-180, -40], [0, 0], [25, 89.9], [-100, -89.95]),
        fc.array(fc.tuple(spread, spread), { minLength: 2, maxLength: 9 }),
        ([longitude, latitude], offsets) => {
          const places = offsets.map(([x, y]): Place => {
            const east = longitude + x / Math.max(0.01, Math.cos((latitude * Math.PI) / 180))
            return [((east + 540) % 360) - 180, Math.max(-90, Math.min(90, latitude + y))]
          })
          const found = createNeighbours<number>(radius, () => true)
          for (const [i, place] of places.entries()) found.put(i, i === 0 ? 'other' : 'temperature', place)
          for (const [i, place] of places.entries()) {
            const expected = places.flatMap((at, other) =>
              other !== i && other > 0 && i > 0 && distanceMeters(place, at) <= radius ? [other] : [],
            )
            expect(new Set(found.of(i))).toEqual(new Set(expected))
          }
        },
      ),
    )
  })

  it('are at most 8, the nearest first', () => {
    const found = createNeighbours<number>(radius, () => true)
    for (let i = 0; i < 100; i++) found.put(i, 'temperature', [10 + i / 1000, 56])
    expect(found.of(0)).toEqual(Array.from({ length: limits.pluginNeighboursMax.value }, (_, i) => i + 1))
  })

  it('change when members come, move, become active and go', () => {
    const active = new Set(['a', 'b', 'c'])
    const found = createNeighbours<string>(radius, (member) => active.has(member))
    found.put('a', 'temperature', [10, 56])
    found.put('b', 'temperature', [10.01, 56])
    expect(found.of('a')).toEqual(['b'])
    found.put('b', 'temperature', [30, 56])
    expect(found.of('a')).toEqual([])
    found.put('d', 'temperature', [10.02, 56])
    expect(found.of('a')).toEqual([])
    active.add('d')
    expect(found.of('a')).toEqual(['d'])
    found.delete('d')
    expect(found.of('a')).toEqual([])
    expect(found.of('unknown')).toEqual([])
  })

  it('are not searched by all when one member comes, and a nearer one is found within 24 requests', () => {
    const counted = { looks: 0 }
    const found = createNeighbours<number>(radius, () => {
      counted.looks++
      return true
    })
    const count = 200
    for (let i = 1; i <= count; i++) found.put(i, 'temperature', [10 + i / 1000, 56])
    for (let i = 1; i <= count; i++) found.of(i)
    counted.looks = 0
    found.put(0, 'temperature', [10.0015, 56])
    for (let i = 1; i <= count; i++) found.of(i)
    expect(counted.looks).toBeLessThan((count * count) / 4)
    for (let request = 0; request < 24; request++) found.of(1)
    expect(found.of(1)[0]).toBe(0)
  })
})
