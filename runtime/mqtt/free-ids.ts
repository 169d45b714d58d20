/**
 * Packet identifiers of messages that no session queue keeps: the last quarter of them, so that an acknowledgement
 * is never taken for one of the queue. They come again in turn; a client that leaves too many unanswered gets none.
 */
import { limits } from '#base/limits.ts'

const first = 0xc000
const last = 0xffff

/** Identifiers below are given by session queues. */
export const queueIdsMax = first - 1

export interface FreeIds {
  /** The next identifier; undefined when too many are unanswered. */
  nextId(): number | undefined
  /** The client has answered one. */
  answered(): void
}

export function createFreeIds(): FreeIds {
  let next = first
  let unanswered = 0
  return Object.freeze({
    nextId() {
      if (unanswered >= limits.subscriberUnackedMax.value) return undefined
      unanswered++
      const id = next
      next = id === last ? first : id + 1
      return id
    },
    answered() {
      if (unanswered > 0) unanswered--
    },
  } satisfies FreeIds)
}
