/**
 * Metadata of a watched stream: interval, period and bounds of its values, and where it is. Pure. It is read
 * from the entities of the sensor model.
 */
import { intervalOf } from '#client/streams/declared-interval.ts'
import { linksOf, numberOf, placeOf, propertyValue } from '#client/streams/stream-entities.ts'
import { faultTerms, fd, iotStream, notAvailable, qoi, rdfsLabel } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'

export interface WatchedMetadata {
  readonly intervalMs?: number | undefined
  /** Length of the cycle of its values, ms. */
  readonly periodMs?: number | undefined
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Largest change that the sensor can report, in units per second. */
  readonly maxRate?: number | undefined
  /** Label of the observed property, lower case. */
  readonly label?: string | undefined
  /** Longitude, latitude. */
  readonly place?: readonly [number, number] | undefined
  /** Whether the Sensor or the stream opts out: `fd:enable` is false or 0. */
  readonly isExempt: boolean
  /** Whether the values are estimated: those of a virtual sensor, or of a stream derived from others. */
  readonly isInferred: boolean
}

/** The entities that describe a stream; those that are unknown are left out. */
export interface DescribingEntities {
  readonly stream: Entity
  readonly sensor?: Entity | undefined
  readonly property?: Entity | undefined
  readonly platform?: Entity | undefined
}

export const noMetadata: WatchedMetadata = { isExempt: false, isInferred: false }

export function metadataOf({ stream, sensor, property, platform }: DescribingEntities): WatchedMetadata {
  const both = [sensor, stream].filter((entity) => entity !== undefined)
  const label = property && propertyValue(property, rdfsLabel)
  const period = both.map((entity) => numberOf(propertyValue(entity, faultTerms.period))).find(isPositive)
  const maxRate = both.map((entity) => numberOf(propertyValue(entity, faultTerms.maxRate))).find(isPositive)
  const places = [sensor, stream, platform].map((entity) => entity && placeOf(entity))
  return {
    intervalMs: sensor && intervalOf(sensor),
    periodMs: period === undefined ? undefined : period * 1000,
    min: sensor && numberOf(propertyValue(sensor, qoi.min)),
    max: sensor && numberOf(propertyValue(sensor, qoi.max)),
    maxRate,
    label: typeof label === 'string' && label !== notAvailable ? label.trim().toLowerCase() : undefined,
    place: places.find((place) => place !== undefined),
    isExempt: both.some((entity) => isOff(propertyValue(entity, fd.enable))),
    isInferred: sensor?.id.endsWith(':VS') === true || linksOf(stream, iotStream.derivedFrom).length > 0,
  }
}

const isPositive = (given: number | undefined): given is number => given !== undefined && given > 0

const isOff = (given: unknown): boolean => given === false || given === 'false' || numberOf(given) === 0

/** Rated plausibility below which a stream is doubtful: two of its newest values were not plausible. */
const plausibilityMin = 0.5

/** Whether a QoI entity rates the values of its stream as not plausible. */
export function isDoubtfulQuality(quality: Entity): boolean {
  const [plausibility] = instancesOf(quality, qoi.plausibility)
  const rated = plausibility && own(plausibility, qoi.hasRatedValue)
  const value = isObject(rated) ? numberOf(own(rated, 'value')) : undefined
  return value !== undefined && value < plausibilityMin
}
