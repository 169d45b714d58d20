/**
 * Commit times: wall-clock times that never decrease. While the clock is behind the last commit time because
 * it was set back, commit times advance slowly with monotonic time. Followers of the change log order changes
 * by commit time, so a constant time would merge everything committed meanwhile into one moment.
 */
import type { Clock } from '#base/time/clock.ts'

export interface CommitTimes {
  /** The time of a commit that begins now, ms. */
  next(): number
  /**
   * Records that the commit with this time is on disk. If it closes its time, later commits get a later time.
   */
  committed(at: number, closesTime?: boolean): void
}

/**
 * While the clock is behind, commit time advances 1 ms per this many ms, so that the clock catches up soon.
 */
const slowdown = 4

/** @param latest the latest commit time on disk, ms */
export function createCommitTimes({ now, monotonic }: Clock, latest: number): CommitTimes {
  let last = latest
  // Makes the first commit time later than everything on disk.
  let lastBegan = monotonic() - slowdown
  let began = lastBegan
  return Object.freeze({
    next() {
      const clockTime = now()
      began = monotonic()
      return clockTime >= last ? clockTime : last + Math.floor((began - lastBegan) / slowdown)
    },
    committed(at, closesTime = false) {
      const reached = closesTime ? at + 1 : at
      if (reached <= last) return
      last = reached
      lastBegan = began
    },
  } satisfies CommitTimes)
}
