/**
 * How many QoS 1 and 2 messages may be on their way to one client, at most its Receive Maximum ([MQTT-3.3.4-9]). Messages
 * of the session queue take part and have their own packet identifiers; all others get one here: the last quarter of
 * them, so that an acknowledgement is never taken for one of the queue. What finds no room waits in memory, bounded.
 */
import { limits } from '#base/limits/limits.ts'

const first = 0xc000
const last = 0xffff

/** Packet identifiers up to here are given by session queues. */
export const queueIdsMax = first - 1

export interface Window {
  /** Sets what CONNECT states. */
  limit(receiveMax: number): void
  /** Counts the messages of a session queue that are on their way. */
  share(underWay: () => number): void
  /** How many messages of the session queue may be on their way. */
  queueRoom(): number
  /**
   * Sends a message now or when there is room; `send` gets its packet identifier and says whether it was sent. False
   * when too much waits already.
   */
  offer(bytes: number, send: (id: number) => boolean): boolean
  /** The client has answered a message; what waits is sent. */
  answered(): void
  /** A message of the session queue was answered: what waits may have room now. */
  resume(): void
  /** Forgets what waits. */
  close(): void
}

interface Waiting {
  readonly bytes: number
  readonly send: (id: number) => boolean
}

export function createWindow(): Window {
  let next = first
  let unanswered = 0
  let max = limits.subscriberUnackedMax.value
  let underWay = (): number => 0
  let waiting: Waiting[] = []
  let waitingBytes = 0

  const hasRoom = (): boolean => unanswered + underWay() < max

  function give(send: (id: number) => boolean): void {
    const id = next
    next = id === last ? first : id + 1
    if (send(id)) unanswered++
  }

  function drain(): void {
    let sent = 0
    while (sent < waiting.length && hasRoom()) {
      const { bytes, send } = waiting[sent++]!
      waitingBytes -= bytes
      give(send)
    }
    if (sent > 0) waiting = waiting.slice(sent)
  }

  return Object.freeze({
    limit(receiveMax) {
      max = Math.min(receiveMax, limits.subscriberUnackedMax.value)
    },
    share(count) {
      underWay = count
    },
    queueRoom: () => max - unanswered,
    offer(bytes, send) {
      if (waiting.length === 0 && hasRoom()) {
        give(send)
        return true
      }
      // Whoever states no Receive Maximum has had thousands of messages by now.
      if (waitingBytes + bytes > limits.subscriberBacklogBytesMax.value) return false
      waiting.push({ bytes, send })
      waitingBytes += bytes
      return true
    },
    answered() {
      if (unanswered > 0) unanswered--
      drain()
    },
    resume: drain,
    close() {
      waiting = []
    },
  } satisfies Window)
}
