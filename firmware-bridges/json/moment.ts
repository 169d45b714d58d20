/**
 * Parses a time in a payload to milliseconds since 1970: ISO 8601 with a time zone, or a count of seconds or
 * fractions (a number, or a decimal as text). A local time uses the zone of the source; without one it is
 * rejected, because the instant is unknown.
 */
import type { TimeZone } from './local-time.ts'

const unitsPerMillisecond = { unix: 0.001, 'unix-ms': 1, 'unix-us': 1000 } as const

export type TimeFormat = 'iso' | keyof typeof unitsPerMillisecond

export const timeFormats: readonly TimeFormat[] = ['iso', 'unix', 'unix-ms', 'unix-us']

/** A time, or the reason why there is none. */
export type Moment =
  | { readonly at: number; readonly reason?: undefined }
  | { readonly at?: undefined; readonly reason: string }

/** The zone of local times, and the time of reception. */
export interface TimePlace {
  readonly zone: TimeZone | undefined
  readonly receivedAt: number
}

const iso = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i
const decimal = /^-?\d{1,20}(?:\.\d{1,9})?$/

export function momentOf(value: unknown, format: TimeFormat, place?: TimePlace): Moment {
  return format === 'iso' ? isoMoment(value, place) : countedMoment(value, unitsPerMillisecond[format])
}

function isoMoment(value: unknown, place: TimePlace | undefined): Moment {
  const match = typeof value === 'string' ? iso.exec(value.trim()) : null
  if (match === null) return { reason: 'must be an ISO 8601 date and time' }
  const written = match[1]
  if (written === undefined && place?.zone === undefined) return { reason: 'the time has no zone' }
  const zone = written ?? 'Z'
  const hours = /^[+-]\d{2}$/.test(zone) ? `${zone}:00` : zone.replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  const local = match[0].slice(0, written === undefined ? undefined : -zone.length).replace(' ', 'T')
  const at = Date.parse(`${local.replace(',', '.')}${hours}`.toUpperCase())
  if (Number.isNaN(at) || !isDay(local.slice(0, 10))) return { reason: 'this date or time does not exist' }
  return { at: written === undefined ? place!.zone!.instantOf(at, place!.receivedAt) : at }
}

/** Date.parse reads February 30 as March 2. */
function isDay(date: string): boolean {
  const midnight = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date)
}

function countedMoment(value: unknown, perMillisecond: number): Moment {
  const count = typeof value === 'string' && decimal.test(value) ? Number(value) : value
  if (typeof count !== 'number') return { reason: 'must be a number of time units' }
  const at = Math.round(count / perMillisecond)
  return Number.isSafeInteger(at) ? { at } : { reason: 'the time is out of range' }
}
