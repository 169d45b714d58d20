/**
 * Entities that the centre holds in full, for selections that depend on values: those that matched when last
 * sent. An entity that newly matches is not among them and is sent in full. This is kept in memory only.
 * After a restart, matching entities that are older than the position count as synced; any other entity is
 * sent in full once more, which is harmless.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { ChangeFeed } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'
import type { UplinkState } from './uplink-state.ts'

/** Keyed by entity number. */
export interface FullySynced {
  /**
   * True: the centre holds the current state; false: it holds the state when the entity last matched;
   * undefined: unknown. Always true where only type and id select, because then only a new entity can begin
   * to match.
   */
  get(rid: number): boolean | undefined
  /** Notes that the entity was sent in full, or, where known, that it no longer matches. */
  set(rid: number, isWhole: boolean): void
  /**
   * Notes which entities are in full at the centre after changes since a commit time (ms) are sent; the
   * caller calls the result then.
   */
  onceSent(entities: readonly (readonly [rid: number, view: EntityView])[], since: number): () => void
  /** Restores the set once, from the position of the uplink; must run before anything is sent. */
  restore(yieldIfDue: YieldIfDue): Promise<void>
}

export interface FullySyncedPorts {
  readonly following: Pick<ChangeFeed, 'entities'>
  readonly selection: Pick<UplinkSelection, 'takes' | 'dependsOnValues'>
  readonly state: Pick<UplinkState, 'position' | 'refresh'>
}

export function createFullySynced({ following, selection, state }: FullySyncedPorts): FullySynced {
  if (!selection.dependsOnValues)
    return {
      get: () => true,
      set: () => undefined,
      onceSent: () => () => undefined,
      restore: () => Promise.resolve(),
    }
  const known = new Map<number, boolean>()
  let isRestored = false

  function set(rid: number, isWhole: boolean): void {
    if (!known.delete(rid) && !isWhole) return
    known.set(rid, isWhole)
    if (known.size > limits.uplinkFullySyncedMax.value) known.delete(known.keys().next().value!)
  }

  return Object.freeze({
    get: (rid) => known.get(rid),
    set,
    onceSent(entities, since) {
      const checked = entities.flatMap(([rid, view]) =>
        view.times().modified < since ? [] : [[rid, selection.takes(view.entity())] as const],
      )
      return () => {
        for (const [rid, isMet] of checked) set(rid, isMet)
      }
    },
    async restore(yieldIfDue) {
      if (isRestored) return
      const { position, refresh } = state
      let after = 0
      for (;;) {
        await yieldIfDue()
        const page = following.entities(after, limits.uplinkEntitiesPerRequest.value)
        if (page.length === 0) break
        for (const [rid, view] of page) {
          const isPending =
            refresh !== undefined && rid > refresh.rid && view.times().modified >= refresh.since
          if (!isPending && view.version() <= position.n && selection.takes(view.entity())) set(rid, true)
        }
        after = page.at(-1)![0]
      }
      isRestored = true
    },
  } satisfies FullySynced)
}
