/** Groups of streams by place: which streams belong together. */
import { describe, expect, it } from 'vitest'
import { groupsOf, type PlacedStream, parseSpatial } from './spatial.ts'

const stream = (
  id: string,
  property: string,
  place?: readonly [number, number],
  platform?: string,
): PlacedStream => ({ id, properties: [property], place, platform })
const groups = (
  spatial: object | undefined,
  properties: readonly string[],
  streams: readonly PlacedStream[],
) => groupsOf(parseSpatial(spatial as never), properties, streams, async () => undefined)

/** A closed ring around a place with so many corners. */
const ring = (corners: number): number[][] =>
  Array.from({ length: corners + 1 }, (_, i) => {
    const angle = (2 * Math.PI * (i % corners)) / corners
    return [10 + Math.cos(angle) / 10, 56 + Math.sin(angle) / 10]
  })

const [here, near, far] = [
  [10, 56],
  [10.001, 56],
  [10.1, 56],
] as const

describe('groups of streams', () => {
  it('have one stream per property at the same location, in the order of the properties', async () => {
    const streams = [
      stream('1', 'q', here),
      stream('2', 'p', here),
      stream('3', 'p', near),
      stream('4', 'r', here),
    ]
    expect(await groups(undefined, ['p', 'q'], streams)).toEqual([['2', '1']])
    expect(await groups({ sameLocation: true }, ['p', 'q', 's'], streams)).toEqual([])
  })

  it('treat positions that differ by rounding as one location', async () => {
    const streams = [stream('1', 'p', [10.0000000001, 56]), stream('2', 'q', [9.9999999999, 56])]
    expect(await groups(undefined, ['p', 'q'], streams)).toEqual([['1', '2']])
    const apart = [stream('1', 'p', [10, 56]), stream('2', 'q', [10.00001, 56])]
    expect(await groups(undefined, ['p', 'q'], apart)).toEqual([])
  })

  it('have each of several streams of a property', async () => {
    const streams = [stream('1', 'p', here), stream('2', 'p', here), stream('3', 'q', here)]
    expect(await groups(undefined, ['p', 'q'], streams)).toEqual([
      ['1', '3'],
      ['2', '3'],
    ])
  })

  it('have as many streams of a property as the model names it', async () => {
    const streams = ['4', '2', '3', '1'].map((id) => stream(id, 'p', here))
    expect(await groups(undefined, ['p', 'p'], streams)).toEqual([
      ['1', '2'],
      ['3', '4'],
    ])
    expect(await groups(undefined, ['p', 'p', 'p', 'p', 'p'], streams)).toEqual([])
  })

  it('share a platform, wherever it is', async () => {
    const streams = [stream('1', 'p', here, 'x'), stream('2', 'q', far, 'x'), stream('3', 'q', here, 'y')]
    expect(await groups({ samePlatform: true }, ['p', 'q'], streams)).toEqual([['1', '2']])
  })

  it('lie within an area', async () => {
    const area = {
      type: 'Polygon',
      coordinates: [
        [
          [9.99, 55.99],
          [10.01, 55.99],
          [10.01, 56.01],
          [9.99, 56.01],
          [9.99, 55.99],
        ],
      ],
    }
    const streams = [stream('1', 'p', here), stream('2', 'q', near), stream('3', 'q', far), stream('0', 'q')]
    expect(await groups({ area }, ['p', 'q'], streams)).toEqual([['1', '2']])
  })

  it('have the nearest streams within a radius of each stream of the first property', async () => {
    const streams = [
      stream('1', 'p', here),
      stream('2', 'q', near),
      stream('3', 'q', [10.002, 56]),
      stream('4', 'p', far),
    ]
    expect(await groups({ radius: 500 }, ['p', 'q'], streams)).toEqual([['1', '2']])
    expect(await groups({ radius: 50 }, ['p', 'q'], streams)).toEqual([])
    expect(await groups({ radius: 10_000 }, ['p', 'q'], streams)).toEqual([
      ['1', '2'],
      ['4', '3'],
    ])
  })
})

describe('the spatial part of a model', () => {
  it.each([
    [5, /^spatial: must be/],
    [{}, /^spatial: must be/],
    [{ sameLocation: false }, /^spatial: must be/],
    [{ sameLocation: true, radius: 5 }, /^spatial: must be/],
    [{ radius: 0 }, /^spatial\.radius: must be a number of metres/],
    [{ area: { type: 'Point', coordinates: [1, 2] } }, /^spatial\.area: must be a Polygon/],
    [{ area: { type: 'Polygon', coordinates: [ring(20_000)] } }, /^spatial\.area: has 20001 points/],
    [{ area: { type: 'Circle' } }, /^spatial\.area\.type/],
  ])('rejects %j', (json, message) => {
    expect(() => parseSpatial(json as never)).toThrow(message)
  })
})
