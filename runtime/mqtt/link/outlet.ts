/**
 * The way out to one client. What is written during a turn of the event loop leaves in one piece at its end, with the
 * acknowledgements in a row. Knows whether the client keeps up, and calls back when it has caught up.
 */
import type { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { type Acknowledgement, ackBytes } from '#mqtt/wire/wire.ts'

export interface Outlet {
  write(bytes: Uint8Array): void
  /** Sends an acknowledgement; those of one turn leave in one piece, in order. */
  acknowledge(acknowledgement: Acknowledgement): void
  /** Sends what was written so far. */
  flush(): void
  /** True when the client does not keep up with what is sent to it. */
  isBacklogged(): boolean
  /** Calls back once when everything is sent, however often the same action waits. */
  whenDrained(action: () => void): void
  /** How long the client has taken nothing although something is there for it, in ms. */
  stalledMs(now: number): number
  /**
   * Sends the rest, if the client takes it soon, and closes the socket. `isAwaited`: what the client still sends is
   * read and dropped meanwhile, because a reset would keep the last words from it.
   */
  close(options?: { readonly isAwaited: boolean }): void
}

/** How long a closed connection may take to send what was written to it. */
const lastWordsMs = 2000

/** Bytes unsent to all clients together. */
export interface Backlog {
  bytes: number
}

export interface OutletPorts {
  readonly atTurnEnd: (action: () => void) => void
  /** Shared by all connections. */
  readonly backlog: Backlog
}

export function createOutlet(socket: Socket, { atTurnEnd, backlog }: OutletPorts): Outlet {
  let acknowledged: Acknowledgement[] = []
  let isCorked = false
  let isClosed = false
  let waiting = new Set<() => void>()
  /** As they were at the last look; at the first one nothing is late. */
  let sentBytes = -1
  let sentAt = 0
  /** What of `backlog` is unsent here. */
  let counted = 0

  function count(bytes: number): void {
    backlog.bytes += bytes - counted
    counted = bytes
  }

  /** While too much is unsent in all, clients that lag behind have to drain; the others do not notice. */
  function isBacklogged(): boolean {
    const most =
      backlog.bytes > limits.subscribersBacklogBytesMax.value
        ? limits.subscriberLagBytes.value
        : limits.subscriberBacklogBytesMax.value
    return !isClosed && socket.writableLength > most
  }

  function cork(): void {
    if (isCorked) return
    isCorked = true
    socket.cork()
    atTurnEnd(flush)
  }

  function flush(): void {
    if (!isCorked) return
    isCorked = false
    const due = acknowledged
    if (due.length > 0) {
      acknowledged = []
      socket.write(ackBytes(due))
    }
    socket.uncork()
    if (due.length > 0) failpoint('mqtt:after-puback')
  }

  socket.on('close', () => count(0))
  socket.on('drain', () => {
    count(0)
    const actions = waiting
    waiting = new Set()
    for (const action of actions) action()
  })

  return Object.freeze({
    write(bytes) {
      if (isClosed) return
      cork()
      if (!socket.write(bytes)) count(socket.writableLength)
    },
    acknowledge(acknowledgement) {
      if (isClosed) return
      cork()
      acknowledged.push(acknowledgement)
    },
    flush,
    isBacklogged,
    whenDrained(action) {
      if (!isClosed) waiting.add(action)
    },
    stalledMs(now) {
      const sent = socket.bytesWritten - socket.writableLength
      if (sent !== sentBytes || socket.writableLength === 0) {
        sentBytes = sent
        sentAt = now
      }
      return now - sentAt
    },
    close({ isAwaited } = { isAwaited: false }) {
      if (isClosed) return
      flush()
      isClosed = true
      waiting = new Set()
      if (isAwaited && !socket.destroyed) {
        socket.end()
        socket.resume()
        setTimeout(() => socket.destroy(), lastWordsMs).unref()
      } else if (socket.writableLength === 0) {
        socket.destroy()
      } else {
        socket.destroySoon()
        setTimeout(() => socket.destroy(), lastWordsMs).unref()
      }
    },
  } satisfies Outlet)
}
