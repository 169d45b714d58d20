/**
 * The line before the door: works in the order they came, bounded by number and by bytes, taken in groups that are
 * bounded too. It knows nothing of time, and a work that it does not take is somebody else's again.
 */

import { limits } from '#base/limits/limits.ts'
import type { GatewayError } from '#base/register/errors.ts'
import type { Stage } from './stage.ts'

/** One thing to be written. `decide` runs synchronously in FIFO order and may throw to refuse itself alone. */
export interface Work {
  /** False for observations of sensors, which may linger for company; everything else ends the linger. */
  readonly urgent: boolean
  /** Bytes it holds in memory while it waits. */
  readonly bytes: number
  /** What makes room or costs next to none; it goes on where there is no room for others. */
  readonly isSparing?: boolean | undefined
  /** Runs again, on a clean stage, when the group it was decided in is undone. */
  decide(stage: Stage): void
  /** Called once, after the flush (no argument), or with why it was refused or could not be written. */
  answer(error?: GatewayError): void
}

/** What sensors send leaves so much of the line to everybody else: a flood of it shuts nobody out. */
const sensorsShare = 3 / 4

/** Works that are gone are let go of from so many on. */
const goneMax = 4096

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
    /** True when there is room enough for those who were turned away. */
    hasRoom: () =>
      works.length - head < limits.queueWorksMax.value / 2 && bytes < limits.queueBytesMax.value / 2,
    /** Takes a work in; false when that would be beyond a ceiling. One work of any size fits an empty queue. */
    put(work: Work): boolean {
      const length = works.length - head
      const placesMax = limits.queueWorksMax.value
      if (length >= placesMax || (!work.urgent && length - urgent >= placesMax * sensorsShare)) return false
      if (bytes > 0 && bytes + work.bytes > limits.queueBytesMax.value) return false
      works.push(work)
      count(work, 1)
      return true
    },
    /** The next works that share a group of so many bytes, one at least if there is any. */
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
      if (head === works.length || head > goneMax) {
        works = works.slice(head)
        head = 0
      }
      return taken
    },
    /** Puts works back at the head. */
    giveBack(more: readonly Work[]): void {
      works = [...more, ...works.slice(head)]
      head = 0
      for (const work of more) count(work, 1)
    },
  })
}
