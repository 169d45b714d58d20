/**
 * The number of concurrent requests adapts to what the centre processes without queueing.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createConcurrency } from './concurrency.ts'

const most = limits.uplinkRequestsInFlight.value

/** The limit after a number of requests, each with a round trip and a processing time. */
async function widthAfter(count: number, wayMs: number, eachMs: number): Promise<number> {
  let now = 0
  const breadth = createConcurrency(() => now)
  const started: number[] = []
  let freeAt = 0
  for (let sent = 0; sent < count; ) {
    while (started.length < breadth.limit()) {
      await breadth.acquire()
      started.push(now)
      sent++
    }
    // The centre processes one after the other.
    const at = started.shift()!
    freeAt = Math.max(freeAt, at + wayMs / 2) + eachMs
    now = Math.max(now, freeAt + wayMs / 2)
    breadth.release(now - at)
  }
  return breadth.limit()
}

describe('concurrent requests', () => {
  it('increase over a long round trip, which is not caused by the centre', async () => {
    expect(await widthAfter(200, 600, 1)).toBe(most)
  })

  it('stay few while they queue at the centre', async () => {
    expect(await widthAfter(200, 1, 40)).toBeLessThanOrEqual(3)
  })

  it('wait, and resume when one of them gets a response', async () => {
    const breadth = createConcurrency(() => 0)
    await breadth.acquire()
    let isIn = false
    const second = breadth.acquire().then(() => {
      isIn = true
    })
    await Promise.resolve()
    expect(isIn).toBe(false)
    breadth.release(undefined)
    await second
    expect(isIn).toBe(true)
  })
})
