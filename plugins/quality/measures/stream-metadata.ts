/**
 * Metadata of a stream: how often its values come, and which are plausible. Pure. It is read from the Sensor;
 * a range that is missing there comes from the table of usual properties.
 */

import { intervalOf } from '#client/streams/declared-interval.ts'
import { linksOf, numberOf, placeOf, propertyValue } from '#client/streams/stream-entities.ts'
import { iotStream, notAvailable, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { wholePattern } from './plausibility.ts'
import type { PlausibleRange } from './plausible-range.ts'
import type { UsualProperties } from './usual-properties.ts'

export interface StreamMetadata {
  /** Time between two values, ms. */
  readonly intervalMs?: number | undefined
  readonly range?: PlausibleRange | undefined
  /** Label of the observed property, lower case. */
  readonly label?: string | undefined
  /** Longitude, latitude. */
  readonly place?: readonly [number, number] | undefined
  /** Whether the values are inferred: those of a virtual sensor, or of a stream derived from others. */
  readonly isInferred: boolean
}

/** The entities that describe a stream; those that are unknown are left out. */
export interface StreamEntities {
  readonly stream: Entity
  readonly sensor?: Entity | undefined
  readonly property?: Entity | undefined
  readonly platform?: Entity | undefined
}

const derivedFrom = 'http://purl.org/iot/ontology/iot-stream#derivedFrom'

export function metadataOf(
  { stream, sensor, property, platform }: StreamEntities,
  usual: UsualProperties,
): StreamMetadata {
  const text = property && propertyValue(property, rdfsLabel)
  const label = typeof text === 'string' && text !== notAvailable ? text.trim() : ''
  const found = label === '' ? undefined : usual.find(label)
  const places = [sensor, stream, platform].map((entity) => entity && placeOf(entity))
  return {
    intervalMs: (sensor && intervalOf(sensor)) ?? found?.intervalMs,
    range: rangeOf(sensor, found?.range),
    label: label === '' ? undefined : label.toLowerCase(),
    place: places.find((place) => place !== undefined),
    isInferred: sensor?.id.endsWith(':VS') === true || linksOf(stream, derivedFrom).length > 0,
  }
}

/** The observed property of a stream or a Sensor. */
export const propertyOf = (entity: Entity): string | undefined =>
  linksOf(entity, sosa.observes, iotStream.observes)[0]

/**
 * The declared range, else the usual one if it is of the declared type. Undefined for other types, such as
 * boolean, and for a text without a pattern.
 */
function rangeOf(sensor: Entity | undefined, usual: PlausibleRange | undefined): PlausibleRange | undefined {
  const declared = sensor && propertyValue(sensor, qoi.valuetype)
  const isTyped = typeof declared === 'string' && declared !== notAvailable
  const kind = isTyped ? kinds.get(localName(declared).toLowerCase()) : 'any'
  if (kind === undefined) return undefined
  const [min, max] = [qoi.min, qoi.max].map((name) => sensor && numberOf(propertyValue(sensor, name)))
  const regexp = sensor && propertyValue(sensor, qoi.regexp)
  if (kind !== 'text' && (min ?? max) !== undefined) return { kind, min, max }
  if (kind !== 'number' && isPattern(regexp)) return { kind: 'text', regexp }
  if (kind === 'any') return usual?.kind === 'number' ? { ...usual, kind } : usual
  return usual?.kind === kind ? usual : undefined
}

function isPattern(regexp: unknown): regexp is string {
  if (typeof regexp !== 'string' || regexp === notAvailable) return false
  try {
    wholePattern(regexp)
    return true
  } catch {
    return false
  }
}

const kinds: ReadonlyMap<string, PlausibleRange['kind']> = new Map([
  ...['int', 'integer', 'long', 'double', 'float', 'decimal', 'number'].map(
    (name) => [name, 'number'] as const,
  ),
  ...['str', 'string', 'text'].map((name) => [name, 'text'] as const),
])

const localName = (type: string): string =>
  type.slice(Math.max(type.lastIndexOf('#'), type.lastIndexOf(':')) + 1)
