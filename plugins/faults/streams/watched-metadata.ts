/**
 * Metadata of a watched stream: interval, period and bounds of its values, and where it is. Pure. It is read
 * from the entities of the sensor model.
 */
import { intervalOf } from '#client/declared-interval.ts'
import { linksOf, numberOf, placeOf, propertyValue } from '#client/stream-entities.ts'
import { faultTerms, fd, iotStream, notAvailable, qoi, rdfsLabel } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'

export interface WatchedMetadata {
  readonly intervalMs?: number | undefined
  /** Length of the cycle of its values, ms. */
  readonly periodMs?: number | undefined
  readonly min?: number | undefined
  readonly max?: number | undefined
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
  const period = both.map((entity) => numberOf(propertyValue(entity, faultTerms.period))).find(isLength)
  const places = [sensor, stream, platform].map((entity) => entity && placeOf(entity))
  return {
    intervalMs: sensor && intervalOf(sensor),
    periodMs: period === undefined ? undefined : period * 1000,
    min: sensor && numberOf(propertyValue(sensor, qoi.min)),
    max: sensor && numberOf(propertyValue(sensor, qoi.max)),
    label: typeof label === 'string' && label !== notAvailable ? label.trim().toLowerCase() : undefined,
    place: places.find((place) => place !== undefined),
    isExempt: both.some((entity) => isOff(propertyValue(entity, fd.enable))),
    isInferred: sensor?.id.endsWith(':VS') === true || linksOf(stream, iotStream.derivedFrom).length > 0,
  }
}

const isLength = (given: number | undefined): given is number => given !== undefined && given > 0

const isOff = (given: unknown): boolean => given === false || given === 'false' || numberOf(given) === 0
