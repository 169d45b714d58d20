/**
 * What the history of an entity holds already of what a client tells of its past (GS CIM 009, 5.6.11 and 5.6.12):
 * instances at the times that it names, scopes too. Nothing is written here; what is known is not to be told twice.
 */
import type { Json } from '#contract/pipeline.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import type { AttributeInstance } from '#ngsi-ld/entity.ts'
import { sameJson } from '#ngsi-ld/json.ts'
import type { TimedInstance } from '#ngsi-ld/temporal.ts'
import type { PastInstance, TemporalEntity, TemporalFragment } from '#ngsi-ld/temporal-entity.ts'
import { evolutionOf } from './evolution.ts'
import type { EvolutionPorts } from './evolution-sources.ts'

/** What there is at the observed times of some instances, by place. */
export function presentAt(
  ports: EvolutionPorts,
  id: string,
  name: string,
  instances: readonly AttributeInstance[],
): Map<string, TimedInstance[]> {
  const times = instances.flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  if (times.length === 0) return new Map()
  // Instances are in order of time.
  const window = { timerel: 'between', timeAtMs: times[0]!, endTimeAtMs: times.at(-1)! + 1 } as const
  const attrs = new Set([name])
  const query = { ...window, timeproperty: 'observedAt', attrs, limit: Number.MAX_SAFE_INTEGER } as const
  const found = evolutionOf(ports, id, query)?.attributes.get(name) ?? []
  return Map.groupBy(found, ({ instance }) => placeOf(instance))
}

/** An entity with what is not known yet of any of those that had its id. */
export function unknownOf(ports: EvolutionPorts, entity: TemporalEntity): TemporalEntity {
  const attributes = new Map<string, readonly AttributeInstance[]>()
  for (const [name, instances] of entity.attributes) {
    const present = presentAt(ports, entity.id, name, instances)
    const isKnown = (instance: AttributeInstance): boolean =>
      present.get(placeOf(instance))?.some((one) => isSame(one.instance, instance)) === true
    const unknown = present.size === 0 ? instances : instances.filter((instance) => !isKnown(instance))
    if (unknown.length > 0) attributes.set(name, unknown)
  }
  return { ...entity, attributes }
}

export function unknownPast(
  ports: EvolutionPorts,
  { id, past = [] }: TemporalEntity,
): readonly PastInstance[] {
  if (past.length === 0) return past
  const told = toldAt(ports, id, past)
  return past.filter((one) => !told.has(textOf(one)))
}

/** What is known of the span of time that instances without observedAt are of. */
function toldAt(ports: EvolutionPorts, id: string, past: readonly PastInstance[]): ReadonlySet<string> {
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

/** Time and dataset of an instance. */
export const placeOf = ({ observedAt, datasetId }: AttributeInstance): string =>
  `${observedAt ?? ''} ${datasetId ?? ''}`

/** The order of members tells nothing; what came another way has another. */
export const isSame = (a: AttributeInstance | undefined, b: AttributeInstance | undefined): boolean =>
  sameJson(a as Json | undefined, b as Json | undefined)

/** Whether the newest scopes of a fragment were observed before those that the history ends with. */
export function hasNewerScope(ports: EvolutionPorts, id: string, { scopeAt }: TemporalFragment): boolean {
  if (scopeAt === undefined) return false
  const query = { timeproperty: 'observedAt', attrs: new Set(['scope']), lastN: 1, limit: 1 } as const
  const [last] = evolutionOf(ports, id, query)?.attributes.get('scope') ?? []
  return (last?.observedAt ?? Number.NEGATIVE_INFINITY) > scopeAt
}

/** Observed scopes that the history lacks, and which of its instances give way to them. */
export function unknownScopes(ports: EvolutionPorts, id: string, { scopes = [] }: TemporalFragment) {
  const present = presentAt(ports, id, 'scope', scopes)
  const thereOf = (one: AttributeInstance) => present.get(placeOf(one)) ?? []
  const unknown = scopes.filter((one) => !thereOf(one).some(({ instance }) => isSame(instance, one)))
  return {
    added: unknown.filter((one) => thereOf(one).length === 0),
    replaced: unknown.flatMap((one) =>
      thereOf(one)
        .slice(-1)
        .map(({ instanceId }) => [instanceId, one] as const),
    ),
  }
}
