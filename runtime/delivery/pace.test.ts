/** How failures of a pair or of the endpoint change its pace. The test advances the clock. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { Pace } from './pace.ts'
import { DeliveryQueue, type Flight } from './queue.ts'
import type { Failure } from './verdict.ts'

/** A clock that the test advances, and an endpoint with one pair per letter. */
function scene() {
  let now = 1000
  const pace = new Pace({
    clock: { now: () => 5_000_000 + now, monotonic: () => now },
    random: () => 1,
  })
  const queue = new DeliveryQueue()
  let d = 0
  return {
    pace,
    wait: (ms: number) => {
      now += ms
    },
    now: () => now,
    start(entity: string): Flight {
      const row = { endpoint: '', at: 0, batch: null, stream: null, t: null, value: null, body: null }
      queue.add({ ...row, d: ++d, sub: 1, entity })
      return queue.take(now)!
    },
  }
}
const failure = (status: number, retryAfterMs?: number): Failure => ({
  ok: false,
  kind: 'status',
  reason: '',
  status,
  retryAfterMs,
})

describe('the pace of an endpoint', () => {
  it('drops to one request at a time after the first failure, and pauses', () => {
    const { pace, start, wait, now } = scene()
    expect(pace.width()).toBe(limits.deliveriesInFlightMax.value)
    const flight = start('a')
    wait(10)
    expect(pace.failed(flight, failure(500))).toBeUndefined()
    expect(pace.width()).toBe(1)
    expect(pace.pausedUntil()).toBe(now() + 250)
    expect(pace.failingSince()).toBe(5_000_000 + now())
  })
  it('counts requests that failed together as one failure', () => {
    const { pace, start, wait } = scene()
    const flights = ['a', 'b', 'c'].map(start)
    wait(10)
    for (const flight of flights) pace.failed(flight, failure(500))
    expect(pace.failures()).toBe(1)
  })
  it('has longer pauses with each consecutive failure, and full concurrency after a success', () => {
    const { pace, start, wait, now } = scene()
    const pauses = ['a', 'b', 'c', 'd', 'e'].map((entity) => {
      wait(2000)
      pace.failed(start(entity), failure(503))
      return pace.pausedUntil() - now()
    })
    expect(pauses).toEqual([250, 500, 1000, 1500, 1500])
    wait(2000)
    pace.succeeded()
    expect(pace.width()).toBe(limits.deliveriesInFlightMax.value)
    expect(pace.failingSince()).toBeUndefined()
  })
  it('is not affected by a pair that fails while others succeed', () => {
    const { pace, start, wait, now } = scene()
    const flight = start('a')
    wait(5)
    pace.succeeded()
    wait(5)
    expect(pace.failed(flight, failure(500))).toBe(now() + 250)
    expect(pace.width()).toBe(limits.deliveriesInFlightMax.value)
    expect(pace.pausedUntil()).toBeLessThanOrEqual(now())
  })
  it('is not affected by a response that rejects the delivery itself', () => {
    const { pace, start, now } = scene()
    expect(pace.failed(start('a'), failure(400))).toBe(now() + 250)
    expect(pace.width()).toBe(limits.deliveriesInFlightMax.value)
  })
  it('obeys Retry-After for the whole endpoint even if others succeed, up to a limit', () => {
    const { pace, start, wait, now } = scene()
    const flight = start('a')
    wait(5)
    pace.succeeded()
    wait(5)
    expect(pace.failed(flight, failure(429, 30_000))).toBeUndefined()
    expect(pace.pausedUntil()).toBe(now() + 30_000)
    pace.hold(1e12)
    expect(pace.pausedUntil()).toBe(now() + 3_600_000)
  })
})
