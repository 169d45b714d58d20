/**
 * The rate limit of an uplink: the configured average, without delaying live values for history.
 */
import { describe, expect, it } from 'vitest'
import { createRateLimit, type Lane } from './rate-limit.ts'

/** Sends as fast as the limit allows for a number of seconds; returns the rate per second. */
function drain(lane: Lane, size: number, seconds: number): number {
  let now = 0
  const pace = createRateLimit(() => now, { rate: 100 })
  let sent = 0
  while (now < seconds * 1000) {
    const wait = pace.waitMs(lane)
    now += wait
    if (wait > 0) continue
    pace.consume(lane, size, 0)
    sent += size
  }
  return sent / seconds
}

describe('the rate limit of an uplink', () => {
  it.each([
    ['live', 1],
    ['live', 64],
    ['backfill', 250],
  ] as const)('lets the %s lane send what was wished, by %i at a time', (lane, size) => {
    expect(drain(lane, size, 100)).toBeGreaterThan(99)
    expect(drain(lane, size, 100)).toBeLessThan(105)
  })

  it('does not delay live values for history, but history for live values', () => {
    let now = 0
    const pace = createRateLimit(() => now, { bytesPerSecond: 1000 })
    pace.consume('backfill', 0, 60_000)
    expect(pace.waitMs('live')).toBe(0)
    pace.consume('live', 0, 1500)
    expect(pace.waitMs('live')).toBe(501)
    const before = pace.waitMs('backfill')
    now += 1000
    pace.consume('live', 0, 1000)
    expect(pace.waitMs('backfill')).toBe(before)
  })

  it('does not apply unless configured', () => {
    const pace = createRateLimit(() => 0, {})
    pace.consume('live', 1e9, 1e9)
    expect(pace.waitMs('live')).toBe(0)
  })
})
