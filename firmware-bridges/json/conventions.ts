/**
 * Payloads of widely used firmware, recognized by topic and shape if a source has `fields: auto`. A
 * convention defines the values, their units, and the time, so that recognized firmware needs no manual
 * mapping. All other payloads are read as plain JSON.
 */
import { type Unit, writtenUnit } from '#bridges/units.ts'
import { momentOf, type TimeFormat, type TimePlace } from './moment.ts'
import {
  shellyGen1Units,
  shellyUnits,
  tasmotaUnits,
  ttnUnits,
  type UsualUnit,
  zigbeeUnits,
} from './usual-units.ts'

export interface Convention {
  /** Contains the values; its member names become fields. */
  readonly root: unknown
  /** Prefix of the names. */
  readonly prefix?: string | undefined
  /** Device id if neither the topic nor the source contains one. */
  readonly device?: string | undefined
  /** Absent if the payload has no plausible time. */
  readonly observedAt?: number | undefined
  readonly timeSource?: 'device' | 'network'
  /** Lists with at most this many values are read, each value as a field. */
  readonly listMax?: number
  /** Whether the member at a path is not a sensor value. */
  isExcluded(path: readonly string[]): boolean
  unitOf(path: readonly string[]): UsualUnit | undefined
}

type Group = Readonly<Record<string, unknown>>
type Frame = { readonly topic: readonly string[]; readonly payload: unknown; readonly place: TimePlace }

const isGroup = (value: unknown): value is Group =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const member = (group: Group, name: string): unknown => (Object.hasOwn(group, name) ? group[name] : undefined)
const last = (path: readonly string[]): string => path.at(-1) ?? ''

/**
 * Undefined if the payload matches no convention; a text gives the reason if it matches one but has no
 * values.
 */
export function recognize(frame: Frame): Convention | string | undefined {
  return shellyTopic(frame) ?? thingsNetwork(frame) ?? shelly(frame) ?? tasmota(frame) ?? zigbee2mqtt(frame)
}

/** A time that a correctly set clock may have produced; otherwise undefined. */
export function plausibleTime(written: unknown, format: TimeFormat, place: TimePlace): number | undefined {
  if (written === undefined || written === null) return undefined
  const { at } = momentOf(written, format, place)
  return at !== undefined && at >= earliestPlausible ? at : undefined
}

/** Unset clocks start at 1970 or 2000. */
const earliestPlausible = Date.UTC(2001, 0, 1)

const tasmotaExcluded = new Set(
  'Time Id TempUnit PressureUnit SpeedUnit TotalStartTime Uptime SSId BSSId Mode Downtime Hostname IPAddress Address'.split(
    ' ',
  ),
)
const temperatures = new Set(['Temperature', 'DewPoint', 'HeatIndex'])

/**
 * tele/NAME/SENSOR and STATE, stat/NAME/STATUS8 and STATUS10. `Time` is local unless it states a time zone.
 */
function tasmota({ topic, payload, place }: Frame): Convention | undefined {
  if (!isGroup(payload)) return undefined
  const status = member(payload, 'StatusSNS')
  const root = isGroup(status) ? status : payload
  const time = member(root, 'Time')
  const isNamed = isGroup(status) || /^(?:SENSOR|STATE)$/.test(last(topic))
  if (!isNamed || typeof time !== 'string') return undefined
  const stated = (name: string, usual: string): Unit => writtenUnit(member(root, name) ?? usual)
  return {
    root,
    observedAt: plausibleTime(time, 'iso', place),
    timeSource: 'device',
    listMax: 4,
    isExcluded: (path) => tasmotaExcluded.has(last(path)),
    unitOf(path) {
      const name = path.findLast((step) => !/^\d+$/.test(step)) ?? ''
      if (temperatures.has(name)) return stated('TempUnit', 'C')
      if (name === 'Pressure' || name === 'SeaPressure') return stated('PressureUnit', 'hPa')
      if (name === 'Speed') return stated('SpeedUnit', 'km/h')
      return tasmotaUnits.get(name)
    },
  }
}

const shellySystem = new Set(['sys', 'ble', 'cloud', 'mqtt', 'ws', 'knx', 'matter', 'ts'])
const shellyExcluded = new Set(
  'id source tF minute_ts timer_started_at timer_duration started_at errors flags'.split(' '),
)

/** NotifyStatus and NotifyFullStatus of generation 2 and later; NotifyEvent has no values. */
function shelly({ topic, payload, place }: Frame): Convention | undefined {
  if (!isGroup(payload)) return undefined
  const [src, method, params] = ['src', 'method', 'params'].map((name) => member(payload, name))
  const isComponent = topic.at(-2) === 'status' && /^[a-z0-9]+:\d+$/.test(last(topic))
  if (isComponent && typeof member(payload, 'id') === 'number') return shellyValues(payload, last(topic))
  if (typeof src !== 'string' || typeof method !== 'string' || !isGroup(params)) return undefined
  if (!method.startsWith('Notify')) return undefined
  return {
    ...shellyValues(method.endsWith('Status') ? params : {}, undefined),
    device: src,
    observedAt: plausibleTime(member(params, 'ts'), 'unix', place),
    timeSource: 'device',
  }
}

const shellyValues = (root: Group, prefix: string | undefined): Convention => ({
  root,
  prefix,
  isExcluded: (path) =>
    (prefix === undefined && shellySystem.has(path[0]!)) ||
    (path[0] === 'wifi' && last(path) !== 'rssi' && path.length > 1) ||
    shellyExcluded.has(last(path)),
  unitOf: (path) => shellyUnits.get(last(path)),
})

/** Topics below shellies/NAME of generation 1: one value each; groups such as `info` have no values. */
function shellyTopic({ topic, payload }: Frame): Convention | undefined {
  if (topic[0] !== 'shellies' || topic.length < 3) return undefined
  const names = topic.slice(2).filter((name) => !/^\d+$/.test(name))
  return {
    root: isGroup(payload) || Array.isArray(payload) ? {} : payload,
    isExcluded: () => false,
    unitOf: () => shellyGen1Units.get(last(names)),
  }
}

const zigbeeExcluded = new Set(
  'last_seen update update_available device elapsed color color_options'.split(' '),
)

/** zigbee2mqtt/NAME. Voltages of batteries are in mV, of mains in V. */
function zigbee2mqtt({ topic, payload, place }: Frame): Convention | undefined {
  if (!isGroup(payload)) return undefined
  const isOfBase = topic[0] === 'zigbee2mqtt' && topic[1] !== 'bridge'
  if (!isOfBase && typeof member(payload, 'linkquality') !== 'number') return undefined
  const seen = member(payload, 'last_seen')
  const voltage = typeof member(payload, 'battery') === 'number' ? 'mV' : 'V'
  return {
    root: payload,
    // The `state` of availability is different from that of the device.
    prefix: last(topic) === 'availability' ? 'availability' : undefined,
    observedAt: plausibleTime(seen, typeof seen === 'number' ? 'unix-ms' : 'iso', place),
    timeSource: 'device',
    isExcluded: (path) => zigbeeExcluded.has(path[0]!),
    unitOf: (path) => (last(path) === 'voltage' ? writtenUnit(voltage) : zigbeeUnits.get(last(path))),
  }
}

/** An uplink of The Things Stack v3, as decoded by the application's payload formatter. */
function thingsNetwork({ payload, place }: Frame): Convention | string | undefined {
  if (!isGroup(payload)) return undefined
  const [ids, uplink] = [member(payload, 'end_device_ids'), member(payload, 'uplink_message')]
  if (!isGroup(ids) || !isGroup(uplink)) return undefined
  const root = member(uplink, 'decoded_payload')
  if (!isGroup(root))
    return 'uplink_message.decoded_payload is missing: the application at The Things Network needs a payload formatter'
  const device = member(ids, 'device_id')
  const received = member(uplink, 'received_at') ?? member(payload, 'received_at')
  return {
    root,
    device: typeof device === 'string' ? device : undefined,
    observedAt: plausibleTime(received, 'iso', place),
    timeSource: 'network',
    isExcluded: () => false,
    unitOf: (path) => ttnUnits.get(last(path).replace(/_\d{1,3}$/, '')),
  }
}
