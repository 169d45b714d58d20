/** Accepted and rejected GeoJSON geometries. */
import { describe, expect, it } from 'vitest'
import type { Json } from '#contract/pipeline.ts'
import { checkGeometry } from './geometry.ts'

const ring = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 0],
]

describe('a geometry', () => {
  it.each<[string, Json]>([
    ['Point', [8.5, 49.1]],
    ['Point', [8.5, 49.1, 120]],
    ['Point', [-180, 90]],
    ['MultiPoint', [[8.5, 49.1]]],
    ['LineString', ring],
    ['MultiLineString', [ring, ring]],
    ['Polygon', [ring, ring]],
    ['MultiPolygon', [[ring]]],
  ])('may be a %s', (type, coordinates) => {
    const geometry = { type, coordinates }
    expect(checkGeometry(geometry, 'g')).toBe(geometry)
    expect(checkGeometry(JSON.stringify(geometry), 'g')).toEqual(geometry)
  })

  it.each<[string, Json, RegExp]>([
    ['a number', 5, /^g: /],
    ['a text that is not JSON', '{', /^g: /],
    ['a list', [8, 49], /^g: /],
    ['a collection', { type: 'GeometryCollection', geometries: [] }, /^g\.type: .*Point/],
    ['of no type', { coordinates: [8, 49] }, /^g\.type: /],
    ['a feature', { type: 'Feature', geometry: null }, /^g\.type: /],
    ['without coordinates', { type: 'Point' }, /^g\.coordinates: /],
    ['of one number', { type: 'Point', coordinates: [8] }, /^g\.coordinates: .*longitude/],
    ['of five numbers', { type: 'Point', coordinates: [8, 49, 1, 2, 3] }, /^g\.coordinates: /],
    ['too far east', { type: 'Point', coordinates: [180.1, 0] }, /^g\.coordinates: .*±180/],
    [
      'north of the pole',
      {
        type: 'LineString',
        coordinates: [
          [0, 0],
          [0, 91],
        ],
      },
      /^g\.coordinates\[1\]: /,
    ],
    ['of texts', { type: 'Point', coordinates: ['8', '49'] }, /^g\.coordinates: /],
    [
      'of infinite numbers',
      { type: 'Point', coordinates: [8, Number.POSITIVE_INFINITY] },
      /^g\.coordinates: /,
    ],
    ['too flat', { type: 'LineString', coordinates: [8, 49] }, /^g\.coordinates\[0\]: /],
    ['too deep', { type: 'Point', coordinates: [[8, 49]] }, /^g\.coordinates: /],
    [
      'a line of one position',
      { type: 'LineString', coordinates: [[8, 49]] },
      /^g\.coordinates: must have at least 2/,
    ],
    ['without positions', { type: 'MultiPoint', coordinates: [] }, /^g\.coordinates: must have at least 1/],
    [
      'a ring of three',
      { type: 'Polygon', coordinates: [ring.slice(1)] },
      /^g\.coordinates\[0\]: must have at least 4/,
    ],
    [
      'an open ring',
      { type: 'Polygon', coordinates: [[...ring.slice(0, 3), [5, 5]]] },
      /^g\.coordinates\[0\]: .*begins/,
    ],
  ])('may not be %s', (_, geometry, reason) => expect(() => checkGeometry(geometry, 'g')).toThrow(reason))
})
