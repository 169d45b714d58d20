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
  type DeletionLookups,
  deletionsOfEarlierLives,
  type EarlierLives,
  eraseSteps,
  instanceKeys,
} from '#uplink/steps/deletion-steps.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { createFullySynced, type FullySynced } from './fully-synced.ts'
import { clearUnsentDeletions, type UnsentDeletions, type UplinkState } from './uplink-state.ts'

export interface CurrentSteps {
  readonly fullySynced: FullySynced
  /** Does something while nobody else has a turn, in the order of asking. */
  readonly turn: Semaphore
  /** Whether a row with a log number is of the time before its entity was told as it was. */
  isPast(n: number, id: string): boolean
  /** The live lane has gone past a log number. */
  advance(n: number): void
  /** Rows up to a log number, else up to now, are past of this entity, which is about to be told. */
  markSent(id: string, upTo?: number): void
  /**
   * Steps that tell what an entity became since a commit time, and what went since that and since a log number; none where it is as
   * it was. Of what came to meet the selection meanwhile that is all of it.
   */
  steps(rid: number, view: EntityView, from: Since): Step[]
  /** The same without rows being past for it. */
  stepsUnmarked(rid: number, view: EntityView, from: Since): Step[]
  /**
   * Steps that delete at the other broker what earlier lives of an entity left there, where a row creates it again and their
   * deletion is still unsent; to be sent before the row. None for any other row.
   */
  unsentDeletions(row: Followed): readonly Step[]
  /** The same since the live lane was at rest last, of all that was committed up to a time (ms). To be sent in the same turn. */
  unsentSteps(id: string): { readonly steps: readonly Step[]; readonly upTo: number }
}

/** A commit time (ms), and a log number. */
interface Since {
  readonly since: number
  readonly graves: number
}

export interface CurrentStepsPorts {
  readonly following: Following
  readonly lookups: DeletionLookups
  readonly state: Pick<UplinkState, 'position' | 'refresh' | keyof UnsentDeletions>
}

export function createCurrentSteps({ following, lookups, state }: CurrentStepsPorts): CurrentSteps {
  /** Log numbers up to which entities were told as they are, by id. */
  const sentUpTo = new Map<string, number>()
  let highest = 0
  const fullySynced = createFullySynced({ following, selection: lookups.selection, state })

  function markSent(id: string, upTo = following.position().n): void {
    highest = Math.max(highest, upTo)
    sentUpTo.set(id, upTo)
  }

  function steps(...[rid, view, from]: Parameters<CurrentSteps['steps']>): Step[] {
    const erased = following.erased(rid, from.graves)
    // What was observed since then is told behind it.
    const erasing = erased.length === 0 ? [] : eraseSteps(view.entity(), erased, lookups)
    if (view.times().modified < from.since) return [...erasing]
    const told = stepsUnmarked(rid, view, fullySynced.get(rid) === true ? from : { ...from, since: 0 })
    if (told.length > 0) markSent(view.id)
    return [...erasing, ...told]
  }

  function stepsUnmarked(
    ...[rid, view, { since, graves }]: Parameters<CurrentSteps['stepsUnmarked']>
  ): Step[] {
    const told = stepsOfEntity(view, since, lookups)
    if (told.length === 0) return []
    const { entity } = told[0]!
    const now = view.entity()
    const { created, attributes } = view.times()
    const present = new Set(instanceKeys(now))
    const losesScope = entity.scope === undefined && !lookups.isFromCentre(attributes['']?.[2])
    const ends = deletionsOfEarlierLives(entity, earlierLives(view.id, graves), {
      ...lookups,
      ...{ now, isUnsent: created >= since },
    })
    const drops = following.dropped(rid, since).flatMap(({ key, name, dataset, heard, at }): Step[] => {
      if (name === 'scope') return losesScope ? [{ kind: 'drop', entity, name, dataset }] : []
      const isTold =
        !present.has(key) && lookups.selection.takesAttribute(name) && !lookups.isFromCentre(heard)
      return isTold ? [{ kind: 'drop', entity, name, dataset, at }] : []
    })
    return [...ends, ...drops, ...told]
  }

  /** Earlier lives that ended behind a log number, or of which the deletion was left to the history and may be unsent. */
  function earlierLives(id: string, n: number, upTo = Number.POSITIVE_INFINITY): EarlierLives {
    const ended = following.gravesAfter(id, Math.min(n, state.gravesOwed ?? n))
    const tombstones = ended.filter((tombstone) => tombstone.n < upTo)
    return {
      tombstones,
      lost: tombstones.flatMap(({ rid }) => following.dropped(rid, Number.NEGATIVE_INFINITY)),
    }
  }

  const isPast = (n: number, id: string): boolean => n <= (sentUpTo.get(id) ?? 0)

  function unsentDeletions({ n, what }: Followed): readonly Step[] {
    const { gravesOwed } = state
    if (gravesOwed === undefined || !('id' in what) || what.kind !== 'created' || isPast(n, what.id))
      return []
    const { id, type = [], scope } = what
    const isThere = lookups.isFromCentre(viaFrom(what.by))
    const placed = lookups.scopePrefix.scope(scope ?? undefined, isThere)
    const head = { id, type, ...(placed === undefined ? {} : { scope: placed }) }
    return deletionsOfEarlierLives(head, earlierLives(id, gravesOwed, n), { ...lookups, isUnsent: true })
  }

  return Object.freeze({
    turn: createSemaphore(),
    isPast,
    unsentDeletions,
    advance(n) {
      if (n >= highest) sentUpTo.clear()
      clearUnsentDeletions(state)
    },
    fullySynced,
    markSent,
    steps,
    stepsUnmarked,
    unsentSteps(id) {
      const found = following.entityWithRid(id)
      const { n, at } = following.position()
      if (found === undefined) return { steps: [], upTo: at }
      const { rid, view } = found
      const { position } = state
      const from = { since: following.since(position), graves: position.n }
      return { steps: n > position.n ? steps(rid, view, from) : [], upTo: at }
    },
  } satisfies CurrentSteps)
}
