/**
 * What is told of an entity as it is now, instead of row by row: what it became, and what of it went since. From there on the
 * rows up to now belong to its past. Whoever does that sends nothing meanwhile by the live lane, whose requests would
 * arrive behind it with what was before: so turns, one after the other.
 */
import { createTurns, type Turn } from '#base/turns.ts'
import type { Followed, Following } from '#broker/following.ts'
import type { EntityView } from '#broker/types.ts'
import { endsOf, instanceKeys, type LeavingPorts, stepsOfErased } from './leaving.ts'
import type { Step } from './plan.ts'
import { stepsOfEntity } from './reading.ts'
import type { UplinkState } from './state.ts'
import { createWholes, type Wholes } from './wholes.ts'

export interface Present {
  readonly wholes: Wholes
  /** Does something while nobody else has a turn, in the order of asking. */
  readonly turn: Turn
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
   * The same of what a row says came again before it was told that it had gone: all of it, without what it was; that row is past
   * then, too. None of any other row.
   */
  again(row: Followed): readonly Step[]
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
  readonly state: Pick<UplinkState, 'position' | 'refresh' | 'gravesOwed'>
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
    const present = new Set(instanceKeys(now))
    const losesScope = entity.scope === undefined && !reading.isFromThere(view.times().attributes['']?.[2])
    const ended = following.gravesAfter(view.id, graves)
    const ends = endsOf(entity, now, { ...reading, graves: ended })
    // What it was before may have lost some, too.
    const rids = [...ended.map((grave) => grave.rid), rid]
    const drops = rids
      .flatMap((one) => following.dropped(one, since))
      .flatMap(({ key, name, dataset, heard, at }): Step[] => {
        if (name === 'scope') return losesScope ? [{ kind: 'drop', entity, name, dataset }] : []
        const isTold =
          !present.has(key) && reading.selection.takesAttribute(name) && !reading.isFromThere(heard)
        return isTold ? [{ kind: 'drop', entity, name, dataset, at }] : []
      })
    return [...ends, ...drops, ...told]
  }

  const isPast = (n: number, id: string): boolean => n <= (toldAs.get(id) ?? 0)

  function again({ n, what }: Followed): readonly Step[] {
    const { gravesOwed: graves } = state
    const isNew = 'id' in what && what.kind === 'created' && !isPast(n, what.id)
    if (graves === undefined || !isNew || following.gravesAfter(what.id, graves).length === 0) return []
    const found = following.entityWithRid(what.id)
    return found?.rid === what.rid ? steps(found.rid, found.view, { since: 0, graves }) : []
  }

  return Object.freeze({
    turn: createTurns(),
    isPast,
    again,
    passed(n) {
      if (n >= most) toldAs.clear()
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
