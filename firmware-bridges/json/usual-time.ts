/**
 * Finds the time in a record whose source declares none. It takes the first member with a usual name and a
 * plausible time. Such a time is an ISO 8601 date and time, or a Unix time of this century in seconds,
 * milliseconds or microseconds. A member with such a name and any other content, such as an uptime, is a
 * value.
 */
import { plausibleTime } from './conventions.ts'
import { parseTimeZone } from './local-time.ts'
import { momentOf, type TimeFormat, type TimePlace } from './moment.ts'
import { asNumber } from './value-rules.ts'

/** In any letter case; the first one that contains a time counts. */
const usualNames = ['time', 'timestamp', 'datetime', 'ts', 'date']

/** Counts of the years 2001 to 2100, by format. */
const counts: readonly (readonly [TimeFormat, perSecond: number])[] = [
  ['unix', 1],
  ['unix-ms', 1000],
  ['unix-us', 1_000_000],
]
const earliest = Date.UTC(2001, 0, 1) / 1000
const latest = Date.UTC(2101, 0, 1) / 1000

export interface UsualTime {
  /** The member that contains it. */
  readonly name: string
  /** Undefined if it is a local time without a time zone, or the clock was not set. */
  readonly observedAt: number | undefined
}

export function usualTimeOf(item: unknown, place: TimePlace): UsualTime | undefined {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return undefined
  const rank = (name: string): number => usualNames.indexOf(name.toLowerCase())
  const names = Object.keys(item).filter((name) => rank(name) >= 0)
  for (const name of names.sort((a, b) => rank(a) - rank(b))) {
    const written = (item as Readonly<Record<string, unknown>>)[name]
    const format = formatOf(written, place)
    if (format !== undefined) return { name, observedAt: plausibleTime(written, format, place) }
  }
  return undefined
}

function formatOf(written: unknown, { zone = anyZone, receivedAt }: TimePlace): TimeFormat | undefined {
  if (typeof written !== 'string' && typeof written !== 'number') return undefined
  const count = asNumber(written)
  if (typeof count !== 'number')
    return momentOf(written, 'iso', { zone, receivedAt }).at === undefined ? undefined : 'iso'
  return counts.find(([, perSecond]) => count >= earliest * perSecond && count < latest * perSecond)?.[0]
}

const anyZone = parseTimeZone('+00:00')
