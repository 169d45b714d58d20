/**
 * Criteria that are reckoned instead of read, each from 0 to 1 where 1 is good: proximity to a point, freshness of what was
 * observed, availability of a stream. Pure: the time is given. NaN where an entity says nothing about it.
 */
import type { Json } from '#contract'
import { distanceMeters } from '#ngsi-ld/geo/distance.ts'
import type { Position } from '#ngsi-ld/geo/figure.ts'
import { isObject, type JsonObject, listOf, own } from '#ngsi-ld/values/json.ts'
import type { Criterion } from './attribute-path.ts'
import { type Finder, instanceOf, numberOf, positionOf, timeOf } from './value.ts'

/** What the criteria of a request are measured by. */
export interface Yardsticks {
  readonly now: number
  /** Where proximity is measured from, longitude first. */
  readonly point?: Position | undefined
  /** Metres at which proximity is one half. */
  readonly distance: number
  /** Seconds at which freshness is one half, and between observations where no interval is told. */
  readonly age: number
  /** Name of the GeoProperty. */
  readonly geoproperty: string
}

const stream = 'http://purl.org/iot/ontology/iot-stream#'
const sosa = 'http://www.w3.org/ns/sosa/'
const [result, resultTime] = [`${sosa}hasSimpleResult`, `${sosa}resultTime`]
const interval = 'https://w3id.org/iot/qoi#updateinterval'
const [streamStart, streamEnd] = [`${stream}streamStart`, `${stream}streamEnd`]

/** What a backend such as the index knows of an entity beside what it says; asked for by the header. */
export const derivedHeader = 'selvedge-index-derived'
export const derivedName = 'urn:selvedge:ns:derived'

/** Attributes that a criterion reads of a linked entity. */
export function attributesFor(criterion: Criterion, { geoproperty }: Yardsticks): readonly string[] {
  if (criterion === 'proximity') return [geoproperty, derivedName]
  const observed = [result, resultTime, derivedName]
  return criterion === 'freshness' ? observed : [...observed, interval, streamStart, streamEnd]
}

/** @param holder an entity, or an attribute where the path leads to one. */
export function reckon(
  criterion: Criterion,
  holder: JsonObject,
  finder: Finder,
  yardsticks: Yardsticks,
): number {
  if (criterion === 'proximity') return proximity(holder, finder, yardsticks)
  return criterion === 'freshness' ? freshness(holder, yardsticks) : availability(holder, finder, yardsticks)
}

/** 1 at the point, one half at the distance given, less beyond. */
function proximity(holder: JsonObject, finder: Finder, { point, distance, geoproperty }: Yardsticks): number {
  const key = finder.keyOf(holder, geoproperty)
  const place = positionOf(key === undefined ? holder : holder[key]!)
  if (point === undefined) return Number.NaN
  const derived = geoproperty === 'location' ? listOf<Json>(derivedOf(holder)['places'] ?? []) : []
  const places = place === undefined ? derived.map(positionOf) : [place]
  const distances = places.flatMap((one) => (one === undefined ? [] : distanceMeters(point, one)))
  const meters = Math.min(...distances)
  return Number.isFinite(meters) ? 1 / (1 + meters / distance) : Number.NaN
}

/** What the backend tells beside the entity; empty where it tells nothing. */
function derivedOf(holder: JsonObject): JsonObject {
  const member = own(holder, derivedName)
  const value = isObject(member) ? (own(member, 'value') ?? member) : undefined
  return isObject(value) ? value : {}
}

/** 1 now, one half at the age given, less before. */
function freshness(holder: JsonObject, { now, age }: Yardsticks): number {
  const last = lastObserved(holder)
  return last === undefined ? Number.NaN : 1 / (1 + Math.max(0, now - last) / (age * 1000))
}

/** 1 while observations come as often as announced; less the longer none came; 0 for what ended or has not begun. */
function availability(holder: JsonObject, finder: Finder, { now, age }: Yardsticks): number {
  const told = (name: string): Json | undefined => {
    const key = finder.keyOf(holder, name)
    return key === undefined ? undefined : holder[key]!
  }
  const [begin, end] = [timeOf(told(streamStart)), timeOf(told(streamEnd))]
  if ((end !== undefined && end <= now) || (begin !== undefined && begin > now)) return 0
  const last = lastObserved(holder)
  if (last === undefined) return Number.NaN
  const { updateInterval } = derivedOf(holder)
  const every = intervalSeconds(told(interval), finder) ?? intervalSeconds(updateInterval, finder)
  const expected = (every ?? age) * 1000
  const silence = now - last
  return silence <= 2 * expected ? 1 : (2 * expected) / silence
}

/** The newest time at which anything of it was observed: of an entity, or of an attribute. */
function lastObserved(holder: JsonObject): number | undefined {
  const isEntity = typeof own(holder, 'id') === 'string'
  let newest: number | undefined = isEntity ? timeOf(derivedOf(holder)['lastSeen']) : timeOf(holder)
  for (const key of Object.keys(holder)) {
    const attribute = instanceOf(holder[key]!)
    const isTime = key.endsWith('resultTime')
    const told = isObject(attribute) ? own(attribute, 'observedAt') : undefined
    const time = isTime ? timeOf(attribute) : typeof told === 'string' ? timeOf(told) : undefined
    if (time !== undefined && (newest === undefined || time > newest)) newest = time
  }
  return newest
}

/** Seconds between updates, as qoi:updateinterval says with its unit. */
function intervalSeconds(attribute: Json | undefined, finder: Finder): number | undefined {
  if (attribute === undefined) return undefined
  const seconds = numberOf(attribute, finder)
  if (!(seconds > 0)) return undefined
  const instance = instanceOf(attribute)
  const key = isObject(instance) ? finder.keyOf(instance, 'https://w3id.org/iot/qoi#unit') : undefined
  const unit = key === undefined ? undefined : (instance as JsonObject)[key]!
  const said = isObject(unit) ? own(unit, 'value') : unit
  return seconds * (typeof said === 'string' ? (unitSeconds[said.toLowerCase()] ?? 1) : 1)
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
