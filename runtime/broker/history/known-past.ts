/**
 * Compares the instances that a client adds to a history (GS CIM 009, 5.6.11 and 5.6.12) with the stored
 * ones, so that none is stored twice. Scopes are included. An instance with another value is another
 * instance, also at the same time. Nothing is written here.
 */
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { PastInstance, TemporalFragment } from '#ngsi-ld/history/temporal-entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { sameJson, stableJson } from '#ngsi-ld/values/json.ts'
import { evolutionOf } from './evolution.ts'
import type { EvolutionPorts } from './evolution-sources.ts'

/** The fragment without the instances that the history of an entity already contains. */
export function unknownOf<Given extends TemporalFragment>(
  ports: EvolutionPorts,
  id: string,
  fragment: Given,
): Given {
  const attributes = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of fragment.attributes) {
    const unknown = unknownIn(ports, id, name, instances)
    if (unknown.length > 0) attributes.set(name, unknown)
  }
  return { ...fragment, attributes }
}

function unknownIn(
  ports: EvolutionPorts,
  id: string,
  name: string,
  instances: readonly AttributeInstance[],
): readonly AttributeInstance[] {
  const known = knownAt(ports, id, name, instances)
  return known.size === 0 ? instances : instances.filter((instance) => !known.has(instanceText(instance)))
}

/** Texts of the stored instances from the first to the last observed time of some instances. */
function knownAt(
  ports: EvolutionPorts,
  id: string,
  name: string,
  instances: readonly AttributeInstance[],
): ReadonlySet<string> {
  const times = instances.flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  if (times.length === 0) return new Set()
  // Instances are in order of time.
  const window = { timerel: 'between', timeAtMs: times[0]!, endTimeAtMs: times.at(-1)! + 1 } as const
  const attrs = new Set([name])
  const query = { ...window, timeproperty: 'observedAt', attrs, limit: Number.MAX_SAFE_INTEGER } as const
  const found = evolutionOf(ports, id, query)?.attributes.get(name) ?? []
  const wanted = new Set(times)
  return new Set(
    found.filter(({ observedAt }) => wanted.has(observedAt!)).map(({ instance }) => instanceText(instance)),
  )
}

/** The order of members is irrelevant; another broker may send another order. */
const instanceText = (instance: AttributeInstance): string => stableJson(instance as Json)

/** Instances without observedAt, in order of time, without those that the history already contains. */
export function unknownPast(
  ports: EvolutionPorts,
  id: string,
  past: readonly PastInstance[] = [],
): readonly PastInstance[] {
  if (past.length === 0) return past
  const stored = storedAt(ports, id, past)
  return past.filter((one) => !stored.has(textOf(one)))
}

/** Texts of the stored instances in the time span of instances without observedAt. */
function storedAt(ports: EvolutionPorts, id: string, past: readonly PastInstance[]): ReadonlySet<string> {
  const window = { timerel: 'between', timeAtMs: past[0]!.at, endTimeAtMs: past.at(-1)!.at + 1 } as const
  const attrs = new Set(past.map(({ name }) => name))
  const query = { ...window, timeproperty: 'modifiedAt', unobserved: true, attrs } as const
  const found = evolutionOf(ports, id, { ...query, limit: Number.MAX_SAFE_INTEGER })?.attributes ?? []
  const texts = [...found].flatMap(([name, list]) =>
    list.map(({ instance, modifiedAt, deletedAt }) =>
      textOf({
        name,
        dataset: instance.datasetId ?? '',
        instance: deletedAt === undefined ? instance : null,
        at: modifiedAt,
      }),
    ),
  )
  return new Set(texts)
}

const textOf = ({ name, dataset, instance, at }: Omit<PastInstance, 'type'>): string =>
  JSON.stringify([name, dataset, instance, at])

/** Compares instances regardless of the order of members, which may differ between paths. */
export const isSame = (a: AttributeInstance | undefined, b: AttributeInstance | undefined): boolean =>
  a?.observedAt === b?.observedAt && sameJson(a as Json | undefined, b as Json | undefined)

/** Whether the history already contains the newest scopes of a fragment, or ends with newer ones. */
export function isOldScope(
  ports: EvolutionPorts,
  id: string,
  { scopeAt, scopes }: TemporalFragment,
): boolean {
  const newest = scopeAt === undefined ? undefined : scopes?.at(-1)
  if (newest === undefined || scopeAt === undefined) return false
  if (unknownIn(ports, id, 'scope', [newest]).length === 0) return true
  const query = { timeproperty: 'observedAt', attrs: new Set(['scope']), lastN: 1, limit: 1 } as const
  const [last] = evolutionOf(ports, id, query)?.attributes.get('scope') ?? []
  return (last?.observedAt ?? Number.NEGATIVE_INFINITY) > scopeAt
}

/** The observed scopes of a fragment that the history does not contain yet. */
export const unknownScopes = (
  ports: EvolutionPorts,
  id: string,
  { scopes = [] }: TemporalFragment,
): readonly AttributeInstance[] => unknownIn(ports, id, 'scope', scopes)
