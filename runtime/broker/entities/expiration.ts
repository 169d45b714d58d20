/**
 * Applies `expiresAt`: deletes expired entities and attributes like a client would, with a log record and
 * notifications. Pauses while the clock may be wrong. Runs as part of groups, a few entities each, and checks
 * once a second.
 */

import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Group, Stage } from '#broker/commit/stage.ts'
import type { DocumentDrafts } from '#broker/state/document-drafts.ts'
import { isExpired, withoutExpired } from '#ngsi-ld/entity/expiry.ts'
import type { Entities } from '#store/entities/entity-rows.ts'

export interface ExpiryPorts {
  readonly entities: Entities
  readonly clock: Clock
  readonly documents: () => DocumentDrafts
}

/** Interval of checks, ms. */
const checkEveryMs = 1000
/** Pause after a fault, ms: longer than that of upkeep, so that other upkeep continues. */
const pauseMs = 60_000

export function createExpiry({ entities, clock, documents }: ExpiryPorts) {
  let checkAt = 0

  function expire(stage: Stage, rid: number): void {
    const id = entities.byRid(rid)?.id
    const draft = id === undefined ? undefined : documents().find(stage, id)
    // An earlier work of the group may have deleted it and created another with its id.
    if (draft === undefined || draft.rid !== rid) return
    if (isExpired(draft.entity, stage.at)) {
      documents().remove(stage, draft, 'expiry')
      return
    }
    const { entity, changes } = withoutExpired(draft.entity, stage.at)
    if (changes.length > 0) documents().update(stage, draft, entity, changes, 'expiry')
  }

  const mayRemove = (): boolean => clock.trust?.mayRemove() ?? true

  return Object.freeze({
    attach({ stage }: Pick<Group, 'stage'>): void {
      if (clock.monotonic() < checkAt || !mayRemove()) return
      checkAt = clock.monotonic() + pauseMs
      const most = limits.expiriesPerGroup.value
      const rids = entities.expired(Math.min(stage.at, clock.now()), most)
      for (const rid of rids) expire(stage, rid)
      checkAt = clock.monotonic() + checkEveryMs
      if (rids.length === most) {
        stage.published(() => {
          checkAt = 0
        })
      }
    },
    /** True when a group should be started for it alone. */
    isDue: (): boolean =>
      clock.monotonic() >= checkAt && mayRemove() && entities.expired(clock.now(), 1).length > 0,
  })
}

export type Expiry = ReturnType<typeof createExpiry>
