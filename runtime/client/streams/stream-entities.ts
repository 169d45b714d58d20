/**
 * Reads the entities of the platform: streams, Sensors and observation entities, as the broker has them or as
 * notifications contain them. Pure.
 */
import type { Json } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isList, isObject, own } from '#ngsi-ld/values/json.ts'

/** The ids that Relationships name. Simplified entities of notifications have them as values. */
export function linksOf(entity: Entity, ...names: readonly string[]): string[] {
  const objects = names
    .flatMap((name) => instancesOf(entity, name))
    .flatMap((one) => own(one, 'object') ?? own(one, 'value') ?? [])
  // A copy has no room to grow, which counts with thousands of streams.
  return objects.filter((id) => typeof id === 'string').slice()
}

/** The Sensor of a stream. */
export const sensorOf = (stream: Entity): string | undefined => linksOf(stream, iotStream.generatedBy)[0]

/** The value of the first instance of a Property or GeoProperty. */
export function propertyValue(entity: Entity, name: string): Json | undefined {
  const [instance] = instancesOf(entity, name)
  return instance && own(instance, 'value')
}

/** A finite number, also written as text such as `21.5` or `21.5^^xsd:double`. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const [text = ''] = value.split('^^')
  const number = text.trim() === '' ? Number.NaN : Number(text)
  return Number.isFinite(number) ? number : undefined
}

/** Longitude and latitude of an entity whose location is a Point. */
export function placeOf(entity: Entity): readonly [number, number] | undefined {
  const geometry = propertyValue(entity, 'location')
  if (!isObject(geometry) || geometry['type'] !== 'Point' || !isList(geometry['coordinates']))
    return undefined
  const [longitude, latitude] = geometry['coordinates']
  return typeof longitude === 'number' && typeof latitude === 'number' ? [longitude, latitude] : undefined
}

/** The result of an observation entity. */
export interface TimedResult {
  readonly time: number
  readonly value: Json
  /** Whether the result has no observedAt, so that resultTime stands in for it. */
  readonly isUntimed: boolean
}

/** Undefined without a result, or without any time. */
export function timedResult(entity: Entity): TimedResult | undefined {
  const [instance] = instancesOf(entity, sosa.hasSimpleResult)
  const value = instance && own(instance, 'value')
  if (instance === undefined || value === undefined) return undefined
  const observedAt = own(instance, 'observedAt')
  const text = observedAt ?? timeText(propertyValue(entity, sosa.resultTime))
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : { time, value, isUntimed: observedAt === undefined }
}

/** A time as text, or as an object with `@value`. */
const timeText = (value: Json | undefined): Json | undefined =>
  isObject(value) && '@value' in value ? value['@value'] : value
