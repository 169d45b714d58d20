/**
 * Computes criteria from 0 to 1, where 1 is good: proximity to a point, freshness of observations,
 * availability of a stream. Pure functions; the time is a parameter. NaN if an entity lacks the necessary
 * attributes.
 */
import type { Json } from '#contract'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import type { GeoPosition } from '#ngsi-ld/geo/figure.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import type { Criterion } from './attribute-path.ts'
import { type AttributeFinder, instanceOf, numberOf, positionOf, timeOf } from './value.ts'

/** Reference values of a request's criteria. */
export interface Yardsticks {
  readonly now: number
  /** Reference point of proximity, longitude first. */
  readonly point?: GeoPosition | undefined
  /** Metres at which proximity is one half. */
  readonly distance: number
  /**
   * Seconds at which freshness is one half; also the expected interval of streams without an update interval.
   */
  readonly age: number
  /** Name of the GeoProperty. */
  readonly geoproperty: string
}

const stream = 'http://purl.org/iot/ontology/iot-stream#'
const sosa = 'http://www.w3.org/ns/sosa/'
const [result, resultTime] = [`${sosa}hasSimpleResult`, `${sosa}resultTime`]
const interval = 'https://w3id.org/iot/qoi#updateinterval'
const [streamStart, streamEnd] = [`${stream}streamStart`, `${stream}streamEnd`]

/** Derived facts that a backend such as the index adds on request by this header. */
export const derivedHeader = 'selvedge-index-derived'
export const derivedName = 'urn:selvedge:ns:derived'

/** Attributes of a linked entity that a criterion reads. */
export function attributesFor(criterion: Criterion, { geoproperty }: Yardsticks): readonly string[] {
  if (criterion === 'proximity') return [geoproperty, derivedName]
  const observed = [result, resultTime, derivedName]
  return criterion === 'freshness' ? observed : [...observed, interval, streamStart, streamEnd]
}

/** @param holder an entity, or an attribute if the path ends at one. */
export function compute(
  criterion: Criterion,
  holder: JsonObject,
  finder: AttributeFinder,
  yardsticks: Yardsticks,
): number {
  if (criterion === 'proximity') return proximity(holder, finder, yardsticks)
  return criterion === 'freshness' ? freshness(holder, yardsticks) : availability(holder, finder, yardsticks)
}

/** 1 at the point, one half at the given distance, falling further beyond. */
function proximity(
  holder: JsonObject,
  finder: AttributeFinder,
  { point, distance, geoproperty }: Yardsticks,
): number {
  const key = finder.keyOf(holder, geoproperty)
  const place = positionOf(key === undefined ? holder : holder[key]!)
  if (point === undefined) return Number.NaN
  const derived = geoproperty === 'location' ? listOf<Json>(derivedOf(holder)['places'] ?? []) : []
  const places = place === undefined ? derived.map(positionOf) : [place]
  const distances = places.flatMap((one) => (one === undefined ? [] : distanceMeters(point, one)))
  const meters = Math.min(...distances)
  return Number.isFinite(meters) ? 1 / (1 + meters / distance) : Number.NaN
}

/** Derived facts that the backend added; empty if there are none. */
function derivedOf(holder: JsonObject): JsonObject {
  const member = own(holder, derivedName)
  const value = isObject(member) ? (own(member, 'value') ?? member) : undefined
  return isObject(value) ? value : {}
}

/** 1 now, one half at the given age, falling further before. */
function freshness(holder: JsonObject, { now, age }: Yardsticks): number {
  const last = lastObserved(holder)
  return last === undefined ? Number.NaN : 1 / (1 + Math.max(0, now - last) / (age * 1000))
}

/**
 * 1 while observations arrive at the announced interval, falling while they are late; 0 before the stream's
 * start or after its end.
 */
function availability(holder: JsonObject, finder: AttributeFinder, { now, age }: Yardsticks): number {
  const attributeOf = (name: string): Json | undefined => {
    const key = finder.keyOf(holder, name)
    return key === undefined ? undefined : holder[key]!
  }
  const [begin, end] = [timeOf(attributeOf(streamStart)), timeOf(attributeOf(streamEnd))]
  if ((end !== undefined && end <= now) || (begin !== undefined && begin > now)) return 0
  const last = lastObserved(holder)
  if (last === undefined) return Number.NaN
  const { updateInterval } = derivedOf(holder)
  const every = intervalSeconds(attributeOf(interval), finder) ?? intervalSeconds(updateInterval, finder)
  const expected = (every ?? age) * 1000
  const silence = now - last
  return silence <= 2 * expected ? 1 : (2 * expected) / silence
}

/** Time of the latest observation of an entity or attribute. */
function lastObserved(holder: JsonObject): number | undefined {
  const isEntity = typeof own(holder, 'id') === 'string'
  let newest: number | undefined = isEntity ? timeOf(derivedOf(holder)['lastSeen']) : timeOf(holder)
  for (const key of Object.keys(holder)) {
    const attribute = instanceOf(holder[key]!)
    const isTime = key.endsWith('resultTime')
    const observedAt = isObject(attribute) ? own(attribute, 'observedAt') : undefined
    const time = isTime ? timeOf(attribute) : typeof observedAt === 'string' ? timeOf(observedAt) : undefined
    if (time !== undefined && (newest === undefined || time > newest)) newest = time
  }
  return newest
}

/** Seconds between updates, from qoi:updateinterval and its unit. */
function intervalSeconds(attribute: Json | undefined, finder: AttributeFinder): number | undefined {
  if (attribute === undefined) return undefined
  const seconds = numberOf(attribute, finder)
  if (!(seconds > 0)) return undefined
  const instance = instanceOf(attribute)
  const key = isObject(instance) ? finder.keyOf(instance, 'https://w3id.org/iot/qoi#unit') : undefined
  const unit = key === undefined ? undefined : (instance as JsonObject)[key]!
  const unitName = isObject(unit) ? own(unit, 'value') : unit
  return seconds * (typeof unitName === 'string' ? (unitSeconds[unitName.toLowerCase()] ?? 1) : 1)
}

const unitSeconds: Readonly<Record<string, number>> = {
  m: 60,
  min: 60,
  minute: 60,
  minutes: 60,
  h: 3600,
  hour: 3600,
  hours: 3600,
}
