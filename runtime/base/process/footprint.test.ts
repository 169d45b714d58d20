/** Estimated footprints grow with the value and are never far too low. */
import { expect, it } from 'vitest'
import { footprintOf } from './footprint.ts'

it('counts texts, members and items', () => {
  expect(footprintOf('x'.repeat(1000))).toBeGreaterThan(2000)
  expect(footprintOf({ a: 'x'.repeat(1000) })).toBeGreaterThan(footprintOf('x'.repeat(1000)))
  expect(footprintOf(Array.from({ length: 100 }, () => 1))).toBe(101 * footprintOf(1))
  expect(footprintOf({ [`${'n'.repeat(500)}`]: null })).toBeGreaterThan(1000)
})

it('accepts any JSON value, and undefined', () => {
  for (const value of [null, undefined, true, 0, '', [], {}]) {
    expect(footprintOf(value)).toBeGreaterThan(0)
    expect(footprintOf(value)).toBeLessThan(64)
  }
})

it('is at least the length of the JSON text', () => {
  const value = { id: 'urn:x:1', list: [1, 2.5, 'three', { four: [true, null] }], text: 'ä'.repeat(50) }
  expect(footprintOf(value)).toBeGreaterThanOrEqual(JSON.stringify(value).length)
})
