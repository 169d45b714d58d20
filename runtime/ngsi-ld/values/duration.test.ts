/** Durations as texts and on the calendar. */
import { expect, it } from 'vitest'
import { addDuration, parseDuration } from './duration.ts'

it.each([
  ['PT1H', 0, 3_600_000],
  ['P1D', 0, 86_400_000],
  ['P2W', 0, 14 * 86_400_000],
  ['P1Y2M', 14, 0],
  ['P1DT2H3M4.5S', 0, 86_400_000 + 2 * 3_600_000 + 3 * 60_000 + 4500],
  ['PT0S', 0, 0],
])('%s is %d months and %d ms', (text, months, ms) => {
  expect(parseDuration(text)).toEqual({ months, ms })
})

it.each(['', 'P', 'PT', '1H', 'PT1', 'P1H', 'P-1D', 'P1.5M', 'P1DT', 'PT99999999999H'])(
  '%s is not a duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined()
  },
)

it('months follow the calendar and end at its last day', () => {
  const from = Date.UTC(2024, 0, 31, 12)
  expect(addDuration(from, { months: 1, ms: 0 }, 1)).toBe(Date.UTC(2024, 1, 29, 12))
  expect(addDuration(from, { months: 1, ms: 0 }, 13)).toBe(Date.UTC(2025, 1, 28, 12))
  expect(addDuration(from, { months: 0, ms: 1000 }, 3)).toBe(from + 3000)
})
