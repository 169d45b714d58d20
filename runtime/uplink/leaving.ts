/**
 * What went here as steps for the other broker: attributes and scopes that were dropped, entities that were deleted, histories
 * that were erased, and what their past is told of. Pure but for looking up what is and was.
 */
import type { Erased, Following } from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import { type AttributeInstance, attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import type { TombstoneRow } from '#store/entities.ts'
import type { Placing } from './placing.ts'
import type { Attributes, Came, Head, Step, Went } from './plan.ts'
import type { UplinkSelection } from './selection.ts'

export interface LeavingPorts {
  readonly selection: UplinkSelection
  readonly entity: (id: string) => EntityView | undefined
  /** All that went of what ever was under an id, the last at the end. */
  readonly droppedOf: Following['droppedOf']
  readonly gravesAfter: Following['gravesAfter']
  /** Whether something that came by a chain of brokers came from where it would go. */
  readonly isFromThere: (heard: string | undefined) => boolean
  readonly placing: Placing
}

/** By which it is known where an entity is, or was. */
export type PlacingPorts = Pick<LeavingPorts, 'entity' | 'gravesAfter' | 'isFromThere' | 'placing'>

/** What is to go of an entity where it is not there any more. */
export interface Leaving {
  readonly entity: Head
  /** What was told of its past. */
  readonly told: Attributes
  /** What it lost before it was deleted, as `name` or `name datasetId`. */
  readonly lost: readonly string[]
}

/** Steps by which goes what was told of an entity, or it lost, and is not there any more. */
export function leavesOf({ entity, told, lost }: Leaving, ports: LeavingPorts): readonly Step[] {
  const now = ports.entity(entity.id)?.entity()
  // What came again is told without what it was, when that is told.
  if (now !== undefined) return [...broughtBack(now, entity, told, ports)]
  const graves = ports.gravesAfter(entity.id, 0)
  const grave = graves.at(-1)
  const back = [...told].flatMap(([name, all]) => all.map(({ datasetId = '' }) => keyOf(name, datasetId)))
  const steps: readonly Step[] =
    grave === undefined
      ? [{ kind: 'remove', entity, had: new Set() }]
      : told.size + lost.length > 0
        ? removalOf(grave, undefined, ports)
        : stepsOfGrave(grave, undefined, ports)
  // What it was before it came again and went for good is there, too, where neither was told.
  const before = graves.flatMap((one) => stepsOfGrave(one, undefined, ports))
  const had = [...before, ...steps].flatMap((step) => (step.kind === 'remove' ? [...step.had] : []))
  const seen = seenOf([...told.values()].flat()) ?? 0
  return steps.map((step) =>
    step.kind === 'remove'
      ? { ...step, had: new Set([...had, ...back, ...lost]), seen: Math.max(step.seen ?? 0, seen) }
      : step,
  )
}

/**
 * Steps by which goes what an entity was before it came again, as far as it is not that now. It stays where it can: its
 * values may have gone up already.
 */
export function endsOf(
  head: Head,
  now: Entity,
  {
    graves,
    ...ports
  }: Pick<LeavingPorts, 'selection' | 'isFromThere'> & {
    readonly graves: readonly TombstoneRow[]
  },
): readonly Step[] {
  return graves.flatMap((grave) => {
    const was = JSON.parse(grave.doc) as Entity
    const ends = stepsOfGrave(grave, undefined, ports)
    if (ends.length === 0 || String(was.type) !== String(now.type)) return ends
    const scopes: readonly Step[] =
      was.scope !== undefined && now.scope === undefined && head.scope === undefined
        ? [dropOf(head, 'scope', {})]
        : []
    const attributes = attributeNames(was)
      .filter((name) => ports.selection.takesAttribute(name))
      .flatMap((name) =>
        instancesOf(was, name)
          .filter(({ datasetId = '' }) => !hasInstance(now, name, datasetId))
          .map(
            ({ datasetId = '' }): Step => ({
              ...{ kind: 'drop', entity: head, name, dataset: datasetId, at: grave.at },
            }),
          ),
      )
    return [...scopes, ...attributes]
  })
}

/** Drops of what an entity has no more and the past of it brings back. */
export function* broughtBack(
  now: Entity,
  { heard, ...entity }: Head & Came,
  told: Attributes,
  { droppedOf }: Pick<LeavingPorts, 'droppedOf'>,
): Generator<Step> {
  for (const [name, instances] of told) {
    const datasets = new Set(
      instances.flatMap(({ observedAt, datasetId = '' }) => (observedAt === undefined ? [] : [datasetId])),
    )
    for (const dataset of datasets) {
      if (hasInstance(now, name, dataset)) continue
      const key = keyOf(name, dataset)
      const at = droppedOf(entity.id).findLast((one) => one.key === key)?.at
      yield { kind: 'drop', entity, name, dataset, heard, at, seen: seenOf(instances) }
    }
  }
}

/** That an attribute instance goes, which is named as `keyOf` does. */
export function dropOf(entity: Head, key: string, went: Went & Came): Step {
  const [name = '', dataset = ''] = key.split(' ')
  return { kind: 'drop', entity, name, dataset, ...went }
}

/** How an attribute instance is named. */
export const keyOf = (name: string, dataset: string): string => (dataset === '' ? name : `${name} ${dataset}`)

/**
 * That an entity is gone, which is told where it was selected as it was last. What came from where it would go stays there, and
 * so does what this gateway did not send.
 */
export function stepsOfGrave(
  grave: TombstoneRow | undefined,
  heard: string | undefined,
  ports: Pick<LeavingPorts, 'selection' | 'isFromThere'>,
): readonly Step[] {
  const was = buriedIn(grave)
  return was === undefined || !ports.selection.takes(was) ? [] : removalOf(grave!, heard, ports)
}

/** The same of what is there, whatever it was last. */
function removalOf(
  grave: TombstoneRow,
  heard: string | undefined,
  { selection, isFromThere }: Pick<LeavingPorts, 'selection' | 'isFromThere'>,
): readonly Step[] {
  if (isFromThere(grave.heard ?? undefined)) return []
  const was = JSON.parse(grave.doc) as Entity
  const { id, type } = was
  const had = new Set(instanceKeys(was).filter((key) => selection.takesAttribute(key.split(' ', 1)[0]!)))
  const seen = seenOf(attributeNames(was).flatMap((name) => instancesOf(was, name)))
  return [{ kind: 'remove', entity: { id, type }, had, heard, at: grave.at, seen }]
}

/** The latest time (ms) at which any of these was observed. */
function seenOf(instances: readonly AttributeInstance[]): number | undefined {
  const times = instances.flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.max(a, b))
}

/** All attribute instances of an entity, as `name` or `name datasetId`. */
export const instanceKeys = (entity: Entity): readonly string[] =>
  attributeNames(entity).flatMap((name) =>
    instancesOf(entity, name).map(({ datasetId = '' }) => keyOf(name, datasetId)),
  )

export const hasInstance = (entity: Entity, name: string, dataset: string): boolean =>
  instancesOf(entity, name).some(({ datasetId = '' }) => datasetId === dataset)

/** Steps by which histories go that were erased here, of an entity that is there. */
export function stepsOfErased(
  now: Entity,
  erased: readonly Erased[],
  { selection, droppedOf }: Pick<LeavingPorts, 'selection' | 'droppedOf'>,
  heard?: string,
): readonly Step[] {
  if (!selection.takes(now)) return []
  const { id, type } = now
  const named = erased.flatMap((one) => {
    if (one.name !== '') return [one]
    const names = new Set([...attributeNames(now), ...droppedOf(id).map(({ name }) => name)])
    return [...names].map((name) => ({ name, dataset: '*' }))
  })
  return named
    .filter(({ name }) => name !== 'scope' && selection.takesAttribute(name))
    .map(({ name, dataset }): Step => ({ kind: 'erase', entity: { id, type }, name, dataset, heard }))
}

/** What is told of the past of an entity: one that is gone is created by it, and has the scope that it had. */
export function headOfPast(
  { id, type }: Head,
  { entity, gravesAfter, isFromThere, placing }: PlacingPorts,
): Head {
  const grave = entity(id) === undefined ? gravesAfter(id, 0).at(-1) : undefined
  if (grave === undefined) return { id, type }
  const was = JSON.parse(grave.doc) as Entity
  const scope = placing.scope(was.scope, isFromThere(grave.heard ?? undefined))
  return { id, type, ...(scope === undefined ? {} : { scope }) }
}

export const buriedIn = (grave: TombstoneRow | undefined): Entity | undefined =>
  grave && (JSON.parse(grave.doc) as Entity)
