/**
 * Limits the QoS 1 and 2 messages in flight to one client, at most its Receive Maximum ([MQTT-3.3.4-9]).
 * Messages of the session queue count too and have packet identifiers of their own. All other messages get
 * identifiers here, from the last quarter of the range, so that an acknowledgement is never attributed to the
 * queue. Messages beyond the limit wait in memory, bounded.
 */
import { limits } from '#base/limits/limits.ts'

const first = 0xc000
const last = 0xffff

/** Session queues use packet identifiers up to this one. */
export const queueIdsMax = first - 1

export interface Window {
  /** Sets the Receive Maximum of CONNECT. */
  limit(receiveMax: number): void
  /** Sets the function that counts the session queue's messages in flight. */
  share(inFlight: () => number): void
  /** How many messages of the session queue may be in flight. */
  queueRoom(): number
  /**
   * Sends a message now, or when there is room. `send` gets its packet identifier and returns whether it was
   * sent. Returns false when too much is waiting already.
   */
  offer(bytes: number, send: (id: number) => boolean): boolean
  /** The client acknowledged a message; waiting messages are sent. */
  answered(): void
  /** The client acknowledged a message of the session queue, so waiting messages may have room now. */
  resume(): void
  /** Drops waiting messages. */
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
  let inFlight = (): number => 0
  let waiting: Waiting[] = []
  let waitingBytes = 0

  const hasRoom = (): boolean => unanswered + inFlight() < max

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
      inFlight = count
    },
    queueRoom: () => max - unanswered,
    offer(bytes, send) {
      if (waiting.length === 0 && hasRoom()) {
        give(send)
        return true
      }
      // A client that states no Receive Maximum has thousands of messages in flight by now.
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
