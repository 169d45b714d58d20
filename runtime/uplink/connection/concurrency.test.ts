/**
 * As many requests under way as the other side answers without a line, and no more.
 */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { createConcurrency } from './concurrency.ts'

const most = limits.uplinkRequestsInFlight.value

/** The width after so many requests, each answered after what a way and those beside it take. */
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
    // One after the other over there.
    const at = started.shift()!
    freeAt = Math.max(freeAt, at + wayMs / 2) + eachMs
    now = Math.max(now, freeAt + wayMs / 2)
    breadth.release(now - at)
  }
  return breadth.limit()
}

describe('requests under way', () => {
  it('become more over a long way, which is not the fault of the other side', async () => {
    expect(await widthAfter(200, 600, 1)).toBe(most)
  })

  it('stay few where they stand in line over there', async () => {
    expect(await widthAfter(200, 1, 40)).toBeLessThanOrEqual(3)
  })

  it('wait, and go when one of them is answered', async () => {
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
