/**
 * The times of commits: those of the clock, and never less than the last. While the clock says less, because it was set back,
 * they go on slowly by monotonic time: whoever follows the changes tells by commit times what came before what, so
 * time that stands still would make one moment of everything that is committed meanwhile.
 */
import type { Clock } from '#base/time/clock.ts'

export interface CommitTimes {
  /** The time of a commit that begins now, ms. */
  next(): number
  /** The commit with this time is on disk; where it closes its time, what follows is later. */
  took(at: number, closesTime?: boolean): void
}

/** Of so many ms one counts while the clock is waited for, so that it catches up soon. */
const pace = 4

/** @param latest the latest commit time on disk, ms */
export function createCommitTimes({ now, monotonic }: Clock, latest: number): CommitTimes {
  let last = latest
  // The first one is after all that is on disk.
  let lastBegan = monotonic() - pace
  let began = lastBegan
  return Object.freeze({
    next() {
      const said = now()
      began = monotonic()
      return said >= last ? said : last + Math.floor((began - lastBegan) / pace)
    },
    took(at, closesTime = false) {
      const reached = closesTime ? at + 1 : at
      if (reached <= last) return
      last = reached
      lastBegan = began
    },
  } satisfies CommitTimes)
}
