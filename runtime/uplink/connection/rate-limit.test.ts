/**
 * The pace of an uplink: on average what was wished, with live values not waiting for history.
 */
import { describe, expect, it } from 'vitest'
import { createRateLimit, type Lane } from './rate-limit.ts'

/** Sends as fast as the pace lets it, for so many seconds; returns what went per second. */
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

describe('the pace of an uplink', () => {
  it.each([
    ['live', 1],
    ['live', 64],
    ['backfill', 250],
  ] as const)('lets the %s lane send what was wished, by %i at a time', (lane, size) => {
    expect(drain(lane, size, 100)).toBeGreaterThan(99)
    expect(drain(lane, size, 100)).toBeLessThan(105)
  })

  it('does not make live values wait for the history that went, and makes history wait for them', () => {
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

  it('is none where nothing is wished', () => {
    const pace = createRateLimit(() => 0, {})
    pace.consume('live', 1e9, 1e9)
    expect(pace.waitMs('live')).toBe(0)
  })
})
