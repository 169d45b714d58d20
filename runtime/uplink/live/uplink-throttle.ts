/**
 * Throttles an uplink: at most one current value of each entity per period. Values in between are sent as
 * history; the newest one is sent when the period ends. Uses monotonic time.
 */

export interface Throttle {
  /** Whether an entity must wait; if not, it counts as sent now. `at` is the commit time of the value. */
  delays(id: string, at: number): boolean
  /** Entities whose period ended, with the commit time of the first delayed value. They count as sent now. */
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
    // Kept in order of time, so that due entities come first.
    periods.delete(id)
    periods.set(id, { after: monotonic() + seconds * 1000, since: undefined })
  }
  return Object.freeze({
    delays(id, at) {
      const turn = periods.get(id)
      // A delayed value is sent when `due` is called.
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
