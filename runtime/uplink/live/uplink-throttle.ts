/**
 * The throttling of an uplink: of each entity at most one value in so many seconds goes up as what it is now. What comes in
 * between goes up as history, and what is newest goes when its time has come. Only monotonic time counts.
 */

export interface Throttle {
  /** Whether an entity has to wait; one that has not counts as gone now. `at` is the commit time of what waits. */
  delays(id: string, at: number): boolean
  /** Entities whose time has come, with the commit time of the first thing that waited. They count as gone now. */
  due(): readonly (readonly [id: string, since: number])[]
}

interface Period {
  readonly after: number
  since: number | undefined
}

export function createThrottle(monotonic: () => number, seconds: number | undefined): Throttle {
  if (seconds === undefined) return { delays: () => false, due: () => [] }
  const periods = new Map<string, Period>()
  const begin = (id: string): void => {
    // In the order of their times, so that those that are due come first.
    periods.delete(id)
    periods.set(id, { after: monotonic() + seconds * 1000, since: undefined })
  }
  return Object.freeze({
    delays(id, at) {
      const turn = periods.get(id)
      // What waits already goes with it, when it is asked what is due.
      if (turn === undefined || (turn.after <= monotonic() && turn.since === undefined)) {
        begin(id)
        return false
      }
      turn.since ??= at
      return true
    },
    due() {
      const found: (readonly [string, number])[] = []
      for (const [id, { after, since }] of periods) {
        if (after > monotonic()) break
        periods.delete(id)
        if (since !== undefined) found.push([id, since])
      }
      for (const [id] of found) begin(id)
      return found
    },
  } satisfies Throttle)
}
