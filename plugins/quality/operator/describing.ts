/** Describes all streams again after a change of the table of usual properties, in slices. */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'

export interface DescribingPorts {
  readonly streams: KnownStreams
  readonly entityOf: (id: string) => Entity | undefined
  readonly signal: AbortSignal
}

/** Returns a function to call after a change. Changes during a pass share the next pass. */
export function createDescribing({ streams, entityOf, signal }: DescribingPorts): () => void {
  let isWanted = false
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (isWanted) {
      isWanted = false
      for (const [i, { id }] of [...streams.all()].entries()) {
        if (signal.aborted) return
        const entity = entityOf(id)
        if (entity !== undefined) streams.take(entity)
        if (i % limits.clientReadPage.value === 0) await nextTurn()
      }
    }
    isRunning = false
  }

  return () => {
    isWanted = true
    if (!isRunning) void run()
  }
}
