/** Geo-queries case by case: relations in the plane, distance on the globe, parsing, search boxes. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import {
  boundingBoxOf,
  compileGeometryTest,
  type GeoQuery,
  matchesGeo,
  parseGeoQuery,
  renderGeoQuery,
  searchBoxesOf,
} from './geo-query.ts'

const same = (term: string): string => term
const query = (georel: string, geometry: string, coordinates: Json): GeoQuery =>
  parseGeoQuery({ georel, geometry, coordinates }, same)!

const point = (x: number, y: number): Json => ({ type: 'Point', coordinates: [x, y] })
const square = (x0: number, y0: number, x1: number, y1: number): Json[][] => [
  [
    [x0, y0],
    [x1, y0],
    [x1, y1],
    [x0, y1],
    [x0, y0],
  ],
]
const polygon = (...rings: Json[][]): Json => ({ type: 'Polygon', coordinates: rings })
const line = (...positions: Json[]): Json => ({ type: 'LineString', coordinates: positions })
const ring = (x0: number, y0: number, x1: number, y1: number): Json[] => square(x0, y0, x1, y1)[0]!

const box = polygon(ring(0, 0, 10, 10))
const donut = polygon(ring(0, 0, 10, 10), ring(4, 4, 6, 6))
const islands: Json = { type: 'MultiPolygon', coordinates: [[ring(0, 0, 1, 1)], [ring(5, 5, 6, 6)]] }

describe('planar relations (entity, relation, reference)', () => {
  it.each<[string, Json, string, Json, boolean]>([
    ['point in polygon', point(1, 1), 'within', box, true],
    ['point on the boundary', point(0, 5), 'within', box, true],
    ['point outside', point(11, 5), 'within', box, false],
    ['point in a hole', point(5, 5), 'within', donut, false],
    ['point on the edge of a hole', point(4, 5), 'within', donut, true],
    ['point in a multipolygon', point(5.5, 5.5), 'within', islands, true],
    ['point between islands', point(3, 3), 'within', islands, false],
    ['line in polygon', line([1, 1], [9, 9]), 'within', box, true],
    ['line across a hole', line([1, 1], [9, 9]), 'within', donut, false],
    ['line that leaves', line([1, 1], [11, 1]), 'within', box, false],
    ['polygon in polygon', polygon(ring(1, 1, 3, 3)), 'within', donut, true],
    ['polygon around the hole', polygon(ring(3, 3, 7, 7)), 'within', donut, false],
    ['polygon that is the hole', polygon(ring(4, 4, 6, 6)), 'within', donut, false],
    ['donut in donut', donut, 'within', donut, true],
    [
      'polygon in concave reference',
      polygon(ring(0, 0, 10, 10)),
      'within',
      polygon([
        [0, 0],
        [10, 0],
        [10, 10],
        [5, 5],
        [0, 10],
        [0, 0],
      ]),
      false,
    ],
    ['line along an edge', line([0, 0], [10, 0]), 'within', box, true],
    ['sub-line', line([1, 1], [2, 2]), 'within', line([0, 0], [3, 3]), true],
    ['longer line', line([-1, -1], [2, 2]), 'within', line([0, 0], [3, 3]), false],
    ['point on a line', point(1, 1), 'within', line([0, 0], [3, 3]), true],
    [
      'points in points',
      {
        type: 'MultiPoint',
        coordinates: [
          [1, 1],
          [2, 2],
        ],
      },
      'within',
      {
        type: 'MultiPoint',
        coordinates: [
          [2, 2],
          [1, 1],
          [3, 3],
        ],
      },
      true,
    ],
    ['polygon contains point', box, 'contains', point(1, 1), true],
    ['donut does not contain its hole', donut, 'contains', point(5, 5), false],
    ['polygon contains polygon', box, 'contains', polygon(ring(1, 1, 2, 2)), true],
    ['point contains itself', point(1, 1), 'contains', point(1, 1), true],
    ['crossing lines', line([0, 0], [2, 2]), 'intersects', line([0, 2], [2, 0]), true],
    ['parallel lines', line([0, 0], [2, 2]), 'intersects', line([0, 1], [2, 3]), false],
    ['line through polygon, no vertex inside', line([-1, 5], [11, 5]), 'intersects', box, true],
    ['polygon around the reference', polygon(ring(-5, -5, 20, 20)), 'intersects', box, true],
    ['polygon in a hole', polygon(ring(4.5, 4.5, 5.5, 5.5)), 'intersects', donut, false],
    ['polygons touching at an edge', polygon(ring(10, 0, 20, 10)), 'intersects', box, true],
    ['polygons touching at a corner', polygon(ring(10, 10, 20, 20)), 'intersects', box, true],
    ['far', point(50, 50), 'disjoint', box, true],
    ['near', point(5, 5), 'disjoint', box, false],
    ['same point', point(1, 1), 'equals', point(1, 1), true],
    ['another point', point(1, 1.001), 'equals', point(1, 1), false],
    [
      'same polygon, other start',
      polygon([
        [10, 0],
        [10, 10],
        [0, 10],
        [0, 0],
        [10, 0],
      ]),
      'equals',
      box,
      true,
    ],
    [
      'same line, other way and a vertex more',
      line([0, 0], [1, 1], [3, 3]),
      'equals',
      line([3, 3], [0, 0]),
      true,
    ],
    ['polygon with a hole', donut, 'equals', box, false],
    ['shifted polygon', polygon(ring(5, 5, 15, 15)), 'overlaps', box, true],
    ['inner polygon', polygon(ring(1, 1, 2, 2)), 'overlaps', box, false],
    ['polygon at an edge', polygon(ring(10, 0, 20, 10)), 'overlaps', box, false],
    ['crossing bars', polygon(ring(-1, 4, 11, 6)), 'overlaps', box, true],
    ['line and polygon', line([-1, 5], [11, 5]), 'overlaps', box, false],
    ['shared stretch', line([0, 0], [2, 2]), 'overlaps', line([1, 1], [3, 3]), true],
    ['crossing lines do not overlap', line([0, 0], [2, 2]), 'overlaps', line([0, 2], [2, 0]), false],
    [
      'points in part',
      {
        type: 'MultiPoint',
        coordinates: [
          [1, 1],
          [2, 2],
        ],
      },
      'overlaps',
      {
        type: 'MultiPoint',
        coordinates: [
          [2, 2],
          [3, 3],
        ],
      },
      true,
    ],
    ['no geometry', 'urn:ngsi-ld:null', 'disjoint', box, false],
    ['collection', { type: 'GeometryCollection', geometries: [] }, 'disjoint', box, false],
  ])('%s', (_, geometry, relation, reference, expected) => {
    const { type, coordinates } = reference as { type: string; coordinates: Json }
    expect(compileGeometryTest(query(relation, type, coordinates))(geometry)).toBe(expected)
  })
})

describe('near', () => {
  const murcia = [-1.13, 37.99]

  it('measures on the globe', () => {
    expect(distanceMeters([0, 0], [0, 1])).toBeCloseTo(111_195.08, 1)
    expect(distanceMeters([179.9, 0], [-179.9, 0])).toBeCloseTo(22_239.02, 1)
    expect(distanceMeters([2.3522, 48.8566], [13.405, 52.52])).toBeCloseTo(877_464.6, -3)
    expect(distanceMeters([0, 90], [90, 90])).toBeCloseTo(0, 5)
    expect(distanceMeters([0, 0], [200, 0])).toBe(Number.POSITIVE_INFINITY)
  })

  it.each<[string, string, Json, boolean]>([
    ['inside the radius', 'near;maxDistance==1000', point(-1.13, 37.995), true],
    ['outside the radius', 'near;maxDistance==500', point(-1.13, 37.995), false],
    ['farther than', 'near;minDistance==500', point(-1.13, 37.995), true],
    ['polygon around the hole', 'near;minDistance==1000', point(-1.13, 37.995), false],
    ['polygon around', 'near;maxDistance==1', polygon(ring(-2, 37, 0, 39)), true],
    ['polygon beside', 'near;maxDistance==1000', polygon(ring(-1.125, 37, 0, 39)), true],
    ['polygon farther', 'near;maxDistance==100', polygon(ring(-1.125, 37, 0, 39)), false],
    ['line past it', 'near;maxDistance==600', line([-2, 37.995], [0, 37.995]), true],
  ])('%s', (_, georel, geometry, expected) => {
    expect(compileGeometryTest(query(georel, 'Point', murcia))(geometry)).toBe(expected)
  })

  it('measures distances across the antimeridian', () => {
    const test = compileGeometryTest(query('near;maxDistance==50000', 'Point', [179.9, 0]))
    expect(test(line([-179.9, -1], [-179.9, 1]))).toBe(true)
    expect(test(line([-178, -1], [-178, 1]))).toBe(false)
  })
})

describe('matching entities', () => {
  const entity: Entity = {
    id: 'urn:e',
    type: 'T',
    location: [
      { type: 'GeoProperty', value: { type: 'Point', coordinates: [1, 1] } },
      { type: 'GeoProperty', value: { type: 'Point', coordinates: [50, 50] }, datasetId: 'urn:d' },
    ],
    text: { type: 'Property', value: 'x' },
  }
  const within = (property: string, x: number): GeoQuery => ({
    ...query('within', 'Polygon', square(x, x, x + 2, x + 2)),
    property,
  })

  it('matches any instance, and never without one', () => {
    expect(matchesGeo(within('location', 0), entity)).toBe(true)
    expect(matchesGeo(within('location', 49), entity)).toBe(true)
    expect(matchesGeo(within('location', 20), entity)).toBe(false)
    expect(matchesGeo({ ...query('disjoint', 'Point', [0, 0]), property: 'text' }, entity)).toBe(false)
    expect(matchesGeo({ ...query('disjoint', 'Point', [0, 0]), property: 'none' }, entity)).toBe(false)
  })
})

describe('parsing a geo-query', () => {
  it('accepts texts and arrays', () => {
    const parsed = parseGeoQuery(
      { georel: 'near;maxDistance==2000', geometry: 'Point', coordinates: '[8,40]', geoproperty: 'place' },
      (term) => `x:${term}`,
    )
    expect(parsed).toEqual({
      relation: { kind: 'near', maxDistance: 2000 },
      geometry: { type: 'Point', coordinates: [8, 40] },
      property: 'x:place',
    })
    expect(renderGeoQuery(parsed!, (name) => name.slice(2))).toEqual({
      georel: 'near;maxDistance==2000',
      geometry: 'Point',
      coordinates: [8, 40],
      geoproperty: 'place',
    })
    expect(parseGeoQuery({}, same)).toBeUndefined()
    expect(query('near;minDistance==1.5', 'Point', [8, 40]).relation).toEqual({
      kind: 'near',
      minDistance: 1.5,
    })
    const within = { georel: 'within', geometry: 'Polygon', coordinates: square(0, 0, 1, 1) }
    expect(renderGeoQuery(query('within', 'Polygon', square(0, 0, 1, 1)), same)).toEqual(within)
    const named = { ...within, geoproperty: 'location' }
    expect(renderGeoQuery(parseGeoQuery(named, same)!, same)).toEqual(named)
  })

  it.each<[Parameters<typeof parseGeoQuery>[0], RegExp]>([
    [{ georel: 'within' }, /^geometry: /],
    [{ geometry: 'Point' }, /^georel: /],
    [{ geoproperty: 'location' }, /^georel: /],
    [{ georel: 'within', geometry: 'Polygon' }, /^coordinates: /],
    [{ georel: 'within', geometry: 'Polygon', coordinates: '[[' }, /^coordinates: /],
    [{ georel: 'touches', geometry: 'Point', coordinates: [0, 0] }, /^georel: /],
    [{ georel: 'near', geometry: 'Point', coordinates: [0, 0] }, /^georel: /],
    [{ georel: 'near;maxDistance==0', geometry: 'Point', coordinates: [0, 0] }, /^georel: /],
    [{ georel: 'near;maxDistance==-1', geometry: 'Point', coordinates: [0, 0] }, /^georel: /],
    [{ georel: 'near;maxDistance==5;minDistance==1', geometry: 'Point', coordinates: [0, 0] }, /^georel: /],
    [{ georel: 'near;maxDistance==5', geometry: 'Point', coordinates: [0, 91] }, /^geometry.coordinates: /],
    [{ georel: 'within', geometry: 'Circle', coordinates: [0, 0] }, /^geometry/],
    [
      {
        georel: 'within',
        geometry: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [1, 0],
            [1, 1],
          ],
        ],
      },
      /^geometry/,
    ],
    [{ georel: 'within', geometry: 'Point', coordinates: [0, 0], geoproperty: 7 }, /^geoproperty: /],
  ])('rejects %j', (input, reason) => {
    expect(() => parseGeoQuery(input, same)).toThrow(reason)
  })

  it('bounds the reference geometry', () => {
    const many = Array.from({ length: 1001 }, (_, index) => [index / 100, 0])
    expect(() => query('intersects', 'LineString', many)).toThrow(/more than 1000/)
  })
})

describe('boxes', () => {
  it('bound a geometry', () => {
    expect(boundingBoxOf(islands)).toEqual([0, 0, 6, 6])
    expect(boundingBoxOf('x')).toBeUndefined()
  })

  it('are undefined if matches may lie anywhere', () => {
    expect(searchBoxesOf(query('disjoint', 'Point', [0, 0]))).toBeUndefined()
    expect(searchBoxesOf(query('near;minDistance==1', 'Point', [0, 0]))).toBeUndefined()
    expect(searchBoxesOf(query('near;maxDistance==30000000', 'Point', [0, 0]))).toBeUndefined()
  })

  it('are two at the antimeridian and span all longitudes at a pole', () => {
    expect(searchBoxesOf(query('near;maxDistance==1000', 'Point', [0, 0]))).toHaveLength(1)
    expect(searchBoxesOf(query('near;maxDistance==100000', 'Point', [179.9, 0]))).toHaveLength(2)
    expect(searchBoxesOf(query('near;maxDistance==100000', 'Point', [-179.9, 0]))).toHaveLength(2)
    expect(searchBoxesOf(query('near;maxDistance==100000', 'Point', [10, 89.9]))![0]).toMatchObject(
      [-180, {}, 180, 90].map((x) => (typeof x === 'number' ? x : expect.any(Number))),
    )
  })
})
