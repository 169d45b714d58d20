/**
 * Options of an uplink, from the `selvedge:...` pairs of its notifierInfo. The gateway's settings for uplinks
 * are converted to such pairs, so that both have one parser. Pure.
 *
 * Every pair whose key begins with `selvedge:` is parsed or rejected, and the message names the key.
 */

import { limits } from '#base/limits/limits.ts'
import { cronWords, isCron } from '#base/time/schedule.ts'
import { checkScope } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { KeyValue } from '#ngsi-ld/values/secrets.ts'
import type { NotificationEndpoint } from './subscription.ts'

/** A time window in which the uplink may send. */
export interface UplinkWindow {
  /** Start of the window. */
  readonly cron: string
  readonly minutes: number
}

/** Absent members mean no limit. */
export interface UplinkOptions {
  /** Observations per second. */
  readonly rate?: number
  readonly bytesPerSecond?: number
  /** Limit per UTC day. */
  readonly bytesPerDay?: number
  readonly windows: readonly UplinkWindow[]
  /** Limits of the backlog: bytes as stored here. */
  readonly budgetBytes?: number
  readonly budgetObservations?: number
  readonly budgetHours?: number
  /** Seconds per value in thinned history: one value of each attribute is sent per interval. */
  readonly thinSeconds: number
  readonly isPaused: boolean
  /** Scope prefix for all entities of this gateway at the central broker: a path such as /site-7. */
  readonly scope?: string
}

type Draft = { -readonly [name in keyof UplinkOptions]: UplinkOptions[name] }

const prefix = 'selvedge:'
/** Default interval of thinned history. */
const thinSecondsByDefault = 60

/** Parsers by key; a returned text describes the expected value. */
const keys: { readonly [key: string]: (value: string, options: Draft) => string | undefined } = {
  mode: () => undefined,
  rate: numberOf('rate', 'observations per second'),
  'bytes-per-second': numberOf('bytesPerSecond', 'bytes per second'),
  'bytes-per-day': numberOf('bytesPerDay', 'bytes'),
  'budget-bytes': numberOf('budgetBytes', 'bytes'),
  'budget-observations': numberOf('budgetObservations', 'observations'),
  'budget-hours': numberOf('budgetHours', 'hours'),
  'thin-seconds': numberOf('thinSeconds', 'seconds'),
  paused(value, options) {
    if (value !== 'true' && value !== 'false') return 'true or false'
    options.isPaused = value === 'true'
    return undefined
  },
  scope(value, options) {
    try {
      options.scope = checkScope(value) as string
      return undefined
    } catch {
      return 'a path such as /site-7'
    }
  },
  window(value, options) {
    const [, cron, minutes] = /^(.+) for (\d{1,5})$/.exec(value) ?? []
    if (cron === undefined || !isCron(cron) || !isMinutes(Number(minutes)))
      return `${cronWords}, "for" and 1 to ${windowMinutesMax} minutes, such as 0 2 * * * for 90`
    options.windows = [...options.windows, { cron, minutes: Number(minutes) }]
    return undefined
  },
}

const windowMinutesMax = limits.uplinkWindowMinutesMax.value
const isMinutes = (minutes: number): boolean => minutes >= 1 && minutes <= windowMinutesMax

function numberOf(
  name: Exclude<keyof UplinkOptions, 'windows' | 'isPaused' | 'scope'>,
  unit: string,
): (value: string, options: Draft) => string | undefined {
  return (value, options) => {
    const number = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : 0
    if (number <= 0) return `a number of ${unit} above 0`
    options[name] = number
    return undefined
  }
}

/**
 * Parses the options in an endpoint's pairs.
 * @throws GatewayError ngsi-ld.bad-request-data naming a key that is unknown, invalid or repeated.
 */
export function parseUplinkOptions(
  pairs: readonly KeyValue[] = [],
  field = 'notification.endpoint.notifierInfo',
): UplinkOptions {
  const options: Draft = { windows: [], thinSeconds: thinSecondsByDefault, isPaused: false }
  const seen = new Set<string>()
  for (const { key, value } of pairs) {
    if (!key.startsWith(prefix)) continue
    const name = key.slice(prefix.length)
    const read = Object.hasOwn(keys, name) ? keys[name] : undefined
    if (read === undefined)
      throw badRequestData(
        `must be one of ${Object.keys(keys)
          .map((each) => prefix + each)
          .join(', ')}`,
        `${field} ${key}`,
      )
    if (seen.has(name) && name !== 'window')
      throw badRequestData('must be given only once', `${field} ${key}`)
    seen.add(name)
    const expected = read(value, options)
    if (expected !== undefined) throw badRequestData(`must be ${expected}`, `${field} ${key}`)
  }
  return options
}

function isBroker(uri: string): boolean {
  const url = URL.parse(uri)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') return false
  // An address below /ngsi-ld/v1 is not the address of a broker.
  if (/\/ngsi-ld\/v1\/+[^/]/i.test(url.pathname)) return false
  return url.username === '' && url.password === '' && !/[?#]/.test(uri)
}

/** Base address of a broker's operations: its address with /ngsi-ld/v1, which may be omitted in the input. */
export const brokerBase = (uri: string): string =>
  `${uri.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/i, '')}/ngsi-ld/v1`

/** @throws GatewayError ngsi-ld.bad-request-data if the endpoint should be a broker but cannot be one. */
export function checkUplink(
  { uri, notifierInfo }: NotificationEndpoint,
  field = 'notification.endpoint',
): void {
  const pairs = notifierInfo?.filter(({ key }) => key.startsWith(prefix)) ?? []
  if (pairs.length === 0) return
  const mode = pairs.find(({ key }) => key === `${prefix}mode`)?.value
  // Those of a component are validated by the component.
  if (mode === 'follower' || mode === 'component') return
  if (mode !== 'uplink') throw badRequestData('must be uplink', `${field}.notifierInfo ${prefix}mode`)
  if (!isBroker(uri))
    throw badRequestData(
      'must be the http or https address of a broker, without user name, query and fragment',
      `${field}.uri`,
    )
  parseUplinkOptions(pairs, `${field}.notifierInfo`)
}
