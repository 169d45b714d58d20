/**
 * Translates log rows for selections that depend on values. An entity that newly matches is sent in full in
 * its current state, and its rows up to now count as past. An entity that no longer matches stays at the
 * centre as last sent. If it matched only in between, it is sent in full with the values by which it matched.
 */
import type {
  ChangeFeed,
  Followed,
  FollowedChange,
  FollowedObservation,
} from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { type ChangeLookups, commitTimeOf, memoized, stepsOf } from '#uplink/steps/change-steps.ts'
import type { DeletionLookups } from '#uplink/steps/deletion-steps.ts'
import type { Attributes, Step } from '#uplink/steps/step-plan.ts'
import type { CurrentSteps } from './current-steps.ts'

export interface MatchingPorts {
  readonly following: Pick<ChangeFeed, 'position' | 'entityWithRid'>
  readonly current: CurrentSteps
  readonly lookups: ChangeLookups & DeletionLookups
  /** Sends until accepted, in a turn of the live lane; false when the uplink was closed. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
}

export function createMatching(ports: MatchingPorts) {
  const { following, current, lookups, deliverNow } = ports
  return Object.freeze({
    /** Begins a pass over the rows read now. */
    begin: (): MatchPass => createMatchPass(ports, memoized(lookups)),
    /**
     * Ensures that the centre holds an entity in full before matching past values of it are sent. False when
     * the uplink was closed.
     */
    async ensureSynced(id: string, values: Attributes): Promise<boolean> {
      if (!lookups.selection.dependsOnValues) return true
      const found = following.entityWithRid(id)
      if (found === undefined || current.fullySynced.get(found.rid) !== undefined) return true
      return current.turn(async () => {
        const pass = createMatchPass(ports, lookups)
        if (!(await deliverNow(pass.fullSteps(id, values)))) return false
        pass.onAccepted()
        return true
      })
    },
  })
}

/** A pass over the log; the caller calls `onAccepted` once all its steps were accepted. */
export type MatchPass = ReturnType<typeof createMatchPass>

function createMatchPass(
  { following, current }: Pick<MatchingPorts, 'following' | 'current'>,
  lookups: MatchingPorts['lookups'],
) {
  const { selection } = lookups
  const { fullySynced } = current
  const { n: here } = following.position()
  /** Entities sent in full in this pass, by id, and whether checked entities match, by number. */
  const synced = new Set<string>()
  const checked = new Map<number, boolean>()
  const isSynced = (rid: number): boolean | undefined => checked.get(rid) ?? fullySynced.get(rid)

  function syncInFull(id: string, values: Attributes, n: number): readonly Step[] {
    const found = following.entityWithRid(id)
    if (found === undefined) return []
    const { rid, view } = found
    const isMet = selection.takes(view.entity())
    if (isSynced(rid) === true || (!isMet && isSynced(rid) === false)) return []
    const steps = current.stepsUnmarked(rid, isMet ? view : withValues(view, values), {
      since: 0,
      deletionsAfter: n - 1,
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
    // If nothing followed the row, the full entity includes it.
    return isMet && view?.version() === n ? whole : [...whole, ...stepsOf(one, isPast, lookups)]
  }

  return Object.freeze({
    /** The steps of a row; `each` maps a step for a change committed at a time (ms). */
    steps(row: Followed, each: (step: Step, at: number) => Step): readonly Step[] {
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
    /**
     * Steps that bring an entity to the centre in full before matching values of it are sent; empty if it is
     * there.
     */
    fullSteps: (id: string, values: Attributes): readonly Step[] => syncInFull(id, values, here + 1),
    onAccepted(): void {
      for (const id of synced) current.markSent(id, here)
      for (const [rid, isMet] of checked) fullySynced.set(rid, isMet)
    },
  })
}

function attributesIn(steps: readonly Step[]): Attributes {
  const values = new Map<string, readonly AttributeInstance[]>()
  for (const step of steps)
    if ('attributes' in step) for (const [name, instances] of step.attributes) values.set(name, instances)
  return values
}

/** The entity with the last of the given values in place of its own. */
function withValues(view: EntityView, values: Attributes): EntityView {
  const entity = (): Entity => {
    const now = view.entity()
    const others: Record<string, AttributeInstance[]> = {}
    for (const [name, instances] of values) {
      const last = new Map(instances.map((one) => [one.datasetId, one]))
      const rest = instancesOf(now, name).filter(({ datasetId }) => !last.has(datasetId))
      others[name] = [...rest, ...last.values()]
    }
    const single = Object.entries(others).map(([name, all]) => [name, all.length === 1 ? all[0] : all])
    return { ...now, ...Object.fromEntries(single) } as Entity
  }
  return { ...view, entity }
}
