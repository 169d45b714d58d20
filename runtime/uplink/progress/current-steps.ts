/**
 * What is told of an entity as it is now, instead of row by row: what it became, and what of it went since. From there on the
 * rows up to now belong to its past. Whoever does that sends nothing meanwhile by the live lane, whose requests would
 * arrive behind it with what was before: so turns, one after the other.
 */
import { createSemaphore, type Semaphore } from '#base/load/semaphore.ts'
import type { Followed, Following } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { viaFrom } from '#ngsi-ld/federation/via.ts'
import { stepsOfEntity } from '#uplink/steps/change-steps.ts'
import {
  type Ended,
  endsOf,
  instanceKeys,
  type LeavingPorts,
  stepsOfErased,
} from '#uplink/steps/deletion-steps.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { createWholes, type Wholes } from './fully-synced.ts'
import { forgetSettled, type GravesOwed, type UplinkState } from './uplink-state.ts'

export interface Present {
  readonly wholes: Wholes
  /** Does something while nobody else has a turn, in the order of asking. */
  readonly turn: Semaphore
  /** Whether a row with a log number is of the time before its entity was told as it was. */
  isPast(n: number, id: string): boolean
  /** The live lane has gone past a log number. */
  passed(n: number): void
  /** Rows up to a log number, else up to now, are past of this entity, which is about to be told. */
  mark(id: string, upTo?: number): void
  /**
   * Steps that tell what an entity became since a commit time, and what went since that and since a log number; none where it is as
   * it was. Of what came to meet the selection meanwhile that is all of it.
   */
  steps(rid: number, view: EntityView, from: Since): Step[]
  /** The same without rows being past for it. */
  became(rid: number, view: EntityView, from: Since): Step[]
  /**
   * Steps that delete at the other broker what earlier lives of an entity left there, where a row creates it again and their
   * deletion is still unsent; to be sent before the row. None for any other row.
   */
  unsentEnds(row: Followed): readonly Step[]
  /** The same since the live lane was at rest last, of all that was committed up to a time (ms). To be sent in the same turn. */
  owed(id: string): { readonly steps: readonly Step[]; readonly upTo: number }
}

/** A commit time (ms), and a log number. */
interface Since {
  readonly since: number
  readonly graves: number
}

export interface PresentPorts {
  readonly following: Following
  readonly reading: LeavingPorts
  readonly state: Pick<UplinkState, 'position' | 'refresh' | keyof GravesOwed>
}

export function createPresent({ following, reading, state }: PresentPorts): Present {
  /** Log numbers up to which entities were told as they are, by id. */
  const toldAs = new Map<string, number>()
  let most = 0
  const wholes = createWholes({ following, selection: reading.selection, state })

  function mark(id: string, upTo = following.position().n): void {
    most = Math.max(most, upTo)
    toldAs.set(id, upTo)
  }

  function steps(...[rid, view, from]: Parameters<Present['steps']>): Step[] {
    const erased = following.erased(rid, from.graves)
    // What was observed since then is told behind it.
    const erasing = erased.length === 0 ? [] : stepsOfErased(view.entity(), erased, reading)
    if (view.times().modified < from.since) return [...erasing]
    const told = became(rid, view, wholes.get(rid) === true ? from : { ...from, since: 0 })
    if (told.length > 0) mark(view.id)
    return [...erasing, ...told]
  }

  function became(...[rid, view, { since, graves }]: Parameters<Present['became']>): Step[] {
    const told = stepsOfEntity(view, since, reading)
    if (told.length === 0) return []
    const { entity } = told[0]!
    const now = view.entity()
    const { created, attributes } = view.times()
    const present = new Set(instanceKeys(now))
    const losesScope = entity.scope === undefined && !reading.isFromThere(attributes['']?.[2])
    const ends = endsOf(entity, endedSince(view.id, graves), {
      ...reading,
      ...{ now, isUnsent: created >= since },
    })
    const drops = following.dropped(rid, since).flatMap(({ key, name, dataset, heard, at }): Step[] => {
      if (name === 'scope') return losesScope ? [{ kind: 'drop', entity, name, dataset }] : []
      const isTold =
        !present.has(key) && reading.selection.takesAttribute(name) && !reading.isFromThere(heard)
      return isTold ? [{ kind: 'drop', entity, name, dataset, at }] : []
    })
    return [...ends, ...drops, ...told]
  }

  /** Earlier lives that ended behind a log number, or of which the deletion was left to the history and may be unsent. */
  function endedSince(id: string, n: number, upTo = Number.POSITIVE_INFINITY): Ended {
    const ended = following.gravesAfter(id, Math.min(n, state.gravesOwed ?? n))
    const graves = ended.filter((grave) => grave.n < upTo)
    return { graves, lost: graves.flatMap(({ rid }) => following.dropped(rid, Number.NEGATIVE_INFINITY)) }
  }

  const isPast = (n: number, id: string): boolean => n <= (toldAs.get(id) ?? 0)

  function unsentEnds({ n, what }: Followed): readonly Step[] {
    const { gravesOwed } = state
    if (gravesOwed === undefined || !('id' in what) || what.kind !== 'created' || isPast(n, what.id))
      return []
    const { id, type = [], scope } = what
    const isThere = reading.isFromThere(viaFrom(what.by))
    const placed = reading.placing.scope(scope ?? undefined, isThere)
    const head = { id, type, ...(placed === undefined ? {} : { scope: placed }) }
    return endsOf(head, endedSince(id, gravesOwed, n), { ...reading, isUnsent: true })
  }

  return Object.freeze({
    turn: createSemaphore(),
    isPast,
    unsentEnds,
    passed(n) {
      if (n >= most) toldAs.clear()
      forgetSettled(state)
    },
    wholes,
    mark,
    steps,
    became,
    owed(id) {
      const found = following.entityWithRid(id)
      const { n, at } = following.position()
      if (found === undefined) return { steps: [], upTo: at }
      const { rid, view } = found
      const { position } = state
      const from = { since: following.since(position), graves: position.n }
      return { steps: n > position.n ? steps(rid, view, from) : [], upTo: at }
    },
  } satisfies Present)
}
