/**
 * What telling of the past brought back at the other broker, though it is gone: the backfill lane says so and waits, the
 * live lane has it go in its own order, since what is gone may come again meanwhile.
 */

import { type Leaving, type LeavingPorts, leavesOf } from './deletion-steps.ts'
import type { Attributes, Head, Step } from './step-plan.ts'

export interface Ghosts {
  /**
   * Settles when nothing of it is there any more, nor what else it lost (`name` or `name datasetId`); with false when the uplink
   * was closed.
   */
  settle(entity: Head, told: Attributes, lost?: readonly string[]): Promise<boolean>
  /** Has go what is gone. What comes again later comes with later rows. */
  lay(deliver: (steps: readonly Step[]) => Promise<boolean>): Promise<void>
  close(): void
}

interface Ghost extends Leaving {
  readonly laid: (isLaid: boolean) => void
}

export function createGhosts(ports: LeavingPorts): Ghosts {
  let ghosts: readonly Ghost[] = []
  let isClosed = false
  return Object.freeze({
    settle(entity, told, lost = []) {
      if (leavesOf({ entity, told, lost }, ports).length === 0) return Promise.resolve(true)
      return new Promise((laid) => {
        if (isClosed) laid(false)
        else ghosts = [...ghosts, { entity, told, lost, laid }]
      })
    },
    async lay(deliver) {
      const some = ghosts
      if (some.length === 0) return
      const isLaid = await deliver(some.flatMap((ghost) => leavesOf(ghost, ports)))
      if (!isLaid) return
      ghosts = ghosts.slice(some.length)
      for (const { laid } of some) laid(true)
    },
    close() {
      isClosed = true
      for (const { laid } of ghosts) laid(false)
    },
  } satisfies Ghosts)
}
