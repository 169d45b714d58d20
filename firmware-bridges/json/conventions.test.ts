/** Times that devices state, as far as a clock that was set may have produced them. */
import { expect, it } from 'vitest'
import { plausibleTime } from './conventions.ts'

const place = { zone: undefined, receivedAt: 0 }

it.each([
  ['1970-01-01T00:00:09Z', false],
  ['2000-12-31T23:59:59Z', false],
  ['2001-01-01T00:00:00Z', true],
  ['2026-06-01T12:00:00Z', true],
])('the time %s is believed: %s', (text, isBelieved) => {
  expect(plausibleTime(text, 'iso', place)).toBe(isBelieved ? Date.parse(text) : undefined)
})

it.each([undefined, null, 'yesterday'])('%j is no time', (text) => {
  expect(plausibleTime(text, 'iso', place)).toBeUndefined()
})
