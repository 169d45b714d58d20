/**
 * The output to one client. Everything written during one turn of the event loop is sent together at its end,
 * followed by the turn's acknowledgements. It detects a client that does not drain its socket, and calls back
 * when the client has caught up.
 */
import type { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import { failpoint } from '#base/register/failpoints.ts'
import { type Acknowledgement, ackBytes } from '#mqtt/wire/wire.ts'

export interface Outlet {
  write(bytes: Uint8Array): void
  /** Sends an acknowledgement; those of one turn are sent together, in order. */
  acknowledge(acknowledgement: Acknowledgement): void
  /** Sends what was written so far. */
  flush(): void
  /** True when the client does not keep up with what is sent to it. */
  isBacklogged(): boolean
  /** Calls back once when everything is sent; an action added several times is called once. */
  whenDrained(action: () => void): void
  /** How long the client has read nothing while data is pending, ms. */
  stalledMs(now: number): number
  /**
   * Sends the pending data, if the client reads it soon, and closes the socket. With `isAwaited`, further
   * input is read and discarded meanwhile, because a TCP reset could destroy the last packets.
   */
  close(options?: { readonly isAwaited: boolean }): void
}

/** How long a closed connection may take to send pending data. */
const lastWordsMs = 2000

/** Unsent bytes of all clients together. */
export interface UnsentBytes {
  bytes: number
}

export interface OutletPorts {
  readonly atTurnEnd: (action: () => void) => void
  /** Shared by all connections. */
  readonly backlog: UnsentBytes
}

export function createOutlet(socket: Socket, { atTurnEnd, backlog }: OutletPorts): Outlet {
  let acknowledged: Acknowledgement[] = []
  let isCorked = false
  let willFlush = false
  let isClosed = false
  let waiting = new Set<() => void>()
  /** Values of the last check; the first check never reports a stall. */
  let sentBytes = -1
  let sentAt = 0
  /** The share of `backlog` that is unsent here. */
  let counted = 0

  function count(bytes: number): void {
    backlog.bytes += bytes - counted
    counted = bytes
  }

  /**
   * While the total backlog is too large, the limit per client is lower, so that only lagging clients must
   * drain.
   */
  function isBacklogged(): boolean {
    const most =
      backlog.bytes > limits.subscribersBacklogBytesMax.value
        ? limits.subscriberLagBytes.value
        : limits.subscriberBacklogBytesMax.value
    return !isClosed && socket.writableLength > most
  }

  function flushAtTurnEnd(): void {
    if (willFlush) return
    willFlush = true
    atTurnEnd(flush)
  }

  /** A turn with acknowledgements only, which is one write, needs no cork. */
  function cork(): void {
    if (isCorked) return
    isCorked = true
    socket.cork()
    flushAtTurnEnd()
  }

  function flush(): void {
    if (!willFlush) return
    willFlush = false
    const due = acknowledged
    if (due.length > 0) {
      acknowledged = []
      socket.write(ackBytes(due))
    }
    if (isCorked) socket.uncork()
    isCorked = false
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
      flushAtTurnEnd()
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
