/**
 * Which entities the other broker holds whole, where the selection goes by what they are like: those that met it when they were told
 * last. One that comes to meet it is not among them, and goes up whole. Nothing of it is on disk: what met the selection and
 * did not change since is known by how far the uplink was; who is not known is told whole once more, which is harmless.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { Following } from '#broker/changes/change-feed.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import type { UplinkSelection } from '#uplink/steps/uplink-selection.ts'
import type { UplinkState } from './uplink-state.ts'

/** By numbers of entities. */
export interface FullySynced {
  /**
   * True: it is held whole as it is; false: it is held as it was when it met the selection last; undefined: nobody knows. True of
   * all where only type and id select: then nothing comes to meet a selection but what comes into being.
   */
  get(rid: number): boolean | undefined
  /** Everything of it was told; or it was, as far as that is known, and does not meet the selection now. */
  set(rid: number, isWhole: boolean): void
  /**
   * Who of these is held whole as soon as is told what they became since a commit time (ms); to be called then.
   */
  onceSent(entities: readonly (readonly [rid: number, view: EntityView])[], since: number): () => void
  /** Learns, once, who is held whole by how far the uplink was; nothing may be told before. */
  restore(yieldIfDue: YieldIfDue): Promise<void>
}

export interface FullySyncedPorts {
  readonly following: Pick<Following, 'entities'>
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
      for (let isLast = false; !isLast; ) {
        await yieldIfDue()
        const page = following.entities(after, limits.uplinkEntitiesPerRequest.value)
        for (const [rid, view] of page) {
          const isPending =
            refresh !== undefined && rid > refresh.rid && view.times().modified >= refresh.since
          if (!isPending && view.version() <= position.n && selection.takes(view.entity())) set(rid, true)
        }
        isLast = page.length < limits.uplinkEntitiesPerRequest.value
        after = page.at(-1)?.[0] ?? after
      }
      isRestored = true
    },
  } satisfies FullySynced)
}
