/**
 * Commit times go with the clock and never back; a clock that was set back is waited for slowly, not standing still.
 */
import { describe, expect, it } from 'vitest'
import { createCommitTimes } from './commit-times.ts'

/** Commits at a time of the clock and a monotonic time (ms), one after the other. */
function commits(latest: number, moments: readonly (readonly [said: number, monotonic: number])[]): number[] {
  let [said, monotonic] = [0, 0]
  const times = createCommitTimes({ now: () => said, monotonic: () => monotonic }, latest)
  return moments.map((moment) => {
    ;[said, monotonic] = moment
    const at = times.next()
    times.took(at)
    return at
  })
}

describe('times of commits', () => {
  it('are those of the clock', () => {
    const moments = [
      [1000, 5],
      [1000, 5],
      [1007, 12],
      [90_000, 89_005],
    ] as const
    expect(commits(0, moments)).toEqual([1000, 1000, 1007, 90_000])
  })

  it('go on slowly while the clock says less than the last one, until it says more', () => {
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

  it('are after all that is on disk from the first one on, also of one that was not taken', () => {
    expect(commits(10_000, [[4000, 0]])).toEqual([10_001])
    const times = createCommitTimes({ now: () => 4000, monotonic: () => 0 }, 10_000)
    expect([times.next(), times.next()]).toEqual([10_001, 10_001])
  })

  it('are later than one that was closed', () => {
    const times = createCommitTimes({ now: () => 4000, monotonic: () => 0 }, 0)
    times.took(times.next(), true)
    expect(times.next()).toBe(4001)
    times.took(4001)
    expect(times.next()).toBe(4001)
  })
})
