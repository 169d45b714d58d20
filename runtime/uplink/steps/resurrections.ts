/**
 * What telling of the past brought back at the other broker, though it is gone: the backfill lane says so and waits, the
 * live lane has it go in its own order, since what is gone may come again meanwhile.
 */

import { type DeletionLookups, deletionsAfterPast, type Resurrected } from './deletion-steps.ts'
import type { Attributes, Head, Step } from './step-plan.ts'

export interface Resurrections {
  /**
   * Settles when nothing of it is there any more, nor what else it lost (`name` or `name datasetId`); with false when the uplink
   * was closed.
   */
  ensureDeleted(entity: Head, past: Attributes, lost?: readonly string[]): Promise<boolean>
  /** Has go what is gone. What comes again later comes with later rows. */
  deleteAgain(deliver: (steps: readonly Step[]) => Promise<boolean>): Promise<void>
  close(): void
}

interface Resurrection extends Resurrected {
  readonly resolve: (isAccepted: boolean) => void
}

export function createResurrections(ports: DeletionLookups): Resurrections {
  let pending: readonly Resurrection[] = []
  let isClosed = false
  return Object.freeze({
    ensureDeleted(entity, past, lost = []) {
      if (deletionsAfterPast({ entity, past, lost }, ports).length === 0) return Promise.resolve(true)
      return new Promise((resolve) => {
        if (isClosed) resolve(false)
        else pending = [...pending, { entity, past, lost, resolve }]
      })
    },
    async deleteAgain(deliver) {
      const some = pending
      if (some.length === 0) return
      const isAccepted = await deliver(some.flatMap((one) => deletionsAfterPast(one, ports)))
      if (!isAccepted) return
      pending = pending.slice(some.length)
      for (const { resolve } of some) resolve(true)
    },
    close() {
      isClosed = true
      for (const { resolve } of pending) resolve(false)
    },
  } satisfies Resurrections)
}
