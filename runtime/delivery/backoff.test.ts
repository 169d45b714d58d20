/** Pauses after failed responses, and the Retry-After header. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs, retryAfterMs } from './backoff.ts'

describe('a pause after a failed response', () => {
  it('doubles, stays below two seconds for two minutes, then grows up to a minute', () => {
    const longest = 0.999999
    expect([1, 2, 3, 4, 50].map((tries) => backoffMs(tries, 0, longest))).toEqual([
      250, 500, 1000, 1500, 1500,
    ])
    expect(backoffMs(100, 120_000, longest)).toBe(1500)
    expect(backoffMs(100, 200_000, longest)).toBe(10_000)
    expect(backoffMs(100, 600_000, longest)).toBe(60_000)
    expect(backoffMs(1e9, 1e12, longest)).toBe(60_000)
  })
  it('has jitter within its upper half', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1 }),
        fc.nat(),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (tries, ms, random) => {
          const most = backoffMs(tries, ms, 1)
          expect(backoffMs(tries, ms, random)).toBeGreaterThanOrEqual(Math.floor(most / 2))
          expect(backoffMs(tries, ms, random)).toBeLessThanOrEqual(most)
        },
      ),
    )
  })
})

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['soon', undefined],
    ['-5', undefined],
    ['0', undefined],
    ['30', 30_000],
    ['999999999999', 3_600_000],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', undefined],
    ['Fri, 01 Jan 2100 00:00:00 GMT', 3_600_000],
  ])('%s means %s ms', (header, ms) => {
    expect(retryAfterMs(header, now)).toBe(ms)
  })
})
