/**
 * Laws of geo-queries: an index that reads only the search boxes misses no match; relations obey the laws of
 * geometry; distance is a metric.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import { type Box, boxesTouch, isBoxWithin } from '#ngsi-ld/geo/figure.ts'
import {
  boundingBoxOf,
  compileBoxTest,
  compileGeometryTest,
  compileNearTest,
  type GeoQuery,
  type GeoRelation,
  searchBoxesOf,
} from '#ngsi-ld/query/geo-query.ts'
import { boxOfCell, cellBlurMeters, cellOf, cellRanges, middleOfCell } from '#store/entities/place-cell.ts'

interface Geometry {
  readonly type: string
  readonly coordinates: Json
}

/** Places that often coincide: a small grid, and the corners of the globe. */
const grid = fc
  .tuple(fc.integer({ min: -2, max: 3 }), fc.integer({ min: -2, max: 3 }))
  .map(([x, y]) => [x, y])
const corners = fc
  .tuple(
    fc.constantFrom(-180, -179.99, -90, 0, 90, 179.99, 180),
    fc.constantFrom(-90, -89.99, -60, 0, 60, 89.99, 90),
  )
  .map(([x, y]) => [x, y])
const anywhere = fc
  .tuple(fc.double({ min: -180, max: 180, noNaN: true }), fc.double({ min: -90, max: 90, noNaN: true }))
  .map(([x, y]) => [x, y])
const position = fc.oneof(
  { weight: 4, arbitrary: grid },
  { weight: 1, arbitrary: corners },
  { weight: 1, arbitrary: anywhere },
)

const box = (x: number, y: number, width: number, height: number): Json[] => [
  [x, y],
  [x + width, y],
  [x + width, y + height],
  [x, y + height],
  [x, y],
]
const size = fc.integer({ min: 1, max: 4 })
const polygon = fc.tuple(grid, size, size, fc.boolean()).map(([[x, y], width, height, hasHole]) => {
  const hole = hasHole && width > 2 && height > 2 ? [box(x! + 1, y! + 1, width - 2, height - 2)] : []
  return [box(x!, y!, width, height), ...hole]
})
const triangle = fc
  .tuple(grid, grid, grid)
  .filter(([a, b, c]) => (b[0]! - a[0]!) * (c[1]! - a[1]!) !== (b[1]! - a[1]!) * (c[0]! - a[0]!))
  .map(([a, b, c]) => [[a, b, c, a]])
const point: fc.Arbitrary<Geometry> = position.map((coordinates) => ({ type: 'Point', coordinates }))
const line = fc.array(position, { minLength: 2, maxLength: 4 })
const geometry: fc.Arbitrary<Geometry> = fc.oneof(
  point,
  fc
    .array(position, { minLength: 1, maxLength: 3 })
    .map((coordinates) => ({ type: 'MultiPoint', coordinates })),
  line.map((coordinates) => ({ type: 'LineString', coordinates })),
  fc
    .array(line, { minLength: 1, maxLength: 2 })
    .map((coordinates) => ({ type: 'MultiLineString', coordinates })),
  fc.oneof(polygon, triangle).map((coordinates) => ({ type: 'Polygon', coordinates: coordinates as Json })),
  fc
    .array(polygon, { minLength: 1, maxLength: 2 })
    .map((coordinates) => ({ type: 'MultiPolygon', coordinates: coordinates as Json })),
)

const meters = fc.oneof(
  fc.constantFrom(0.001, 1, 1000, 111_195, 5e6, 1.9e7, 2.1e7),
  fc.double({ min: 0.1, max: 2e7, noNaN: true }),
)
const relation: fc.Arbitrary<GeoRelation> = fc.oneof(
  { weight: 3, arbitrary: meters.map((maxDistance) => ({ kind: 'near', maxDistance }) as const) },
  { weight: 1, arbitrary: meters.map((minDistance) => ({ kind: 'near', minDistance }) as const) },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('within', 'contains', 'intersects', 'disjoint', 'equals', 'overlaps' as const)
      .map((kind) => ({ kind })),
  },
)

const holds = (reference: Geometry, how: GeoRelation, other: Geometry): boolean =>
  compileGeometryTest({ relation: how, geometry: reference, property: 'location' })(other as unknown as Json)

describe('search boxes', () => {
  it('touch the box of every match', () => {
    fc.assert(
      fc.property(
        geometry,
        relation,
        fc.array(geometry, { minLength: 1, maxLength: 5 }),
        (reference, how, others) => {
          const query: GeoQuery = { relation: how, geometry: reference, property: 'location' }
          const boxes = searchBoxesOf(query)
          for (const other of others) {
            if (boxes === undefined || !holds(reference, how, other)) continue
            const bounding = boundingBoxOf(other as unknown as Json)!
            expect(boxes.some((each) => boxesTouch(each, bounding))).toBe(true)
          }
        },
      ),
      { numRuns: 3000 },
    )
  })

  it('contain points at any requested distance', () => {
    fc.assert(
      fc.property(
        anywhere,
        meters,
        fc.double({ min: 0, max: 2 * Math.PI, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (from, maxDistance, bearing, share) => {
          const [x, y] = from as [number, number]
          const angle = (maxDistance * share) / 6_371_008.8
          const radians = Math.PI / 180
          const latitude = Math.asin(
            Math.sin(y * radians) * Math.cos(angle) +
              Math.cos(y * radians) * Math.sin(angle) * Math.cos(bearing),
          )
          const turn = Math.atan2(
            Math.sin(bearing) * Math.sin(angle) * Math.cos(y * radians),
            Math.cos(angle) - Math.sin(y * radians) * Math.sin(latitude),
          )
          const longitude = ((x + turn / radians + 540) % 360) - 180
          const there = { type: 'Point', coordinates: [longitude, latitude / radians] }
          const query: GeoQuery = {
            relation: { kind: 'near', maxDistance },
            geometry: { type: 'Point', coordinates: [x, y] },
            property: 'location',
          }
          // Near a pole, rounding shifts the distance by a tenth of a metre: the predicate decides.
          fc.pre(compileGeometryTest(query)(there))
          const boxes = searchBoxesOf(query)
          fc.pre(boxes !== undefined)
          expect(boxes!.some((each) => boxesTouch(each, boundingBoxOf(there)!))).toBe(true)
        },
      ),
      { numRuns: 3000 },
    )
  })
})

describe('the box test', () => {
  it('holds for every geometry in the box', () => {
    const boxes = fc.oneof(
      fc.tuple(grid, size, size).map(([[x, y], width, height]): Box => [x!, y!, x! + width, y! + height]),
      fc
        .tuple(anywhere, fc.double({ min: 1e-7, max: 1, noNaN: true }))
        .map(([[x, y], width]): Box => [x!, y!, Math.min(180, x! + width), Math.min(90, y! + width)]),
    )
    const within = fc.array(
      fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
      { minLength: 1, maxLength: 3 },
    )
    fc.assert(
      fc.property(geometry, relation, boxes, within, (reference, how, bounds, shares) => {
        const verdict = compileBoxTest({ relation: how, geometry: reference, property: 'location' })(bounds)
        const positions = shares.map(([x, y]) => [
          bounds[0] + x * (bounds[2] - bounds[0]),
          bounds[1] + y * (bounds[3] - bounds[1]),
        ])
        const other =
          positions.length === 1
            ? { type: 'Point', coordinates: positions[0]! }
            : { type: 'LineString', coordinates: positions }
        if (verdict !== undefined) expect(holds(reference, how, other)).toBe(verdict)
      }),
      { numRuns: 4000 },
    )
  })
})

describe('cells', () => {
  it('contain their positions and are small', () => {
    fc.assert(
      fc.property(fc.oneof(anywhere, corners, grid), (place) => {
        const [x, y] = place as [number, number]
        const bounds = boxOfCell(cellOf(x, y)!)
        expect(boxesTouch(bounds, [x, y, x, y])).toBe(true)
        expect(bounds[2] - bounds[0]).toBeLessThan(6e-6)
        expect(bounds[3] - bounds[1]).toBeLessThan(3e-6)
      }),
      { numRuns: 2000 },
    )
    expect(cellOf(180.1, 0)).toBeUndefined()
    expect(cellOf(0, -91)).toBeUndefined()
    expect(cellOf(Number.NaN, 0)).toBeUndefined()
  })

  it('decide by their middles which of their contents are near', () => {
    const metres = fc.oneof(
      fc.double({ min: 0, max: 5, noNaN: true }),
      fc.double({ min: 0, max: 2.1e7, noNaN: true }),
    )
    fc.assert(
      fc.property(
        fc.oneof(anywhere, corners, grid),
        anywhere,
        metres,
        fc.boolean(),
        (from, other, radius, isAtRim) => {
          const place = isAtRim
            ? from.map((one, i) => Math.max(-90, Math.min(90, one)) + (i === 0 ? 1e-5 : 0))
            : other
          const maxDistance = isAtRim ? Math.max(0, distanceMeters(from, place) + (radius % 3) - 1.5) : radius
          const query: GeoQuery = {
            relation: { kind: 'near', maxDistance },
            geometry: { type: 'Point', coordinates: from },
            property: 'location',
          }
          const [x, y] = place as [number, number]
          const verdict = compileNearTest(query, cellBlurMeters)!(...middleOfCell(cellOf(x, y)!))
          if (verdict !== undefined) expect(distanceMeters(from, place) <= maxDistance).toBe(verdict)
        },
      ),
      { numRuns: 4000 },
    )
    const polygonal: GeoQuery = {
      relation: { kind: 'near', maxDistance: 1 },
      geometry: {
        type: 'LineString',
        coordinates: [
          [0, 0],
          [1, 1],
        ],
      },
      property: 'location',
    }
    expect(compileNearTest(polygonal, cellBlurMeters)).toBeUndefined()
  })

  it('contain every position of a window in their ranges', () => {
    fc.assert(
      fc.property(
        anywhere,
        fc.double({ min: -6, max: 2, noNaN: true }),
        fc.array(
          fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
          { minLength: 1, maxLength: 10 },
        ),
        ([west, south], exponent, shares) => {
          const window: Box = [
            west!,
            south!,
            Math.min(180, west! + 10 ** exponent),
            Math.min(90, south! + 10 ** exponent),
          ]
          const { whole, edge } = cellRanges([window], (each) =>
            !boxesTouch(each, window) ? false : isBoxWithin(each, window) ? true : undefined,
          )
          const ranges = [...whole, ...edge]
          expect(ranges.length).toBeLessThan(200)
          for (const cell of whole.flat()) expect(isBoxWithin(boxOfCell(cell), window)).toBe(true)
          for (const [x, y] of shares) {
            const cell = cellOf(
              window[0] + x * (window[2] - window[0]),
              window[1] + y * (window[3] - window[1]),
            )!
            expect(ranges.some(([first, last]) => first <= cell && cell <= last)).toBe(true)
          }
        },
      ),
      { numRuns: 500 },
    )
    const globe: Box = [-180, -90, 180, 90]
    expect(cellRanges([globe], () => true)).toEqual({ whole: [[0, 2 ** 52 - 1]], edge: [] })
    expect(cellRanges([globe], () => false)).toEqual({ whole: [], edge: [] })
    // Around the antimeridian there are two windows, and no duplicates.
    const both: Box[] = [
      [-180, -1, -179, 1],
      [179, -1, 180, 1],
    ]
    const firsts = cellRanges(both, () => undefined).edge.map(([first]) => first)
    expect(new Set(firsts).size).toBe(firsts.length)
    expect(
      cellRanges(
        [
          [200, 0, 210, 1],
          [-300, 0, -200, 1],
        ],
        () => false,
      ),
    ).toEqual({ whole: [], edge: [] })
  })
})

describe('relations', () => {
  it('obey their laws', () => {
    fc.assert(
      fc.property(geometry, geometry, (a, b) => {
        const is = (
          one: Geometry,
          kind:
            | (GeoRelation & { kind: 'within' })['kind']
            | 'contains'
            | 'intersects'
            | 'disjoint'
            | 'equals'
            | 'overlaps',
          other: Geometry,
        ): boolean => holds(other, { kind }, one)
        expect(is(a, 'intersects', b)).toBe(is(b, 'intersects', a))
        expect(is(a, 'overlaps', b)).toBe(is(b, 'overlaps', a))
        expect(is(a, 'equals', b)).toBe(is(b, 'equals', a))
        expect(is(a, 'disjoint', b)).toBe(!is(a, 'intersects', b))
        expect(is(a, 'within', b)).toBe(is(b, 'contains', a))
        expect(is(a, 'equals', b)).toBe(is(a, 'within', b) && is(b, 'within', a))
        expect(is(a, 'equals', a)).toBe(true)
        if (is(a, 'within', b)) expect(is(a, 'intersects', b)).toBe(true)
        if (is(a, 'overlaps', b)) expect(is(a, 'intersects', b) && !is(a, 'within', b)).toBe(true)
        if (is(a, 'intersects', b)) expect(holds(a, { kind: 'near', maxDistance: 0.001 }, b)).toBe(true)
      }),
      { numRuns: 1500 },
    )
  })

  it('of points and boxes equal those of numbers', () => {
    fc.assert(
      fc.property(grid, grid, size, size, ([px, py], [x, y], width, height) => {
        const square = { type: 'Polygon', coordinates: [box(x!, y!, width, height)] as Json }
        const inside = px! >= x! && px! <= x! + width && py! >= y! && py! <= y! + height
        expect(holds(square, { kind: 'within' }, { type: 'Point', coordinates: [px!, py!] })).toBe(inside)
        expect(holds(square, { kind: 'disjoint' }, { type: 'Point', coordinates: [px!, py!] })).toBe(!inside)
      }),
    )
    fc.assert(
      fc.property(grid, size, size, grid, size, size, ([ax, ay], aw, ah, [bx, by], bw, bh) => {
        const a = { type: 'Polygon', coordinates: [box(ax!, ay!, aw, ah)] as Json }
        const b = { type: 'Polygon', coordinates: [box(bx!, by!, bw, bh)] as Json }
        const meet = ax! <= bx! + bw && bx! <= ax! + aw && ay! <= by! + bh && by! <= ay! + ah
        const within = ax! >= bx! && ax! + aw <= bx! + bw && ay! >= by! && ay! + ah <= by! + bh
        const around = bx! >= ax! && bx! + bw <= ax! + aw && by! >= ay! && by! + bh <= ay! + ah
        const share = ax! < bx! + bw && bx! < ax! + aw && ay! < by! + bh && by! < ay! + ah
        expect(holds(b, { kind: 'intersects' }, a)).toBe(meet)
        expect(holds(b, { kind: 'within' }, a)).toBe(within)
        expect(holds(b, { kind: 'overlaps' }, a)).toBe(share && !within && !around)
      }),
      { numRuns: 500 },
    )
  })
})

describe('distance', () => {
  it('is symmetric, and obeys the triangle inequality', () => {
    fc.assert(
      fc.property(anywhere, anywhere, anywhere, (a, b, c) => {
        expect(distanceMeters(a, b)).toBeCloseTo(distanceMeters(b, a), 5)
        expect(distanceMeters(a, a)).toBe(0)
        expect(distanceMeters(a, c)).toBeLessThanOrEqual(distanceMeters(a, b) + distanceMeters(b, c) + 1)
      }),
    )
  })
})
