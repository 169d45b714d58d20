/**
 * Durations in ISO 8601 format (GS CIM 009, 4.5.19): years and months follow the calendar, all other units
 * are fixed numbers of milliseconds. Always UTC. Durations without an exact sum (a fraction of a month) are
 * rejected.
 */

export interface Duration {
  readonly months: number
  readonly ms: number
}

const form =
  /^P(?=\d|T\d)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,3}))?S)?)?$/

const dayMs = 86_400_000
/** A thousand years: no period of a history is longer. */
const monthsMax = 12_000
const msMax = 365_250 * dayMs

/** Undefined if the text is not a duration, or the duration exceeds a thousand years. */
export function parseDuration(text: string): Duration | undefined {
  const parts = form.exec(text)
  if (parts === null) return undefined
  const [years, months, weeks, days, hours, minutes, seconds] = parts
    .slice(1, 8)
    .map((part) => Number(part ?? 0))
  const fraction = Number((parts[8] ?? '').padEnd(3, '0'))
  const whole = {
    months: years! * 12 + months!,
    ms: (weeks! * 7 + days!) * dayMs + hours! * 3_600_000 + minutes! * 60_000 + seconds! * 1000 + fraction,
  }
  return whole.months <= monthsMax && whole.ms <= msMax ? whole : undefined
}

/**
 * Adds `count` durations to a time, both in ms. A day beyond the end of a month becomes the month's last day.
 */
export function addDuration(ms: number, { months, ms: fixed }: Duration, count: number): number {
  if (months === 0) return ms + count * fixed
  const from = new Date(ms)
  const day = from.getUTCDate()
  const moved = new Date(ms)
  moved.setUTCDate(1)
  moved.setUTCMonth(moved.getUTCMonth() + count * months)
  const last = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate()
  moved.setUTCDate(Math.min(day, last))
  return moved.getTime() + count * fixed
}
