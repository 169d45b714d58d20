/**
 * What an entity is over there and here, and what is to be done that it is the same: what is missing or other is told, what went
 * here goes, and what was written later over there stays. Reads, and sends nothing.
 */
import type { Following } from '#broker/changes/change-feed.ts'
import type { EntityView, SystemTimes } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { systemMembers } from '#ngsi-ld/entity/attribute.ts'
import { isSubAttribute } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { covers } from '#ngsi-ld/federation/digest.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { isObject, listOf } from '#ngsi-ld/values/json.ts'
import { remoteInstance, remoteKeys, remoteTime } from '#uplink/centre/response-shapes.ts'
import { withoutTime } from '#uplink/steps/change-steps.ts'
import { type DeletionLookups, dropOf, instanceKeys, keyOf } from '#uplink/steps/deletion-steps.ts'
import { isBelow, isSameScope } from '#uplink/steps/scope-prefix.ts'
import type { Head, Step } from '#uplink/steps/step-plan.ts'

/**
 * Whether others may have written an attribute instance over there, by `name` or `name datasetId`. What only came from here is never
 * newer there, whatever the clocks of both say.
 */
export type IsForeign = (key: string) => boolean

/** Steps that delete at the other broker what was deleted here, where nobody wrote it there since. */
export function surplusOf(
  view: EntityView,
  there: Entity,
  {
    following,
    lookups,
    isForeign,
    onNewer,
  }: {
    readonly following: Pick<Following, 'droppedOf'>
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
  const last = new Map(following.droppedOf(id).map((one) => [one.key, one]))
  return [...more].flatMap((key): Step[] => {
    const gone = last.get(key)
    // What nobody else wrote there came from here, also where no record of its deletion is left.
    const isOurs = key !== 'scope' && !isForeign(key)
    if ((gone === undefined && !isOurs) || lookups.isFromCentre(gone?.heard)) return []
    const drop = dropOf({ id, type }, key, {})
    if (key === 'scope') return [drop]
    if (!lookups.selection.takesAttribute(key.split(' ', 1)[0]!)) return []
    const known = remoteInstance(there, key)
    if (isOurs || known === undefined || gone === undefined || !isWrittenAfter(known, gone.at)) return [drop]
    onNewer()
    return []
  })
}

/** Whether the entity has a scope over there, and none here that it would have there. */
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
 * The attribute instances, by `name` or `name datasetId`, of an entity over there that stay though it was deleted here at a time
 * (ms): those that others wrote. Where it is not said whose they are, when they were written decides; undefined where that is not
 * said either, or where the entity came into being since, of which all stays.
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
  /** Undefined where nobody tells: then the other broker may hold more than it was sent, by its own rules. */
  readonly isForeign: IsForeign | undefined
  /** Whether the history here holds an instance, by `name` or `name datasetId`: then it was current here before. */
  readonly isHeld: (key: string, instance: AttributeInstance) => boolean
  readonly onNewer: () => void
}

/** What of the steps of an entity is not over there; what is newer there, and unknown here, stays as it is. */
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

/** Another gateway holds what it was sent and nothing else; any other broker may hold more. */
const isSameThere = (known: AttributeInstance, one: AttributeInstance, isSelvedge: boolean): boolean =>
  covers(known, one) && (!isSelvedge || covers(one, withoutStamps(known)))

/** An attribute instance, and those below it, without the times of their writing. */
function withoutStamps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutStamps)
  if (!isObject(value)) return value
  const members = Object.entries(value).filter(([name]) => !systemMembers.has(name))
  return Object.fromEntries(
    members.map(([name, one]) => [name, isSubAttribute(name) ? withoutStamps(one) : one]),
  )
}

/** Whether it has the types that it has here, and no others where these are all. */
function hasTypes(there: Entity, { type, statesTypes }: Head, isSelvedge: boolean): boolean {
  const theirs = new Set(listOf(there.type))
  const ours = new Set(listOf(type))
  return ours.isSubsetOf(theirs) && (!isSelvedge || statesTypes !== true || theirs.isSubsetOf(ours))
}

/** By when it was observed, where both tell; else by when it was written, by the clocks of both. */
function isNewer(known: AttributeInstance, one: AttributeInstance, writtenAt: number): boolean {
  const [there, here] = [known, one].map(({ observedAt }) => dateTimeToMs(observedAt ?? ''))
  if (there !== undefined && here !== undefined && there !== here) return there > here
  return isWrittenAfter(known, writtenAt)
}

const isWrittenAfter = ({ modifiedAt }: AttributeInstance, ms: number): boolean =>
  (remoteTime(modifiedAt) ?? 0) > ms
