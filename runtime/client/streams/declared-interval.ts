/** The update interval of a Sensor, with the units that people and vocabularies use. Pure. */
import { qoi } from '#contract/vocabulary.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { numberOf } from './stream-entities.ts'

/** The update interval, ms. Without a unit it counts in seconds; undefined if it is none. */
export function intervalOf(sensor: Entity): number | undefined {
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
