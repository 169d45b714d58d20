/**
 * What rows of the log mean where entities come to meet a selection that goes by what they are like: such an entity is told whole,
 * as it is now, and what rows say of it up to now belongs to its past. One that no longer meets it is left as it was told
 * last. What met it only in between is told whole, too, with the values by which it did.
 */
import type { Followed, FollowedChange, FollowedObservation, Following } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { type ChangeLookups, commitTimeOf, memoized, stepsOf } from '#uplink/steps/change-steps.ts'
import type { DeletionLookups } from '#uplink/steps/deletion-steps.ts'
import type { Attributes, Step } from '#uplink/steps/step-plan.ts'
import type { CurrentSteps } from './current-steps.ts'

export interface MatchingPorts {
  readonly following: Pick<Following, 'position' | 'entityWithRid'>
  readonly current: CurrentSteps
  readonly lookups: ChangeLookups & DeletionLookups
  /** Sends until it was taken, in a turn of the live lane; false when the uplink was closed meanwhile. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
}

export interface Matching {
  /** What is read now, in one go. */
  begin(): MatchPass
  /** Has an entity be there whole before values of it are told that met the selection. False when the uplink was closed. */
  ensureSynced(id: string, told: Attributes): Promise<boolean>
}

export function createMatching(ports: MatchingPorts): Matching {
  const { following, current, lookups, deliverNow } = ports
  return Object.freeze({
    begin: () => createMatchPass(ports, memoized(lookups)),
    async ensureSynced(id, told) {
      if (!lookups.selection.dependsOnValues) return true
      const found = following.entityWithRid(id)
      if (found === undefined || current.fullySynced.get(found.rid) !== undefined) return true
      return current.turn(async () => {
        const pass = createMatchPass(ports, lookups)
        if (!(await deliverNow(pass.fullSteps(id, told)))) return false
        pass.onAccepted()
        return true
      })
    },
  } satisfies Matching)
}

/** What is read of the log in one go; `told` is to be called when all of it was taken. */
export interface MatchPass {
  /** `each` is what becomes of a step that tells a change, which was committed at a time (ms). */
  steps(row: Followed, each: (step: Step, at: number) => Step): readonly Step[]
  /** Steps by which an entity is there whole, before values of it are told that met the selection; none where it is. */
  fullSteps(id: string, told: Attributes): readonly Step[]
  onAccepted(): void
}

function createMatchPass(
  { following, current }: Pick<MatchingPorts, 'following' | 'current'>,
  lookups: MatchingPorts['lookups'],
): MatchPass {
  const { selection } = lookups
  const { fullySynced } = current
  const { n: here } = following.position()
  /** Entities that are told whole here, by id, and who met the selection when it was looked at, by number. */
  const synced = new Set<string>()
  const checked = new Map<number, boolean>()
  const isSynced = (rid: number): boolean | undefined => checked.get(rid) ?? fullySynced.get(rid)

  function syncInFull(id: string, told: Attributes, n: number): readonly Step[] {
    const found = following.entityWithRid(id)
    if (found === undefined) return []
    const { rid, view } = found
    const isMet = selection.takes(view.entity())
    if (isSynced(rid) === true || (!isMet && isSynced(rid) === false)) return []
    const steps = current.stepsUnmarked(rid, isMet ? view : withValues(view, told), {
      since: 0,
      graves: n - 1,
    })
    if (steps.length === 0) return []
    synced.add(id)
    checked.set(rid, true)
    return steps
  }

  function stepsOfItem(row: Followed, item: FollowedChange | FollowedObservation): readonly Step[] {
    const { n } = row
    const isPast = (id: string): boolean => synced.has(id) || current.isPast(n, id)
    const one: Followed = { ...row, what: 'id' in item ? item : [item] }
    const steps = stepsOf(one, isPast, lookups)
    const of = 'id' in item ? item : lookups.streamOf(item.s)
    if (of === undefined || isPast(of.id)) return steps
    const view = lookups.entity(of.id)
    const isMet = view !== undefined && selection.takes(view.entity())
    const mayEnter = isSynced(of.rid) !== true && (isMet || steps.length > 0)
    const whole = mayEnter ? syncInFull(of.id, attributesIn(steps), n) : []
    if (whole.length === 0) {
      if (isSynced(of.rid) !== undefined) checked.set(of.rid, isMet)
      return steps
    }
    // Where nothing came after it, the whole of it says it.
    return isMet && view?.version() === n ? whole : [...whole, ...stepsOf(one, isPast, lookups)]
  }

  return Object.freeze({
    steps(row, each) {
      const at = commitTimeOf(row)
      const shaped = (steps: readonly Step[]): readonly Step[] => steps.map((step) => each(step, at))
      if (!selection.dependsOnValues) return shaped(stepsOf(row, (id) => current.isPast(row.n, id), lookups))
      const { what } = row
      return (
        Array.isArray(what) ? (what as readonly FollowedObservation[]) : [what as FollowedChange]
      ).flatMap((item) => {
        const before = synced.size
        const steps = stepsOfItem(row, item)
        return synced.size > before ? steps : shaped(steps)
      })
    },
    fullSteps: (id, told) => syncInFull(id, told, here + 1),
    onAccepted() {
      for (const id of synced) current.markSent(id, here)
      for (const [rid, isMet] of checked) fullySynced.set(rid, isMet)
    },
  } satisfies MatchPass)
}

function attributesIn(steps: readonly Step[]): Attributes {
  const told = new Map<string, readonly AttributeInstance[]>()
  for (const step of steps)
    if ('attributes' in step) for (const [name, instances] of step.attributes) told.set(name, instances)
  return told
}

/** An entity with the last values of some of its instances instead of those that it has. */
function withValues(view: EntityView, told: Attributes): EntityView {
  const entity = (): Entity => {
    const now = view.entity()
    const others: Record<string, AttributeInstance[]> = {}
    for (const [name, instances] of told) {
      const last = new Map(instances.map((one) => [one.datasetId, one]))
      const rest = instancesOf(now, name).filter(({ datasetId }) => !last.has(datasetId))
      others[name] = [...rest, ...last.values()]
    }
    const single = Object.entries(others).map(([name, all]) => [name, all.length === 1 ? all[0] : all])
    return { ...now, ...Object.fromEntries(single) } as Entity
  }
  return { ...view, entity }
}
