/**
 * Compares an entity at the centre with the local one, and plans the steps that make them equal. Missing or
 * different attributes are sent, attributes deleted here are deleted, and later writes at the centre are
 * kept. Sends nothing itself.
 */

import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { type AttributeInstance, systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { isSubAttribute } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { covers } from '#ngsi-ld/federation/digest.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'
import { remoteInstance, remoteKeys, remoteTime } from '#uplink/centre/response-shapes.ts'
import { withoutTime } from '#uplink/steps/change-steps.ts'
import { type DeletionLookups, dropOf, instanceKeys, keyOf } from '#uplink/steps/deletion-steps.ts'
import { isBelow, isSameScope } from '#uplink/steps/scope-prefix.ts'
import type { Head, Step } from '#uplink/steps/step-plan.ts'

/**
 * Whether other clients may have written an attribute instance at the centre, by `name` or `name datasetId`.
 * An instance that only came from here is never newer there, whatever the clocks say.
 */
export type IsForeign = (key: string) => boolean

/** Steps that delete at the centre what was deleted here, unless other clients wrote it since. */
export function surplusOf(
  view: EntityView,
  there: Entity,
  {
    following,
    lookups,
    isForeign,
    onNewer,
  }: {
    readonly following: Pick<ChangeFeed, 'deletionsUnder'>
    readonly lookups: Pick<DeletionLookups, 'selection' | 'isFromCentre' | 'scopePrefix'>
    readonly isForeign: IsForeign
    readonly onNewer: () => void
  },
): readonly Step[] {
  const entity = view.entity()
  const current = new Set(instanceKeys(entity))
  const more = new Set(remoteKeys(there).filter((key) => !current.has(key)))
  if (losesScope(view, there, lookups)) more.add('scope')
  if (more.size === 0 || !lookups.selection.takes(entity)) return []
  const { id, type } = entity
  const last = new Map(following.deletionsUnder(id).map((one) => [one.key, one]))
  return [...more].flatMap((key): Step[] => {
    const gone = last.get(key)
    // An instance that no other client wrote came from here, even if no record of its deletion is left.
    const isOurs = key !== 'scope' && !isForeign(key)
    if ((gone === undefined && !isOurs) || lookups.isFromCentre(gone?.via)) return []
    const drop = dropOf({ id, type }, key, {})
    if (key === 'scope') return [drop]
    if (!lookups.selection.takesAttribute(key.split(' ', 1)[0]!)) return []
    const known = remoteInstance(there, key)
    if (isOurs || known === undefined || gone === undefined || !isWrittenAfter(known, gone.at)) return [drop]
    onNewer()
    return []
  })
}

/** Whether the entity has a scope at the centre but should have none there. */
const losesScope = (
  view: EntityView,
  there: Entity,
  { scopePrefix, isFromCentre }: Pick<DeletionLookups, 'scopePrefix' | 'isFromCentre'>,
): boolean => {
  const bornThere = isFromCentre(view.times().attributes['']?.[2])
  return (
    !bornThere && there.scope !== undefined && scopePrefix.scope(view.entity().scope, bornThere) === undefined
  )
}

/**
 * Attribute instances (`name` or `name datasetId`) at the centre to keep although their entity was deleted
 * here at a time (ms): those of other clients. If their authors are unknown, modification times decide.
 * Undefined keeps everything: modification times are missing too, or the entity was created since.
 */
export function keysToKeep(
  at: number,
  there: Entity,
  isForeign: IsForeign | undefined,
): ReadonlySet<string> | undefined {
  const keys = remoteKeys(there)
  if (isForeign !== undefined && keys.length > 0) return new Set(keys.filter(isForeign))
  const created = remoteTime(there['createdAt'])
  if (created === undefined || created > at) return undefined
  return new Set(
    keys.filter((key) => {
      const one = remoteInstance(there, key)
      return one !== undefined && isWrittenAfter(one, at)
    }),
  )
}

export interface Comparison {
  readonly times: SystemTimes
  readonly placedBefore: string | undefined
  /** Undefined if unknown: then the centre may hold more than it was sent, by its own rules. */
  readonly isForeign: IsForeign | undefined
  /**
   * Whether the local history holds an instance (`name` or `name datasetId`), which then was current here
   * before.
   */
  readonly isHeld: (key: string, instance: AttributeInstance) => boolean
  readonly onNewer: () => void
}

/**
 * The steps that are not yet reflected at the centre; instances that are newer there, and unknown here, are
 * kept.
 */
export function differenceOf(
  steps: readonly Step[],
  there: Entity | undefined,
  { times, placedBefore, isForeign, isHeld, onNewer }: Comparison,
): readonly Step[] {
  if (there === undefined) return steps
  const isSelvedge = isForeign !== undefined
  const mayBeForeign = isForeign ?? (() => true)
  const writtenHere = (key: string): number =>
    mayBeForeign(key) ? (times.attributes[key]?.[1] ?? times.modified) : Number.POSITIVE_INFINITY
  const isDecidedHere = (key: string, known: AttributeInstance): boolean =>
    !mayBeForeign(key) && known.observedAt !== undefined && isHeld(key, known)
  return steps.flatMap((step) => {
    if (step.kind !== 'put') return []
    const attributes = new Map<string, readonly AttributeInstance[]>()
    for (const [name, instances] of step.attributes) {
      const theirs = new Map(instancesOf(there, name).map((one) => [keyOf(name, one.datasetId ?? ''), one]))
      const others = instances.filter((one) => {
        const key = keyOf(name, one.datasetId ?? '')
        const known = theirs.get(key)
        if (known === undefined) return true
        if (isSameThere(known, withoutTime(one), isSelvedge)) return false
        if (!isNewer(known, one, writtenHere(key)) || isDecidedHere(key, known)) return true
        onNewer()
        return false
      })
      if (others.length > 0) attributes.set(name, others)
    }
    const { entity } = step
    const isPlaced = entity.scope === undefined || isSameScope(entity.scope, there.scope)
    const stays = entity.scope === undefined && placedBefore !== undefined && there.scope !== undefined
    const lifts: readonly Step[] =
      stays && isBelow(there.scope, placedBefore)
        ? [{ kind: 'drop', entity, name: 'scope', dataset: '' }]
        : []
    const isTyped = hasTypes(there, entity, isSelvedge)
    return attributes.size === 0 && isPlaced && isTyped ? lifts : [...lifts, { ...step, attributes }]
  })
}

/** A Selvedge holds exactly what it was sent; any other broker may hold more. */
const isSameThere = (known: AttributeInstance, one: AttributeInstance, isSelvedge: boolean): boolean =>
  covers(known, one) && (!isSelvedge || covers(one, withoutStamps(known)))

/** Removes system times from an attribute instance and its sub-attributes. */
function withoutStamps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutStamps)
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([name]) => !systemMembers.has(name))
  return Object.fromEntries(
    members.map(([name, one]) => [name, isSubAttribute(name) ? withoutStamps(one) : one]),
  )
}

/** Whether the centre's entity has the local types, and no others if the local types are complete. */
function hasTypes(there: Entity, { type, statesTypes }: Head, isSelvedge: boolean): boolean {
  const theirs = new Set(listOf(there.type))
  const ours = new Set(listOf(type))
  return ours.isSubsetOf(theirs) && (!isSelvedge || statesTypes !== true || theirs.isSubsetOf(ours))
}

/** Compares observation times if both have one; otherwise modification times, by the clocks of both. */
function isNewer(known: AttributeInstance, one: AttributeInstance, writtenAt: number): boolean {
  const [there, here] = [known, one].map(({ observedAt }) => dateTimeToMs(observedAt ?? ''))
  if (there !== undefined && here !== undefined && there !== here) return there > here
  return isWrittenAfter(known, writtenAt)
}

const isWrittenAfter = ({ modifiedAt }: AttributeInstance, ms: number): boolean =>
  (remoteTime(modifiedAt) ?? 0) > ms
