/** How a plugin gathers its writes and repeats a failed one. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createWriteLoop } from './write-loop.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A loop whose writes take 10 ms, with results in this order; undefined if the broker accepts the write. */
function begin(results: (string | undefined)[], isResting = true) {
  const begunAt = Date.now()
  const writes: number[] = []
  const failed = vi.fn()
  const loop = createWriteLoop({
    async write() {
      writes.push(Date.now() - begunAt)
      await new Promise((resolve) => setTimeout(resolve, 10))
      return results.shift()
    },
    hasMore: () => results.length > 0,
    failed,
    monotonic: Date.now,
    gatherMs: { value: 50, unit: 'ms' },
    retryMs: { value: 300, unit: 'ms' },
    isResting: () => isResting,
  })
  return { loop, writes, failed }
}

it('writes what came within a short time at once', async () => {
  const { loop, writes } = begin([undefined])
  loop.wake()
  await vi.advanceTimersByTimeAsync(40)
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  expect(writes).toEqual([50])
})

it('rests four times as long as a write took, if more waits', async () => {
  const { loop, writes } = begin([undefined, undefined])
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  expect(writes).toEqual([50, 50 + 10 + 40])
})

it('continues at once if it does not rest', async () => {
  const { loop, writes } = begin([undefined, undefined], false)
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  // A timer takes at least 1 ms.
  expect(writes).toEqual([50, 61])
})

it('repeats a failed write after pauses that double up to a bound, and reports the first failure', async () => {
  const { loop, writes, failed } = begin(['a', 'b', 'c', 'd', undefined])
  loop.wake()
  await vi.advanceTimersByTimeAsync(350)
  expect(loop.failure()).toBe('b')
  await vi.advanceTimersByTimeAsync(5000)
  const pauses = writes.slice(1).map((at, i) => at - writes[i]! - 10)
  expect(pauses).toEqual([100, 200, 300, 300])
  expect(failed.mock.calls).toEqual([['a']])
  expect(loop.failure()).toBeUndefined()
})

it('begins no write once it is closed', async () => {
  const { loop, writes } = begin([undefined])
  loop.wake()
  await loop.close()
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  expect(writes).toEqual([])
})
