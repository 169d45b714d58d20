/**
 * Local times of a time zone: an IANA name such as Europe/Vienna, or a fixed offset such as +02:00. Where the clock is set
 * forward, a time in the missing hour is read by the offset before it. Where it is set back, an hour comes twice: of the
 * two instants the one nearer to the reception counts.
 */

export interface TimeZone {
  /** The instant of a local time, both in ms; the local time as if it were UTC. Total. */
  instantOf(local: number, receivedAt: number): number
}

const fixed = /^([+-])(\d{2}):?(\d{2})$/
const dayMs = 86_400_000
/** Years that a calendar with summer time is asked for; outside, the offset does not matter. */
const earliest = Date.UTC(1900, 0, 1)
const latest = Date.UTC(2200, 0, 1)

/** @returns undefined where the text names no zone */
export function parseTimeZone(text: string): TimeZone | undefined {
  const [, sign, hours, minutes] = fixed.exec(text) ?? []
  if (sign !== undefined) {
    const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
    if (Number(hours) > 14 || Number(minutes) > 59) return undefined
    return { instantOf: (local) => local - (sign === '-' ? -offset : offset) }
  }
  const clock = wallClock(text)
  return clock && { instantOf: (local, receivedAt) => instantIn(clock, local, receivedAt) }
}

/** What clocks of the zone show at an instant, as if it were UTC. */
function wallClock(zone: string): ((instant: number) => number) | undefined {
  let format: Intl.DateTimeFormat
  try {
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric' } as const
    const rest = { minute: 'numeric', second: 'numeric', hourCycle: 'h23', timeZone: zone } as const
    format = new Intl.DateTimeFormat('en-US', { ...numeric, ...rest })
  } catch {
    return undefined
  }
  return (instant) => {
    const at: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(instant)) at[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = at
    return Date.UTC(year, month - 1, day, hour, minute, second)
  }
}

function instantIn(clock: (instant: number) => number, local: number, receivedAt: number): number {
  const near = Math.min(Math.max(local, earliest), latest)
  const second = Math.floor(near / 1000) * 1000
  const [before, after] = [second - dayMs, second + dayMs].map((instant) => clock(instant) - instant)
  const isShown = (offset: number): boolean => clock(second - offset) === second
  const offsets = [before!, after!].filter(isShown)
  const [first = before!, last = first] = offsets
  const [early, late] = [local - first, local - last]
  return Math.abs(early - receivedAt) < Math.abs(late - receivedAt) ? early : late
}
