/**
 * Sends the current state of an entity instead of replaying its log rows: its attributes, and what was
 * deleted since. Rows up to that point then count as past. The live lane must send nothing in between, or its
 * older values would arrive later; a semaphore ensures this.
 */
import { createSemaphore } from '#base/load/semaphore.ts'
import type { ChangeFeed, Followed } from '#broker/changes/change-feed.ts'
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
import { createFullySynced } from './fully-synced.ts'
import { clearUnsentDeletions, type UnsentDeletions, type UplinkState } from './uplink-state.ts'

/** A commit time (ms), and the log number after which deletions count. */
interface Since {
  readonly since: number
  readonly deletionsAfter: number
}

export interface CurrentStepsPorts {
  readonly following: ChangeFeed
  readonly lookups: DeletionLookups
  readonly state: Pick<UplinkState, 'position' | 'refresh' | keyof UnsentDeletions>
}

export type CurrentSteps = ReturnType<typeof createCurrentSteps>

export function createCurrentSteps({ following, lookups, state }: CurrentStepsPorts) {
  /** Log numbers up to which the state of an entity was sent, by id. */
  const sentUpTo = new Map<string, number>()
  let highest = 0
  const fullySynced = createFullySynced({ following, selection: lookups.selection, state })

  function markSent(id: string, upTo = following.position().n): void {
    highest = Math.max(highest, upTo)
    sentUpTo.set(id, upTo)
  }

  function steps(rid: number, view: EntityView, from: Since): Step[] {
    const erased = following.erased(rid, from.deletionsAfter)
    // Later observations are sent after this.
    const erasing = erased.length === 0 ? [] : eraseSteps(view.entity(), erased, lookups)
    if (view.times().modified < from.since) return [...erasing]
    const present = stepsUnmarked(rid, view, fullySynced.get(rid) === true ? from : { ...from, since: 0 })
    if (present.length > 0) markSent(view.id)
    return [...erasing, ...present]
  }

  function stepsUnmarked(rid: number, view: EntityView, { since, deletionsAfter }: Since): Step[] {
    const puts = stepsOfEntity(view, since, lookups)
    if (puts.length === 0) return []
    const { entity } = puts[0]!
    const now = view.entity()
    const { created, attributes } = view.times()
    const present = new Set(instanceKeys(now))
    const losesScope = entity.scope === undefined && !lookups.isFromCentre(attributes['']?.[2])
    const ends = deletionsOfEarlierLives(entity, earlierLives(view.id, deletionsAfter), {
      ...lookups,
      now,
      isUnsent: created >= since,
    })
    const drops = following.deletionsSince(rid, since).flatMap(({ key, name, dataset, via, at }): Step[] => {
      if (name === 'scope') return losesScope ? [{ kind: 'drop', entity, name, dataset }] : []
      const isTold = !present.has(key) && lookups.selection.takesAttribute(name) && !lookups.isFromCentre(via)
      return isTold ? [{ kind: 'drop', entity, name, dataset, at }] : []
    })
    return [...ends, ...drops, ...puts]
  }

  /**
   * Earlier lives that ended after a log number, or whose deletion was left to the backfill lane and may be
   * unsent.
   */
  function earlierLives(id: string, n: number, upTo = Number.POSITIVE_INFINITY): EarlierLives {
    const ended = following.tombstonesAfter(id, Math.min(n, state.deletionsUnsentAfter ?? n))
    const tombstones = ended.filter((tombstone) => tombstone.n < upTo)
    return {
      tombstones,
      lost: tombstones.flatMap(({ rid }) => following.deletionsSince(rid, Number.NEGATIVE_INFINITY)),
    }
  }

  const isPast = (n: number, id: string): boolean => n <= (sentUpTo.get(id) ?? 0)

  function unsentDeletions({ n, what }: Followed): readonly Step[] {
    const { deletionsUnsentAfter } = state
    if (
      deletionsUnsentAfter === undefined ||
      !('id' in what) ||
      what.kind !== 'created' ||
      isPast(n, what.id)
    )
      return []
    const { id, type = [], scope } = what
    const isThere = lookups.isFromCentre(viaFrom(what.by))
    const placed = lookups.scopePrefix.scope(scope ?? undefined, isThere)
    const head = { id, type, ...(placed === undefined ? {} : { scope: placed }) }
    return deletionsOfEarlierLives(head, earlierLives(id, deletionsUnsentAfter, n), {
      ...lookups,
      isUnsent: true,
    })
  }

  return Object.freeze({
    /** Serializes work on the live lane, first come first served. */
    turn: createSemaphore(),
    /** Whether a row precedes the sent state of its entity. */
    isPast,
    /**
     * Steps that delete what earlier lives of an entity left at the centre, where a row re-creates it and
     * their deletion is unsent. They must be sent before the row. Empty for any other row.
     */
    unsentDeletions,
    /** Notes that the live lane passed a log number. */
    advance(n: number): void {
      if (n >= highest) sentUpTo.clear()
      clearUnsentDeletions(state)
    },
    fullySynced,
    /** Marks rows of an entity up to a log number, by default up to now, as past. */
    markSent,
    /**
     * Steps for what changed since a commit time and was deleted since it and since a log number; empty if
     * nothing changed. An entity that newly matches the selection is sent in full. Marks rows as past.
     */
    steps,
    /** Same, without marking rows as past. */
    stepsUnmarked,
    /**
     * Steps for what is unsent since the last position of the live lane, including all commits up to a time
     * (ms). They must be sent in the same turn.
     */
    unsentSteps(id: string): { readonly steps: readonly Step[]; readonly upTo: number } {
      const found = following.entityWithRid(id)
      const { n, at } = following.position()
      if (found === undefined) return { steps: [], upTo: at }
      const { rid, view } = found
      const { position } = state
      const from = { since: following.since(position), deletionsAfter: position.n }
      return { steps: n > position.n ? steps(rid, view, from) : [], upTo: at }
    },
  })
}
