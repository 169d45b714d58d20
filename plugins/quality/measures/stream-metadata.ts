/**
 * Metadata of a stream: how often its values come, and which are plausible. Pure. It is read from the Sensor;
 * a range that is missing there comes from the table of usual properties.
 */
import { linksOf, numberOf, placeOf, propertyValue } from '#client/stream-entities.ts'
import { iotStream, notAvailable, qoi, rdfsLabel, sosa } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
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

/** The update interval, ms. Without a unit it counts in seconds; undefined if it is none. */
function intervalOf(sensor: Entity): number | undefined {
  const [instance] = instancesOf(sensor, qoi.updateinterval)
  const length = numberOf(instance && own(instance, 'value'))
  if (instance === undefined || length === undefined || length <= 0) return undefined
  const nested = own(instance, qoi.unit)
  const unit = (isObject(nested) ? own(nested, 'value') : nested) ?? own(instance, 'unitCode') ?? 'seconds'
  const unitMs = typeof unit === 'string' ? unitsMs.get(unitName(unit)) : undefined
  return unitMs === undefined ? undefined : length * unitMs
}

/** The name of a unit, of its IRI or prefixed name the last part, in lower case. */
const unitName = (unit: string): string =>
  unit
    .trim()
    .replace(/^.*[/#:]|\.$/g, '')
    .toLowerCase()

/** Names, UN/CEFACT and QUDT codes of units of time, in ms; months and years are mean ones. */
const unitsMs: ReadonlyMap<string, number> = new Map(
  (
    [
      [1, 'ms msec millisecond milliseconds millisec c26'],
      [1000, 's sec secs second seconds'],
      [60_000, 'm min mins minute minutes'],
      [3_600_000, 'h hr hrs hour hours hur'],
      [86_400_000, 'd day days'],
      [604_800_000, 'w wk week weeks wee'],
      [2_629_800_000, 'mo mon month months'],
      [31_557_600_000, 'a y yr year years ann'],
    ] as const
  ).flatMap(([ms, names]) => names.split(' ').map((name) => [name, ms] as const)),
)

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
