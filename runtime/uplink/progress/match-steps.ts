/**
 * What rows of the log mean where entities come to meet a selection that goes by what they are like: such an entity is told whole,
 * as it is now, and what rows say of it up to now belongs to its past. One that no longer meets it is left as it was told
 * last. What met it only in between is told whole, too, with the values by which it did.
 */
import type { Followed, FollowedChange, FollowedObservation, Following } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { datedAt, type ReadingPorts, rememberedOnce, stepsOf } from '#uplink/steps/change-steps.ts'
import type { LeavingPorts } from '#uplink/steps/deletion-steps.ts'
import type { Attributes, Step } from '#uplink/steps/step-plan.ts'
import type { Present } from './current-steps.ts'

export interface MeetingPorts {
  readonly following: Pick<Following, 'position' | 'entityWithRid'>
  readonly present: Present
  readonly reading: ReadingPorts & LeavingPorts
  /** Sends until it was taken, in a turn of the live lane; false when the uplink was closed meanwhile. */
  readonly deliverNow: (steps: readonly Step[]) => Promise<boolean>
}

export interface Meetings {
  /** What is read now, in one go. */
  begin(): Meeting
  /** Has an entity be there whole before values of it are told that met the selection. False when the uplink was closed. */
  hold(id: string, told: Attributes): Promise<boolean>
}

export function createMeetings(ports: MeetingPorts): Meetings {
  const { following, present, reading, deliverNow } = ports
  return Object.freeze({
    begin: () => createMeeting(ports, rememberedOnce(reading)),
    async hold(id, told) {
      if (!reading.selection.dependsOnValues) return true
      const found = following.entityWithRid(id)
      if (found === undefined || present.wholes.get(found.rid) !== undefined) return true
      return present.turn(async () => {
        const meeting = createMeeting(ports, reading)
        if (!(await deliverNow(meeting.whole(id, told)))) return false
        meeting.told()
        return true
      })
    },
  } satisfies Meetings)
}

/** What is read of the log in one go; `told` is to be called when all of it was taken. */
export interface Meeting {
  /** `each` is what becomes of a step that tells a change, which was committed at a time (ms). */
  steps(row: Followed, each: (step: Step, at: number) => Step): readonly Step[]
  /** Steps by which an entity is there whole, before values of it are told that met the selection; none where it is. */
  whole(id: string, told: Attributes): readonly Step[]
  told(): void
}

function createMeeting(
  { following, present }: Pick<MeetingPorts, 'following' | 'present'>,
  reading: MeetingPorts['reading'],
): Meeting {
  const { selection } = reading
  const { wholes } = present
  const { n: here } = following.position()
  /** Entities that are told whole here, by id, and who met the selection when it was looked at, by number. */
  const entered = new Set<string>()
  const looked = new Map<number, boolean>()
  const held = (rid: number): boolean | undefined => looked.get(rid) ?? wholes.get(rid)

  function enter(id: string, told: Attributes, n: number): readonly Step[] {
    const found = following.entityWithRid(id)
    if (found === undefined) return []
    const { rid, view } = found
    const isMet = selection.takes(view.entity())
    if (held(rid) === true || (!isMet && held(rid) === false)) return []
    const steps = present.became(rid, isMet ? view : laid(view, told), { since: 0, graves: n - 1 })
    if (steps.length === 0) return []
    entered.add(id)
    looked.set(rid, true)
    return steps
  }

  function stepsOfItem(row: Followed, item: FollowedChange | FollowedObservation): readonly Step[] {
    const { n } = row
    const isPast = (id: string): boolean => entered.has(id) || present.isPast(n, id)
    const one: Followed = { ...row, what: 'id' in item ? item : [item] }
    const steps = stepsOf(one, isPast, reading)
    const of = 'id' in item ? item : reading.streamOf(item.s)
    if (of === undefined || isPast(of.id)) return steps
    const view = reading.entity(of.id)
    const isMet = view !== undefined && selection.takes(view.entity())
    const mayEnter = held(of.rid) !== true && (isMet || steps.length > 0)
    const whole = mayEnter ? enter(of.id, toldBy(steps), n) : []
    if (whole.length === 0) {
      if (held(of.rid) !== undefined) looked.set(of.rid, isMet)
      return steps
    }
    // Where nothing came after it, the whole of it says it.
    return isMet && view?.version() === n ? whole : [...whole, ...stepsOf(one, isPast, reading)]
  }

  return Object.freeze({
    steps(row, each) {
      const at = datedAt(row)
      const shaped = (steps: readonly Step[]): readonly Step[] => steps.map((step) => each(step, at))
      if (!selection.dependsOnValues) return shaped(stepsOf(row, (id) => present.isPast(row.n, id), reading))
      const { what } = row
      return (
        Array.isArray(what) ? (what as readonly FollowedObservation[]) : [what as FollowedChange]
      ).flatMap((item) => {
        const before = entered.size
        const steps = stepsOfItem(row, item)
        return entered.size > before ? steps : shaped(steps)
      })
    },
    whole: (id, told) => enter(id, told, here + 1),
    told() {
      for (const id of entered) present.mark(id, here)
      for (const [rid, isMet] of looked) wholes.set(rid, isMet)
    },
  } satisfies Meeting)
}

function toldBy(steps: readonly Step[]): Attributes {
  const told = new Map<string, readonly AttributeInstance[]>()
  for (const step of steps)
    if ('attributes' in step) for (const [name, instances] of step.attributes) told.set(name, instances)
  return told
}

/** An entity with the last values of some of its instances instead of those that it has. */
function laid(view: EntityView, told: Attributes): EntityView {
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
