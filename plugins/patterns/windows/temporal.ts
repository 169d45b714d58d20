/**
 * The temporal part of a model: length and step of its windows in rows, and the hours of the day that count.
 * Hours are in the time zone of the process. Pure.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isObject } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export interface Temporal {
  /** Rows of a window. */
  readonly window: number
  /** Rows between the ends of two windows. */
  readonly step: number
  /** Minutes of the day, `from` included and `to` excluded; over midnight if `to` is not after `from`. */
  readonly hours?: { readonly from: number; readonly to: number } | undefined
}

/** An hour of five-minute values, as the original component has it. */
const originalWindow = 12

export function parseTemporal(json: Json | undefined): Temporal {
  if (json === undefined) return { window: originalWindow, step: 1 }
  if (!isObject(json)) throw badRequestData('must be an object such as {"window": 12, "step": 1}', 'temporal')
  const { window = originalWindow, step = 1, hours, ...rest } = json
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined)
    throw badRequestData('is unknown; supported are window, step and hours', `temporal.${unknown}`)
  return {
    window: rowsOf(window, 'temporal.window', { least: 2, most: limits.patternWindowRowsMax.value }),
    step: rowsOf(step, 'temporal.step', { least: 1, most: limits.patternWindowRowsMax.value }),
    hours: hours === undefined ? undefined : hoursOf(hours),
  }
}

function rowsOf(
  json: Json,
  field: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  if (typeof json === 'number' && Number.isInteger(json) && json >= least && json <= most) return json
  throw badRequestData(`must be a whole number of rows from ${least} to ${most}`, field)
}

const clockTime = String.raw`([01]\d|2[0-4]):([0-5]\d)`
const hoursForm = new RegExp(`^${clockTime}-${clockTime}$`)

function hoursOf(json: Json): { from: number; to: number } {
  const parts = typeof json === 'string' ? hoursForm.exec(json)?.slice(1).map(Number) : undefined
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = parts ?? []
  const [from, to] = [fromHour * 60 + fromMinute, toHour * 60 + toMinute]
  if (parts === undefined || from >= dayMinutes || to > dayMinutes || from === to)
    throw badRequestData('must be a span of the day such as "07:00-19:00"', 'temporal.hours')
  return { from, to }
}

const dayMinutes = 24 * 60

/**
 * The number of the span of hours that contains a time: windows lie within one span. Undefined outside the
 * hours; 0 without hours.
 */
export function spanOf(time: number, { hours }: Temporal): number | undefined {
  if (hours === undefined) return 0
  const date = new Date(time)
  const minute = date.getHours() * 60 + date.getMinutes()
  const day = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000
  const { from, to } = hours
  if (from < to) return minute >= from && minute < to ? day : undefined
  if (minute >= from) return day
  return minute < to ? day - 1 : undefined
}
