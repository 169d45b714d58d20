/** The probe interval of an unreachable host. */
import { describe, expect, it } from 'vitest'
import { probeIntervalMs } from './breaker.ts'

describe('the time between two probes', () => {
  it('is a second for ten minutes, then grows to thirty seconds', () => {
    expect([0, 1000, 599_999].map(probeIntervalMs)).toEqual([1000, 1000, 1000])
    const intervals: number[] = []
    for (let down = 600_000; intervals.length < 6; down += intervals.at(-1) ?? 0)
      intervals.push(probeIntervalMs(down))
    expect(intervals).toEqual([2000, 4000, 8000, 16_000, 30_000, 30_000])
  })
})
