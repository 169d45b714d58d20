/**
 * Local times of a time zone: an IANA name such as Europe/Vienna, or a fixed offset such as +02:00. When the
 * clock is set forward, a time in the missing hour uses the offset before the change. When it is set back, a
 * repeated time means the instant nearer to the reception.
 */

export interface TimeZone {
  /**
   * The instant of a local time, both in ms; the local time is given as if it were UTC. Defined for every
   * input.
   */
  instantOf(local: number, receivedAt: number): number
}

const fixed = /^([+-])(\d{2}):?(\d{2})$/
const dayMs = 86_400_000
/** Range of years for which summer time is computed; outside it, the offset does not matter. */
const earliest = Date.UTC(1900, 0, 1)
const latest = Date.UTC(2200, 0, 1)

/** @returns undefined if the text is not a time zone */
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

/** Local wall-clock time of an instant, as if it were UTC. */
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
