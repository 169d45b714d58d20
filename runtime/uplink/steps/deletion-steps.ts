/**
 * Translates local deletions into steps for the centre: deleted attributes and scopes, deleted entities,
 * erased histories, and the head under which past values are sent. Pure except for lookups of present and
 * past entities.
 */

import type { ChangeFeed, Erased } from '#broker/changes/change-feed.ts'
import type { DeletedInstance } from '#broker/state/deletions.ts'
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
  /** All deletions of attributes under an id in any of its lives, latest last. */
  readonly deletionsUnder: ChangeFeed['deletionsUnder']
  readonly tombstonesAfter: ChangeFeed['tombstonesAfter']
  /** Whether a change with this Via chain came from the centre. */
  readonly isFromCentre: (via: string | undefined) => boolean
  readonly scopePrefix: ScopePrefix
}

/** Lookups needed to determine the scope of an entity. */
export type ScopeLookups = Pick<
  DeletionLookups,
  'entity' | 'tombstonesAfter' | 'isFromCentre' | 'scopePrefix'
>

/** A step that deletes what this gateway sent of an entity. */
type Removal = Step & { readonly kind: 'remove' }

/** An entity that sending its past may have resurrected at the centre. */
export interface Resurrected {
  readonly entity: Head
  /** The past values that were sent. */
  readonly past: Attributes
  /** Attributes deleted before the entity, as `name` or `name datasetId`. */
  readonly lost: readonly string[]
}

/** Steps that delete past values sent for a deleted entity, or attributes deleted from an existing one. */
export function deletionsAfterPast(
  { entity, past, lost }: Resurrected,
  ports: DeletionLookups,
): readonly Step[] {
  const now = ports.entity(entity.id)?.entity()
  // A re-created entity is sent without its earlier attributes when its turn comes.
  if (now !== undefined) return [...resurrectedDrops(now, entity, past, ports)]
  const tombstones = ports.tombstonesAfter(entity.id, 0)
  const tombstone = tombstones.at(-1)
  const back = [...past].flatMap(([name, all]) => all.map(({ datasetId = '' }) => keyOf(name, datasetId)))
  const steps: readonly Removal[] =
    tombstone === undefined
      ? [{ kind: 'remove', entity, had: new Set() }]
      : past.size + lost.length > 0
        ? removalOf(tombstone, undefined, ports)
        : removalSteps(tombstone, undefined, ports)
  // If neither the re-creation nor the final deletion was sent, the centre may still hold attributes from the
  // entity's earlier lives.
  const before = tombstones.flatMap((one) => removalSteps(one, undefined, ports))
  const had = [...before, ...steps].flatMap((step) => [...step.had])
  const seen = latestObservation([...past.values()].flat()) ?? 0
  return steps.map((step) => ({
    ...step,
    had: new Set([...had, ...back, ...lost]),
    seen: Math.max(step.seen ?? 0, seen),
  }))
}

/** Earlier lives of a re-created entity that may have left attributes at the centre. */
export interface EarlierLives {
  readonly tombstones: readonly TombstoneRow[]
  /** Attributes deleted during these lives. */
  readonly lost: readonly DeletedInstance[]
}

/**
 * Steps that delete at the centre what earlier lives of an entity left there, except attributes it has `now`;
 * without `now`, none of the current life was sent. If the entity `isUnsent`, a life with other types is
 * deleted as a whole, because other brokers never remove types.
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
  const lives = tombstones.flatMap((tombstone) => removalSteps(tombstone, undefined, ports))
  const whole = new Set<string>()
  for (const life of lives) {
    const isOther = isUnsent && String(life.entity.type) !== String(now?.type ?? head.type)
    for (const key of life.had) (isOther ? whole : had).add(key)
  }
  const types = [...new Set(lives.flatMap(({ entity }) => listOf(entity.type)))]
  const left = had.difference(present).union(whole)
  const removal: Removal = {
    kind: 'remove',
    entity: { id: head.id, type: types },
    had: left,
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

/** Attribute instances, among those deleted here, to be deleted at the centre. */
export const ownKeys = (
  dropped: readonly DeletedInstance[],
  { selection, isFromCentre }: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly string[] =>
  dropped.flatMap(({ key, name, via }) =>
    name === 'scope' || !selection.takesAttribute(name) || isFromCentre(via) ? [] : [key],
  )

const latestOf = (times: readonly (number | undefined)[]): number | undefined =>
  times.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined)

/** Deletes attribute instances that the entity no longer has and its past values resurrect. */
export function* resurrectedDrops(
  now: Entity,
  { via, ...entity }: Head & Provenance,
  past: Attributes,
  { deletionsUnder }: Pick<DeletionLookups, 'deletionsUnder'>,
): Generator<Step> {
  for (const [name, instances] of past) {
    for (const dataset of new Set(instances.map(({ datasetId = '' }) => datasetId))) {
      if (hasInstance(now, name, dataset)) continue
      const key = keyOf(name, dataset)
      const at = deletionsUnder(entity.id).findLast((one) => one.key === key)?.at
      yield { kind: 'drop', entity, name, dataset, via, at, seen: latestObservation(instances) }
    }
  }
}

/** A step that deletes an attribute instance, named as by `keyOf`. */
export function dropOf(entity: Head, key: string, origin: DeletionTimes & Provenance): Step {
  const [name = '', dataset = ''] = key.split(' ')
  return { kind: 'drop', entity, name, dataset, ...origin }
}

/** The key of an attribute instance. */
export const keyOf = (name: string, dataset: string): string => (dataset === '' ? name : `${name} ${dataset}`)

/**
 * Steps for a deleted entity, if its last state was selected. An entity that came from the centre, and
 * attributes that this gateway did not send, stay there.
 */
export function removalSteps(
  tombstone: TombstoneRow | undefined,
  via: string | undefined,
  ports: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly Removal[] {
  const was = lastDocument(tombstone)
  return was === undefined || !ports.selection.takes(was) ? [] : removalOf(tombstone!, via, ports)
}

/** Same, whatever its last state. */
function removalOf(
  tombstone: TombstoneRow,
  via: string | undefined,
  { selection, isFromCentre }: Pick<DeletionLookups, 'selection' | 'isFromCentre'>,
): readonly Removal[] {
  if (isFromCentre(tombstone.via ?? undefined)) return []
  const was = JSON.parse(tombstone.doc) as Entity
  const { id, type } = was
  const had = new Set(instanceKeys(was).filter((key) => selection.takesAttribute(key.split(' ', 1)[0]!)))
  const seen = latestObservation(attributeNames(was).flatMap((name) => instancesOf(was, name)))
  return [{ kind: 'remove', entity: { id, type }, had, via, at: tombstone.at, seen }]
}

/** The latest observation time (ms). */
function latestObservation(instances: readonly AttributeInstance[]): number | undefined {
  const times = instances.flatMap(({ observedAt }) => dateTimeToMs(observedAt ?? '') ?? [])
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.max(a, b))
}

/** The attribute instances of an entity, as `name` or `name datasetId`. */
export const instanceKeys = (entity: Entity): readonly string[] =>
  attributeNames(entity).flatMap((name) =>
    instancesOf(entity, name).map(({ datasetId = '' }) => keyOf(name, datasetId)),
  )

export const hasInstance = (entity: Entity, name: string, dataset: string): boolean =>
  instancesOf(entity, name).some(({ datasetId = '' }) => datasetId === dataset)

/** Steps that erase at the centre the histories erased here, for an existing entity. */
export function eraseSteps(
  now: Entity,
  erased: readonly Erased[],
  { selection, deletionsUnder }: Pick<DeletionLookups, 'selection' | 'deletionsUnder'>,
  via?: string,
): readonly Step[] {
  if (!selection.takes(now)) return []
  const { id, type } = now
  const named = erased.flatMap((one) => {
    if (one.name !== '') return [one]
    const names = new Set([...attributeNames(now), ...deletionsUnder(id).map(({ name }) => name)])
    return [...names].map((name) => ({ name, dataset: '*' }))
  })
  return named
    .filter(({ name }) => name !== 'scope' && selection.takesAttribute(name))
    .map(({ name, dataset }): Step => ({ kind: 'erase', entity: { id, type }, name, dataset, via }))
}

/**
 * The head under which the past of an entity is sent. A deleted entity is created by it, so it carries its
 * last scope.
 */
export function pastHead(
  { id, type }: Head,
  { entity, tombstonesAfter, isFromCentre, scopePrefix }: ScopeLookups,
): Head {
  const tombstone = entity(id) === undefined ? tombstonesAfter(id, 0).at(-1) : undefined
  if (tombstone === undefined) return { id, type }
  const was = JSON.parse(tombstone.doc) as Entity
  const scope = scopePrefix.scope(was.scope, isFromCentre(tombstone.via ?? undefined))
  return { id, type, ...(scope === undefined ? {} : { scope }) }
}

export const lastDocument = (tombstone: TombstoneRow | undefined): Entity | undefined =>
  tombstone && (JSON.parse(tombstone.doc) as Entity)
