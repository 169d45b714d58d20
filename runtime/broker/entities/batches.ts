/**
 * Batch operations at the door, with one work per item. Items are submitted in slices, at most two of a
 * tenant at a time, so that other writes interleave. A refusal concerns its item alone.
 */

import { limits } from '#base/limits/limits.ts'
import { createSemaphore } from '#base/load/semaphore.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { footprintOf } from '#base/process/footprint.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { BatchItemError, BatchResult, ItemSource } from './entity-requests.ts'

/** The outcome of one item; an error may accompany a partial write. */
export type ItemOutcome = 'created' | 'done' | GatewayError

const isShortage = (outcome: ItemOutcome): boolean =>
  outcome instanceof GatewayError && outcome.entry.fault === 'resource'

/** Items per slice. */
export const sliceSize = 256
/** Memory of a waiting work besides its input. */
const workBytes = 256

export function createBatches(door: Door) {
  const takeTurn = createSemaphore(limits.batchSlicesMax.value)

  /** Commits one urgent work; `given` is the input that it holds in memory while it waits. */
  const commit = <T>(given: unknown, decide: (stage: Stage) => T, isSparing = false): Promise<T> =>
    door.commit(decide, { bytes: workBytes + footprintOf(given), isSparing })

  /**
   * Decides one work per item; an item that throws has its own error. If the whole first slice fails for lack
   * of queue or disk space, the batch is refused as a whole.
   */
  async function batch<Item>(
    items: ItemSource<Item>,
    idOf: (item: Item) => string,
    decide: (stage: Stage, item: Item) => ItemOutcome,
  ): Promise<BatchResult> {
    if (items.length > limits.batchEntitiesMax.value) {
      throw new GatewayError(
        'http.body-too-large',
        `the batch exceeds the maximum of ${limits.batchEntitiesMax.value} entities`,
      )
    }
    // All items have the commit time of the first, across groups, unless that is too long ago.
    let at = Number.NEGATIVE_INFINITY
    const dated = (stage: Stage, item: Item): ItemOutcome => {
      if (stage.at - at > limits.batchOneTimeMs.value) at = stage.at
      return decide(stage.ofBatch(at), item)
    }
    const success: string[] = []
    const created: string[] = []
    const errors: BatchItemError[] = []
    let part: readonly Item[] = []
    for (let from = 0; from < items.length; from += part.length) {
      const commitPart = (items: readonly Item[]): Promise<ItemOutcome[]> => {
        part = items
        return slice(items, dated)
      }
      if (from > 0) await nextTurn()
      // Items in memory are submitted at once, so that writes of one caller stay in its order.
      const outcomes = await takeTurn(() => {
        const next = items.slice(from, from + sliceSize)
        return next instanceof Promise ? next.then(commitPart) : commitPart(next)
      })
      const [first] = outcomes
      if (from === 0 && first instanceof GatewayError && outcomes.every(isShortage)) throw first
      outcomes.forEach((outcome, i) => {
        const id = idOf(part[i]!)
        if (outcome instanceof GatewayError) errors.push({ entityId: id, error: outcome })
        else {
          success.push(id)
          if (outcome === 'created') created.push(id)
        }
      })
    }
    return { success, created, errors }
  }

  /** Submits one work per item together: they share a commit, but each may be refused alone. */
  async function slice<Item>(
    items: readonly Item[],
    decide: (stage: Stage, item: Item) => ItemOutcome,
  ): Promise<ItemOutcome[]> {
    const settled = await Promise.allSettled(
      items.map((item) => commit(item, (stage) => decide(stage, item))),
    )
    return settled.map((outcome) => {
      if (outcome.status === 'fulfilled') return outcome.value
      if (outcome.reason instanceof GatewayError) return outcome.reason
      throw outcome.reason
    })
  }

  return Object.freeze({ commit, batch })
}
