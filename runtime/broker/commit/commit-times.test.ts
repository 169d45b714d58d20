/** Commit times follow the clock and never decrease; after the clock was set back, they advance slowly. */
import { describe, expect, it } from 'vitest'
import { createCommitTimes } from './commit-times.ts'

/** Commit times for consecutive pairs of wall-clock and monotonic times (ms). */
function commits(latest: number, moments: readonly (readonly [said: number, monotonic: number])[]): number[] {
  let said = 0
  let monotonic = 0
  const times = createCommitTimes({ now: () => said, monotonic: () => monotonic }, latest)
  return moments.map((moment) => {
    ;[said, monotonic] = moment
    const at = times.next()
    times.committed(at)
    return at
  })
}

describe('commit times', () => {
  it('follow the clock', () => {
    const moments = [
      [1000, 5],
      [1000, 5],
      [1007, 12],
      [90_000, 89_005],
    ] as const
    expect(commits(0, moments)).toEqual([1000, 1000, 1007, 90_000])
  })

  it('advance slowly while the clock is behind the last one, until it has caught up', () => {
    const moments = [
      [10_000, 0],
      [4000, 8],
      [4002, 10],
      [4004, 12],
      [8000, 4008],
      [10_900, 6908],
      [11_900, 7908],
    ] as const
    expect(commits(0, moments)).toEqual([10_000, 10_002, 10_002, 10_003, 11_002, 11_727, 11_900])
  })

  it('are later than everything on disk from the first one on, also after a failed commit', () => {
    expect(commits(10_000, [[4000, 0]])).toEqual([10_001])
    const times = createCommitTimes({ now: () => 4000, monotonic: () => 0 }, 10_000)
    expect([times.next(), times.next()]).toEqual([10_001, 10_001])
  })

  it('are later than a closed commit time', () => {
    const times = createCommitTimes({ now: () => 4000, monotonic: () => 0 }, 0)
    times.committed(times.next(), true)
    expect(times.next()).toBe(4001)
    times.committed(4001)
    expect(times.next()).toBe(4001)
  })
})
