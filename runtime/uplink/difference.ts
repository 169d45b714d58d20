/**
 * What an entity is over there and here, and what is to be done that it is the same: what is missing or other is told, what went
 * here goes, and what was written later over there stays. Reads, and sends nothing.
 */
import type { Following } from '#broker/following.ts'
import type { EntityView, SystemTimes } from '#broker/types.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import { covers } from '#ngsi-ld/digest.ts'
import { type AttributeInstance, type Entity, instancesOf } from '#ngsi-ld/entity.ts'
import { isBelow, isSameScope } from './placing.ts'
import type { Step } from './plan.ts'
import { instanceKeys, keyOf, type LeavingPorts } from './reading.ts'
import { instanceThere, keysThere, timeThere } from './told.ts'

/**
 * Whether others may have written an attribute instance over there, by `name` or `name datasetId`. What only came from here is never
 * newer there, whatever the clocks of both say.
 */
export type IsOthers = (key: string) => boolean

/** Drops of what is over there and went here, where nobody wrote it since. */
export function surplusOf(
  view: EntityView,
  there: Entity,
  {
    following,
    reading,
    isOthers,
    onNewer,
  }: {
    readonly following: Pick<Following, 'droppedOf'>
    readonly reading: Pick<LeavingPorts, 'selection' | 'isFromThere'>
    readonly isOthers: IsOthers
    readonly onNewer: () => void
  },
): readonly Step[] {
  const entity = view.entity()
  const present = new Set(instanceKeys(entity))
  const more = new Set(keysThere(there).filter((key) => !present.has(key)))
  if (more.size === 0 || !reading.selection.takes(entity)) return []
  const { id, type } = entity
  const last = new Map(following.droppedOf(id).map((one) => [one.key, one]))
  return [...more].flatMap((key): Step[] => {
    const gone = last.get(key)
    if (gone === undefined || reading.isFromThere(gone.heard)) return []
    const { name, dataset, at } = gone
    if (!reading.selection.takesAttribute(name)) return []
    const known = instanceThere(there, key)
    if (known === undefined || !isOthers(key) || !isWrittenAfter(known, at))
      return [{ kind: 'drop', entity: { id, type }, name, dataset }]
    onNewer()
    return []
  })
}

/**
 * The attribute instances, by `name` or `name datasetId`, of an entity over there that stay though it was deleted here at a time
 * (ms): those that others wrote. Where it is not said whose they are, when they were written decides; undefined where that is not
 * said either, or where the entity came into being since, of which all stays.
 */
export function staysOf(
  at: number,
  there: Entity,
  isOthers: IsOthers | undefined,
): ReadonlySet<string> | undefined {
  const keys = keysThere(there)
  if (isOthers !== undefined && keys.length > 0) return new Set(keys.filter(isOthers))
  const created = timeThere(there['createdAt'])
  if (created === undefined || created > at) return undefined
  return new Set(
    keys.filter((key) => {
      const one = instanceThere(there, key)
      return one !== undefined && isWrittenAfter(one, at)
    }),
  )
}

/** What of the steps of an entity is not over there; what is newer there stays as it is. */
export function differenceOf(
  steps: readonly Step[],
  there: Entity | undefined,
  {
    times,
    placedBefore,
    isOthers,
    onNewer,
  }: {
    readonly times: SystemTimes
    readonly placedBefore: string | undefined
    readonly isOthers: IsOthers
    readonly onNewer: () => void
  },
): readonly Step[] {
  if (there === undefined) return steps
  return steps.flatMap((step) => {
    if (step.kind !== 'put') return []
    const attributes = new Map<string, readonly AttributeInstance[]>()
    for (const [name, instances] of step.attributes) {
      const theirs = new Map(instancesOf(there, name).map((one) => [keyOf(name, one.datasetId ?? ''), one]))
      const others = instances.filter((one) => {
        const key = keyOf(name, one.datasetId ?? '')
        const known = theirs.get(key)
        if (known === undefined) return true
        if (covers(known, one)) return false
        if (
          !isNewer(
            known,
            one,
            isOthers(key) ? (times.attributes[key]?.[1] ?? times.modified) : Number.POSITIVE_INFINITY,
          )
        )
          return true
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
    return attributes.size === 0 && isPlaced ? lifts : [...lifts, { ...step, attributes }]
  })
}

/** By when it was observed, where both tell; else by when it was written, by the clocks of both. */
function isNewer(known: AttributeInstance, one: AttributeInstance, writtenAt: number): boolean {
  const [there, here] = [known, one].map(({ observedAt }) => dateTimeToMs(observedAt ?? ''))
  if (there !== undefined && here !== undefined && there !== here) return there > here
  return isWrittenAfter(known, writtenAt)
}

const isWrittenAfter = ({ modifiedAt }: AttributeInstance, ms: number): boolean =>
  (timeThere(modifiedAt) ?? 0) > ms
