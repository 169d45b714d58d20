/**
 * Metadata of a stream: how often its values come, and which are plausible. Pure. It is read from the Sensor;
 * a range that is missing there comes from the table of usual properties.
 */
import { iotStream, notAvailable, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isList, isObject, own } from '#ngsi-ld/values/json.ts'
import { numberOf } from './numbers.ts'
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
  const label = typeof text === 'string' && text !== notAvailable ? text.trim().toLowerCase() : undefined
  const places = [sensor, stream, platform].map((entity) => entity && placeOf(entity))
  return {
    intervalMs: sensor && intervalOf(sensor),
    range: (sensor && rangeOf(sensor)) ?? (label === undefined ? undefined : usual.rangeOf(label)),
    label,
    place: places.find((place) => place !== undefined),
    isInferred: sensor?.id.endsWith(':VS') === true || linksOf(stream, derivedFrom).length > 0,
  }
}

/** The value of the first instance of a Property. */
export function propertyValue(entity: Entity, name: string): unknown {
  const [instance] = instancesOf(entity, name)
  return instance && own(instance, 'value')
}

/** The ids that a Relationship names. */
export function linksOf(entity: Entity, ...names: readonly string[]): string[] {
  const objects = names
    .flatMap((name) => instancesOf(entity, name))
    .flatMap((one) => own(one, 'object') ?? [])
  return objects.filter((id) => typeof id === 'string')
}

/** The Sensor of a stream. */
export const sensorOf = (stream: Entity): string | undefined => linksOf(stream, iotStream.generatedBy)[0]

/** The observed property of a stream or a Sensor. */
export const propertyOf = (entity: Entity): string | undefined =>
  linksOf(entity, sosa.observes, iotStream.observes)[0]

/** The update interval, ms. Without a unit it counts in seconds; undefined if it is none. */
function intervalOf(sensor: Entity): number | undefined {
  const [instance] = instancesOf(sensor, qoi.updateinterval)
  const length = numberOf(instance && own(instance, 'value'))
  if (instance === undefined || length === undefined || length <= 0) return undefined
  const nested = own(instance, qoi.unit)
  const unit = (isObject(nested) ? own(nested, 'value') : nested) ?? own(instance, 'unitCode') ?? 'seconds'
  const unitMs = typeof unit === 'string' ? unitsMs.get(unit.trim().toLowerCase()) : undefined
  return unitMs === undefined ? undefined : length * unitMs
}

/** Names and UN/CEFACT codes of units of time, in ms. */
const unitsMs: ReadonlyMap<string, number> = new Map(
  (
    [
      [1, 'ms msec millisecond milliseconds c26'],
      [1000, 's sec secs second seconds sec. unit:sec'],
      [60_000, 'min mins minute minutes min. unit:min'],
      [3_600_000, 'h hr hrs hour hours hur unit:hr'],
      [86_400_000, 'd day days unit:day'],
      [604_800_000, 'w week weeks wee unit:wk'],
    ] as const
  ).flatMap(([ms, names]) => names.split(' ').map((name) => [name, ms] as const)),
)

/** The declared range; undefined if nothing usable is declared. */
function rangeOf(sensor: Entity): PlausibleRange | undefined {
  const type = propertyValue(sensor, qoi.valuetype)
  const [min, max] = [numberOf(propertyValue(sensor, qoi.min)), numberOf(propertyValue(sensor, qoi.max))]
  const regexp = propertyValue(sensor, qoi.regexp)
  const kind = typeof type === 'string' ? kinds.get(localName(type)) : undefined
  if (kind === 'text') return isPattern(regexp) ? { kind, regexp } : undefined
  if (min !== undefined || max !== undefined) return { kind: 'number', min, max }
  return undefined
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

function placeOf(entity: Entity): readonly [number, number] | undefined {
  const geometry = propertyValue(entity, 'location')
  if (!isObject(geometry) || geometry['type'] !== 'Point' || !isList(geometry['coordinates']))
    return undefined
  const [longitude, latitude] = geometry['coordinates']
  return typeof longitude === 'number' && typeof latitude === 'number' ? [longitude, latitude] : undefined
}
