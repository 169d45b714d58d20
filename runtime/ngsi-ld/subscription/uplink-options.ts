/**
 * How an uplink wishes to be kept: as the pairs `selvedge:...` of its notifierInfo say. The settings of the gateway say the
 * same with names of their own, which become such pairs; so there is one meaning. Pure.
 *
 * Every pair whose key begins with `selvedge:` is understood or refused, and the message names the key.
 */
import { limits } from '#base/limits/limits.ts'
import { cronWords, isCron } from '#base/time/schedule.ts'
import { checkScope } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { KeyValue, NotificationEndpoint } from './subscription.ts'

/** A span of time in which the way may be used. */
export interface UplinkWindow {
  /** When it begins. */
  readonly cron: string
  readonly minutes: number
}

/** Absent members mean no bound. */
export interface UplinkWishes {
  /** Observations per second. */
  readonly rate?: number
  readonly bytesPerSecond?: number
  /** Of a UTC day. */
  readonly bytesPerDay?: number
  readonly windows: readonly UplinkWindow[]
  /** Of what waits to go up: bytes as they are kept here. */
  readonly budgetBytes?: number
  readonly budgetObservations?: number
  readonly budgetHours?: number
  /** Of thinned history one value of each attribute goes up in so many seconds. */
  readonly thinSeconds: number
  readonly isPaused: boolean
  /** Where at the other broker all of this gateway stands: a path such as /site-7. */
  readonly scope?: string
}

type Draft = { -readonly [name in keyof UplinkWishes]: UplinkWishes[name] }

const prefix = 'selvedge:'
/** What a thinned history is thinned to, where nothing is said. */
const thinSecondsByDefault = 60

/** How each key is read; a text is what it has to be. */
const keys: { readonly [key: string]: (value: string, wishes: Draft) => string | undefined } = {
  mode: () => undefined,
  rate: numberOf('rate', 'observations per second'),
  'bytes-per-second': numberOf('bytesPerSecond', 'bytes per second'),
  'bytes-per-day': numberOf('bytesPerDay', 'bytes'),
  'budget-bytes': numberOf('budgetBytes', 'bytes'),
  'budget-observations': numberOf('budgetObservations', 'observations'),
  'budget-hours': numberOf('budgetHours', 'hours'),
  'thin-seconds': numberOf('thinSeconds', 'seconds'),
  paused(value, wishes) {
    if (value !== 'true' && value !== 'false') return 'true or false'
    wishes.isPaused = value === 'true'
    return undefined
  },
  scope(value, wishes) {
    try {
      wishes.scope = checkScope(value) as string
      return undefined
    } catch {
      return 'a path such as /site-7'
    }
  },
  window(value, wishes) {
    const [, cron, minutes] = /^(.+) for (\d{1,5})$/.exec(value) ?? []
    if (cron === undefined || !isCron(cron) || !isMinutes(Number(minutes)))
      return `${cronWords}, "for" and 1 to ${windowMinutesMax} minutes, such as 0 2 * * * for 90`
    wishes.windows = [...wishes.windows, { cron, minutes: Number(minutes) }]
    return undefined
  },
}

const windowMinutesMax = limits.uplinkWindowMinutesMax.value
const isMinutes = (minutes: number): boolean => minutes >= 1 && minutes <= windowMinutesMax

function numberOf(
  name: Exclude<keyof UplinkWishes, 'windows' | 'isPaused' | 'scope'>,
  unit: string,
): (value: string, wishes: Draft) => string | undefined {
  return (value, wishes) => {
    const number = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : 0
    if (number <= 0) return `a number of ${unit} above 0`
    wishes[name] = number
    return undefined
  }
}

/**
 * What the pairs of an endpoint wish.
 * @throws GatewayError ngsi-ld.bad-request-data naming the key that is unknown, wrong or given twice.
 */
export function parseWishes(
  pairs: readonly KeyValue[] = [],
  field = 'notification.endpoint.notifierInfo',
): UplinkWishes {
  const wishes: Draft = { windows: [], thinSeconds: thinSecondsByDefault, isPaused: false }
  const seen = new Set<string>()
  for (const { key, value } of pairs) {
    if (!key.startsWith(prefix)) continue
    const name = key.slice(prefix.length)
    const read = Object.hasOwn(keys, name) ? keys[name] : undefined
    if (read === undefined)
      throw badRequestData(
        `is none of ${Object.keys(keys)
          .map((each) => prefix + each)
          .join(', ')}`,
        `${field} ${key}`,
      )
    if (seen.has(name) && name !== 'window') throw badRequestData('is given twice', `${field} ${key}`)
    seen.add(name)
    const expected = read(value, wishes)
    if (expected !== undefined) throw badRequestData(`must be ${expected}`, `${field} ${key}`)
  }
  return wishes
}

function isBroker(uri: string): boolean {
  const url = URL.parse(uri)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') return false
  // An address within the interface is none of the interface.
  if (/\/ngsi-ld\/v1\/+[^/]/i.test(url.pathname)) return false
  return url.username === '' && url.password === '' && !/[?#]/.test(uri)
}

/** Where the operations of a broker are: its address with /ngsi-ld/v1, which may be left out. */
export const brokerBase = (uri: string): string =>
  `${uri.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/i, '')}/ngsi-ld/v1`

/** @throws GatewayError ngsi-ld.bad-request-data where the endpoint is to be a broker and cannot be one. */
export function checkUplink(
  { uri, notifierInfo }: NotificationEndpoint,
  field = 'notification.endpoint',
): void {
  const pairs = notifierInfo?.filter(({ key }) => key.startsWith(prefix)) ?? []
  if (pairs.length === 0) return
  const mode = pairs.find(({ key }) => key === `${prefix}mode`)?.value
  // What a follower is, its component knows.
  if (mode === 'follower') return
  if (mode !== 'uplink') throw badRequestData('must be uplink', `${field}.notifierInfo ${prefix}mode`)
  if (!isBroker(uri))
    throw badRequestData(
      'must be the http or https address of a broker, without user name, query and fragment',
      `${field}.uri`,
    )
  parseWishes(pairs, `${field}.notifierInfo`)
}
