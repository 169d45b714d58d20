/**
 * The queue of the door: works in arrival order, bounded by number and bytes, and taken out in bounded
 * groups. It knows nothing of time, and leaves a rejected work to its caller.
 */

import { limits } from '#base/limits/limits.ts'
import type { GatewayError } from '#base/register/errors.ts'
import type { Stage } from './stage.ts'

/**
 * A queued write. `decide` runs synchronously in FIFO order; if it throws, only this work is
 * refused.
 */
export interface Work {
  /**
   * False for observations of sensors, which may linger so that more join the group; any other work ends the
   * linger.
   */
  readonly urgent: boolean
  /** Bytes it holds in memory while it waits. */
  readonly bytes: number
  /** True for a write that frees space or needs almost none; it is accepted even when the disk is full. */
  readonly isSparing?: boolean | undefined
  /** Runs again, on a clean stage, when the group it was decided in is undone. */
  decide(stage: Stage): void
  /** Called once: after the flush without argument, or with the error of a refused or failed write. */
  answer(error?: GatewayError): void
}

/** Share of the queue that sensors may fill, so that a flood of observations does not block other writes. */
const sensorsShare = 3 / 4

/** Number of taken works at the head of the array from which on they are removed from it. */
const takenMax = 4096

export function createWorkQueue() {
  let works: Work[] = []
  let head = 0
  let bytes = 0
  let urgent = 0

  function count(work: Work, sign: 1 | -1): void {
    bytes += sign * work.bytes
    if (work.urgent) urgent += sign
  }

  return Object.freeze({
    length: () => works.length - head,
    hasUrgent: () => urgent > 0,
    /** True when at least half of the queue is free: callers that were rejected may submit again. */
    hasRoom: () =>
      works.length - head < limits.queueWorksMax.value / 2 && bytes < limits.queueBytesMax.value / 2,
    /** Adds a work; false when that would exceed a ceiling. An empty queue accepts a work of any size. */
    put(work: Work): boolean {
      const length = works.length - head
      const placesMax = limits.queueWorksMax.value
      if (length >= placesMax || (!work.urgent && length - urgent >= placesMax * sensorsShare)) return false
      if (bytes > 0 && bytes + work.bytes > limits.queueBytesMax.value) return false
      works.push(work)
      count(work, 1)
      return true
    },
    /** Takes the next works that fit a group of `bytesMax`; at least one if any waits. */
    take(bytesMax: number): Work[] {
      const taken: Work[] = []
      let takenBytes = 0
      let entityWorks = 0
      for (; head < works.length; head++) {
        const work = works[head]!
        const isFull =
          taken.length >= limits.groupObservationsMax.value ||
          takenBytes + work.bytes > bytesMax ||
          (work.urgent && entityWorks >= limits.groupEntityWorksMax.value)
        if (isFull && taken.length > 0) break
        takenBytes += work.bytes
        if (work.urgent) entityWorks++
        count(work, -1)
        taken.push(work)
      }
      if (head === works.length || head > takenMax) {
        works = works.slice(head)
        head = 0
      }
      return taken
    },
    /** Returns works to the head of the queue. */
    putBack(more: readonly Work[]): void {
      works = [...more, ...works.slice(head)]
      head = 0
      for (const work of more) count(work, 1)
    },
  })
}
