/**
 * What went here as steps for the other broker: attributes and scopes that were dropped, entities that were deleted, histories
 * that were erased, and what their past is told of. Pure but for looking up what is and was.
 */

import type { Erased, Following } from '#broker/changes/change-feed.ts'
import type { Dropped } from '#broker/state/deletions.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import type { ScopePrefix } from './scope-prefix.ts'
import type { Attributes, DeletionTimes, Head, Provenance, Step } from './step-plan.ts'
import type { UplinkSelection } from './uplink-selection.ts'

export interface DeletionLookups {
  readonly selection: UplinkSelection
  readonly entity: (id: string) => EntityView | undefined
  /** All that went of what ever was under an id, the last at the end. */
  readonly droppedOf: Following['droppedOf']
  readonly gravesAfter: Following['gravesAfter']
  /** Whether something that came by a chain of brokers came from where it would go. */
  readonly isFromCentre: (heard: string | undefined) => boolean
  readonly scopePrefix: ScopePrefix
}

/** By which it is known where an entity is, or was. */
export type ScopeLookups = Pick<DeletionLookups, 'entity' | 'gravesAfter' | 'isFromCentre' | 'scopePrefix'>

/** A step by which an entity goes, as far as it is what was sent from here. */
type Removal = Step & { readonly kind: 'remove' }

/** What is to go of an entity where it is not there any more. */
export interface Resurrected {
  readonly entity: Head
  /** What was told of its past. */
  readonly past: Attributes
  /** What it lost before it was deleted, as `name` or `name datasetId`. */
  readonly lost: readonly string[]
}

/** Steps by which goes what was told of an entity, or it lost, and is not there any more. */
export function deletionsAfterPast(
  { entity, past, lost }: Resurrected,
  ports: DeletionLookups,
): readonly Step[] {
  const now = ports.entity(entity.id)?.entity()
  // What came again is told without what it was, when that is told.
  if (now !== undefined) return [...resurrectedDrops(now, entity, past, ports)]
  const graves = ports.gravesAfter(entity.id, 0)
  const grave = graves.at(-1)
  const back = [...past].flatMap(([name, all]) => all.map(({ datasetId = '' }) => keyOf(name, datasetId)))
  const steps: readonly Removal[] =
    grave === undefined
      ? [{ kind: 'remove', entity, had: new Set() }]
      : past.size + lost.length > 0
        ? removalOf(grave, undefined, ports)
        : removalSteps(grave, undefined, ports)
  // What it was before it came again and went for good is there, too, where neither was told.
  const before = graves.flatMap((one) => removalSteps(one, undefined, ports))
  const had = [...before, ...steps].flatMap((step) => [...step.had])
  const seen = latestObservation([...past.values()].flat()) ?? 0
  return steps.map((step) => ({
    ...step,
    had: new Set([...had, ...back, ...lost]),
    seen: Math.max(step.seen ?? 0, seen),
  }))
}

/** Earlier lives of an entity that was created again, of which the other broker may hold something. */
export interface EarlierLives {
  readonly tombstones: readonly TombstoneRow[]
  /** What these lives lost before they ended. */
  readonly lost: readonly Dropped[]
}

/**
 * Steps that delete at the other broker what earlier lives of an entity left there, but for what it has `now`; left out, none of
 * it was sent yet. A life of other types goes as a whole where the entity `isUnsent`: other brokers keep types otherwise.
 */
export function deletionsOfEarlierLives(
  head: Head,
  { tombstones, lost }: EarlierLives,
  {
    now,
    isUnsent,
    ...ports
  }: Pick<DeletionLookups, 'selection' | 'isFromCentre'> & {
    readonly now?: Entity
    readonly isUnsent: boolean
  },
): readonly Step[] {
  const present = new Set(now === undefined ? [] : instanceKeys(now))
  const had = new Set(ownKeys(lost, ports))
  const lives = tombstones.flatMap((grave) => removalSteps(grave, undefined, ports))
  const whole = new Set<string>()
  for (const life of lives) {
    const isOther = isUnsent && String(life.entity.type) !== String(now?.type ?? head.type)
    for (const key of life.had) (isOther ? whole : had).add(key)
  }
  const types = [...new Set(lives.flatMap(({ entity }) => listOf(entity.type)))]
  const left = had.difference(present).union(whole)
  const removal: Removal = {
    ...{ kind: 'remove', entity: { id: head.id, type: types }, had: left },
    at: latestOf(lives.map(({ at }) => at)),
    seen: latestOf(lives.map(({ seen }) => seen)),
  }
  const hadScope =
    lost.some(({ name }) => name === 'scope') ||
    tombstones.some(({ doc }) => (JSON.parse(doc) as Entity).scope !== undefined)
  const losesScope = hadScope && now?.scope === undefined && head.scope === undefined
  return [
    ...(lives.length === 0 || left.size === 0 ? [] : [removal]),
    ...(lives.length > 0 && losesScope ? [dropOf(head, 'scope', {})] : []),
  ]
}

/** Which attribute instances, of what was deleted here, are to be deleted at the other broker. */
export const ownKeys = (
  dropped: readonly Dropped[],
  { selection, isFromCentre }: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly string[] =>
  dropped.flatMap(({ key, name, heard }) =>
    name === 'scope' || !selection.takesAttribute(name) || isFromCentre(heard) ? [] : [key],
  )

const latestOf = (times: readonly (number | undefined)[]): number | undefined =>
  times.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined)

/** Drops of what an entity has no more and the past of it brings back. */
export function* resurrectedDrops(
  now: Entity,
  { heard, ...entity }: Head & Provenance,
  told: Attributes,
  { droppedOf }: Pick<DeletionLookups, 'droppedOf'>,
): Generator<Step> {
  for (const [name, instances] of told) {
    for (const dataset of new Set(instances.map(({ datasetId = '' }) => datasetId))) {
      if (hasInstance(now, name, dataset)) continue
      const key = keyOf(name, dataset)
      const at = droppedOf(entity.id).findLast((one) => one.key === key)?.at
      yield { kind: 'drop', entity, name, dataset, heard, at, seen: latestObservation(instances) }
    }
  }
}

/** That an attribute instance goes, which is named as `keyOf` does. */
export function dropOf(entity: Head, key: string, origin: DeletionTimes & Provenance): Step {
  const [name = '', dataset = ''] = key.split(' ')
  return { kind: 'drop', entity, name, dataset, ...origin }
}

/** How an attribute instance is named. */
export const keyOf = (name: string, dataset: string): string => (dataset === '' ? name : `${name} ${dataset}`)

/**
 * That an entity is gone, which is told where it was selected as it was last. What came from where it would go stays there, and
 * so does what this gateway did not send.
 */
export function removalSteps(
  grave: TombstoneRow | undefined,
  heard: string | undefined,
  ports: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly Removal[] {
  const was = lastDocument(grave)
  return was === undefined || !ports.selection.takes(was) ? [] : removalOf(grave!, heard, ports)
}

/** The same of what is there, whatever it was last. */
function removalOf(
  grave: TombstoneRow,
  heard: string | undefined,
  { selection, isFromCentre }: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly Removal[] {
  if (isFromCentre(grave.heard ?? undefined)) return []
  const was = JSON.parse(grave.doc) as Entity
  const { id, type } = was
  const had = new Set(instanceKeys(was).filter((key) => selection.takesAttribute(key.split(' ', 1)[0]!)))
  const seen = latestObservation(attributeNames(was).flatMap((name) => instancesOf(was, name)))
  return [{ kind: 'remove', entity: { id, type }, had, heard, at: grave.at, seen }]
}

/** The latest time (ms) at which any of these was observed. */
function latestObservation(instances: readonly AttributeInstance[]): number | undefined {
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
export function eraseSteps(
  now: Entity,
  erased: readonly Erased[],
  { selection, droppedOf }: Pick<DeletionLookups, 'selection' | 'droppedOf'>,
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
export function pastHead(
  { id, type }: Head,
  { entity, gravesAfter, isFromCentre, scopePrefix }: ScopeLookups,
): Head {
  const grave = entity(id) === undefined ? gravesAfter(id, 0).at(-1) : undefined
  if (grave === undefined) return { id, type }
  const was = JSON.parse(grave.doc) as Entity
  const scope = scopePrefix.scope(was.scope, isFromCentre(grave.heard ?? undefined))
  return { id, type, ...(scope === undefined ? {} : { scope }) }
}

export const lastDocument = (grave: TombstoneRow | undefined): Entity | undefined =>
  grave && (JSON.parse(grave.doc) as Entity)
