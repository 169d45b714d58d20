/**
 * Deletes again what a history upload resurrected at the centre. The backfill lane registers it and waits;
 * the live lane deletes it in its own order, because the entity may be re-created meanwhile.
 */

import { type DeletionLookups, deletionsAfterPast, type Resurrected } from './deletion-steps.ts'
import type { Attributes, Head, Step } from './step-plan.ts'

interface Resurrection extends Resurrected {
  readonly resolve: (isAccepted: boolean) => void
}

export type Resurrections = ReturnType<typeof createResurrections>

export function createResurrections(ports: DeletionLookups) {
  let pending: readonly Resurrection[] = []
  let isClosed = false
  return Object.freeze({
    /**
     * Resolves once the entity's past values and its lost attributes (`name` or `name datasetId`) are deleted
     * at the centre; with false when the uplink was closed.
     */
    ensureDeleted(entity: Head, past: Attributes, lost: readonly string[] = []): Promise<boolean> {
      if (deletionsAfterPast({ entity, past, lost }, ports).length === 0) return Promise.resolve(true)
      return new Promise((resolve) => {
        if (isClosed) resolve(false)
        else pending = [...pending, { entity, past, lost, resolve }]
      })
    },
    /** Deletes what is registered. An entity re-created later is sent with later rows. */
    async deleteAgain(deliver: (steps: readonly Step[]) => Promise<boolean>): Promise<void> {
      const some = pending
      if (some.length === 0) return
      const isAccepted = await deliver(some.flatMap((one) => deletionsAfterPast(one, ports)))
      if (!isAccepted) return
      pending = pending.slice(some.length)
      for (const { resolve } of some) resolve(true)
    },
    close(): void {
      isClosed = true
      for (const { resolve } of pending) resolve(false)
    },
  })
}
