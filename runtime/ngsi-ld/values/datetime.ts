/**
 * NGSI-LD dates and times (GS CIM 009, 4.6.3): `YYYY-MM-DDThh:mm:ss[.f]Z`, always UTC, at most six digits of
 * a second; a comma may replace the dot. Shortened forms are rejected; offsets are accepted only in the times
 * of a query. The gateway represents a time as integer milliseconds; only times with microseconds remain
 * texts.
 */
import { assert } from '#base/register/errors.ts'

const dateTimeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?Z$/
const dateForm = /^\d{4}-\d\d-\d\d$/
const timeForm = /^\d\d:\d\d:\d\d(?:[.,]\d{1,6})?Z$/

/** Date.UTC maps the years 0 to 99 to the twentieth century; adding whole Gregorian cycles avoids that. */
const gregorianCycleYears = 400
const gregorianCycleMs = 146_097 * 86_400_000

/** Milliseconds since 1970 UTC, without the microseconds; undefined if the text is not a valid DateTime. */
export function dateTimeToMs(text: string): number | undefined {
  if (!dateTimeForm.test(text)) return undefined
  const day = dayToMs(text)
  const time = timeToMs(text, 11)
  return day === undefined || time === undefined ? undefined : day + time
}

/** As `dateTimeToMs`, for a time in a query, which may have an offset from UTC in place of `Z`. */
export function offsetDateTimeToMs(text: string): number | undefined {
  const [, local, sign, hours, minutes] = offsetForm.exec(text) ?? []
  if (local === undefined) return dateTimeToMs(text)
  const start = dateTimeToMs(`${local}Z`)
  if (start === undefined) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const ms = sign === '-' ? start + offset : start - offset
  return ms < firstMs || ms > lastMs ? undefined : ms
}

/** A `+` in a query parameter becomes a space unless it is percent-encoded. */
const offsetForm = /^(.{19,26})([+ -])((?:[01]\d|2[0-3])):([0-5]\d)$/

export const isDate = (text: string): boolean => dateForm.test(text) && dayToMs(text) !== undefined
export const isTime = (text: string): boolean => timeForm.test(text) && timeToMs(text, 0) !== undefined

/** Canonical text of integer milliseconds: three digits of a second, or none if they are zero. */
export function msToDateTime(ms: number): string {
  assert(ms >= firstMs && ms <= lastMs, 'a DateTime must be within the years 0000 to 9999')
  const minute = Math.floor(ms / minuteMs)
  const place = minute & (minutesKept - 1)
  if (minuteAt[place] !== minute) {
    minuteAt[place] = minute
    textAt[place] = new Date(minute * minuteMs).toISOString().slice(0, 'YYYY-MM-DDThh:mm:'.length)
  }
  const rest = Math.trunc(ms - minute * minuteMs)
  const millis = rest % 1000
  const seconds = `${textAt[place]}${secondsText[(rest - millis) / 1000]}`
  return millis === 0 ? `${seconds}Z` : `${seconds}.${String(millis).padStart(3, '0')}Z`
}

/**
 * Number of minutes whose text is cached. Times written together mostly share a few minutes, and a cached one
 * takes a fifteenth of the time of `Date`.
 */
const minutesKept = 64
const minuteMs = 60_000
const minuteAt = new Float64Array(minutesKept).fill(Number.NaN)
const textAt = Array.from({ length: minutesKept }, () => '')
const secondsText = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))

/** The canonical text of an instant, or undefined if the text is not a valid DateTime. */
export function canonicalDateTime(text: string): string | undefined {
  const ms = dateTimeToMs(text)
  if (ms === undefined || canonicalForm.test(text)) return ms === undefined ? undefined : text
  return isMillisecondExact(text)
    ? msToDateTime(ms)
    : `${text.slice(0, -1).replace(',', '.').replace(/0+$/, '')}Z`
}

/**
 * Accepts DateTimes of clients with finer clocks, or with libraries that write the offset of UTC: cuts seven
 * to nine digits of a second to six, and reads `+00:00` as `Z`. Returns any other text unchanged.
 */
export function toleratedDateTime(text: string): string {
  const [, start, digits] = tolerated.exec(text) ?? []
  if (start === undefined) return text
  return digits === undefined ? `${start}Z` : `${start}.${digits}Z`
}

/** A `+` in a query parameter becomes a space unless it is percent-encoded. */
const tolerated = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d{0,3})?(?:Z|[+ ]00:00)$/

/** Finds a member of JSON text with such a time of more than six digits of a second. */
export const finerTime = /"(?:observedAt|expiresAt)"\s*:\s*"[^"]{19}[.,]\d{7,9}(?:Z|\+00:00)"/

/** No fraction, or three digits that are not all zero. */
const canonicalForm = /:\d\dZ$|\.(?!000)\d{3}Z$/

/**
 * Whether integer milliseconds represent the instant exactly: only zeros follow the third digit of a second.
 */
export const isMillisecondExact = (text: string): boolean =>
  text.length <= millisecondsLength || /^0*Z$/.test(text.slice(millisecondsLength - 1))

const millisecondsLength = '2000-01-01T00:00:00.000Z'.length
const firstMs = Date.UTC(gregorianCycleYears) - gregorianCycleMs
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Midnight of the day at the start of `text`; undefined if the calendar has no such day. */
function dayToMs(text: string): number | undefined {
  const year = Number(text.slice(0, 4))
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return undefined
  return Date.UTC(year + gregorianCycleYears, month - 1, day) - gregorianCycleMs
}

function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Milliseconds since midnight of `hh:mm:ss[.f]Z` at position `at`. */
function timeToMs(text: string, at: number): number | undefined {
  const hours = twoDigits(text, at)
  const minutes = twoDigits(text, at + 3)
  const seconds = twoDigits(text, at + 6)
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined
  const fraction = text.slice(at + 9, -1)
  const milliseconds = fraction === '' ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'))
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
}

const twoDigits = (text: string, at: number): number =>
  (text.charCodeAt(at) - zero) * 10 + text.charCodeAt(at + 1) - zero
const zero = 48
