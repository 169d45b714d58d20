/**
 * Bounds the memory of data that was written to client connections and not yet read by the clients. All
 * connections share one byte budget. A connection with less than its high-water mark unsent does not count,
 * because the number of connections is bounded elsewhere. A client that reads nothing for `outflowStallMs` is
 * disconnected; while the budget is exhausted, `outflowPressureMs` applies instead. The mechanism is
 * independent of the protocol.
 */
import type { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { connectionLimits } from './descriptors.ts'

export interface Outflow {
  /**
   * Counts everything that is written to a connection from now on; closes it if there are too many
   * connections.
   */
  watch(socket: Socket): void
  /** Whether this many bytes may be written now; disconnects stalled clients if that frees enough. */
  hasRoom(bytes: number): boolean
  /** False while another page may exceed the budget: a request for a page should wait. */
  isOpen(): boolean
  /** Resolves to true when the caller may render a page, to false after `outflowWaitMs`. */
  whenOpen(): Promise<boolean>
  close(): void
}

export interface OutflowPorts {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
  readonly metrics: Metrics
}

interface Connection {
  /** Bytes that count against the budget. */
  held: number
  /** Bytes unsent, and written in total, at the last progress check. */
  unsent: number
  written: number
  /** When the client last read something or had nothing to read. */
  progressAt: number
}

interface Waiting {
  readonly until: number
  readonly settle: (isOpen: boolean) => void
}

const checkMs = 500
/** Minimum interval between two log lines. */
const quietMs = 5000

export function createOutflow({ clock, log, metrics }: OutflowPorts): Outflow {
  const connections = new Map<Socket, Connection>()
  const waiting = new Set<Waiting>()
  const stalled = metrics.counter('selvedge_clients_stalled_total')
  const refused = metrics.counter('selvedge_connections_refused_total')
  const connectionsMax = connectionLimits().http
  let held = 0
  let isAdmitting = false
  /** Clients disconnected since the last log line. */
  let disconnected = 0
  let refusedBefore = 0
  let quietUntil = Number.NEGATIVE_INFINITY
  metrics.gauge('selvedge_unsent_bytes', () => held)

  const fits = (bytes: number): boolean => held === 0 || held + bytes <= limits.outflowBytesMax.value
  const isOpen = (): boolean => waiting.size === 0 && fits(limits.pageBytesMax.value)

  function hold(connection: Connection, bytes: number): void {
    held += bytes - connection.held
    const isLess = bytes < connection.held
    connection.held = bytes
    if (isLess) admit()
  }

  /** Admits waiting requests one by one: each writes its response before the next is admitted. */
  function admit(): void {
    if (isAdmitting || waiting.size === 0 || !fits(limits.pageBytesMax.value)) return
    isAdmitting = true
    setImmediate(() => {
      isAdmitting = false
      const [next] = waiting
      if (next === undefined || !fits(limits.pageBytesMax.value)) return
      waiting.delete(next)
      next.settle(true)
      admit()
    })
  }

  function disconnect(socket: Socket, connection: Connection): void {
    stalled.value++
    disconnected++
    hold(connection, 0)
    connections.delete(socket)
    // RST, so that the kernel also discards the data that the client does not read.
    socket.resetAndDestroy()
  }

  /** Disconnects the clients that have read nothing for longest until there is room. */
  function makeRoom(bytes: number): boolean {
    if (fits(bytes)) return true
    const before = clock.monotonic() - limits.outflowPressureMs.value
    const idle = [...connections].filter(([, { held, progressAt }]) => held > 0 && progressAt <= before)
    idle.sort(([, a], [, b]) => a.progressAt - b.progressAt)
    for (const [socket, connection] of idle) {
      disconnect(socket, connection)
      if (fits(bytes)) return true
    }
    return false
  }

  /** Called when a write leaves a connection with more than its high-water mark unsent. */
  function note(socket: Socket, connection: Connection): void {
    if (connection.held === 0) connection.progressAt = clock.monotonic()
    hold(connection, socket.writableLength)
    // A small response with its headers may reach the mark; the number of clients bounds these.
    const isLarge = connection.held > 2 * limits.outflowSmallBytes.value
    if (isLarge && held > limits.outflowBytesMax.value && held > connection.held && !makeRoom(0))
      disconnect(socket, connection)
  }

  function check(): void {
    const now = clock.monotonic()
    for (const [socket, connection] of connections) {
      const unsent = unsentBytes(socket)
      const isStill = unsent > 0 && unsent === connection.unsent && socket.bytesWritten === connection.written
      connection.unsent = unsent
      connection.written = socket.bytesWritten
      if (!isStill) connection.progressAt = now
      else if (now - connection.progressAt > limits.outflowStallMs.value) disconnect(socket, connection)
    }
    if (waiting.size > 0) makeRoom(limits.pageBytesMax.value)
    for (const one of waiting) {
      if (one.until > now) break
      waiting.delete(one)
      one.settle(false)
    }
    admit()
    if (now >= quietUntil) logDisconnected(now)
  }

  /** Logs at most one line per interval, with counts. */
  function logDisconnected(now: number): void {
    const turnedAway = refused.value - refusedBefore
    if (disconnected > 0) log.warn('connection.stalled', { clients: disconnected, unsentBytes: held })
    if (turnedAway > 0) log.warn('connection.refused', { connections: turnedAway, most: connectionsMax })
    if (disconnected > 0 || turnedAway > 0) quietUntil = now + quietMs
    disconnected = 0
    refusedBefore = refused.value
  }

  const timer = setInterval(check, checkMs).unref()
  return Object.freeze({
    watch(socket) {
      if (connections.size >= connectionsMax) {
        refused.value++
        socket.destroy()
        return
      }
      const connection = { held: 0, unsent: 0, written: 0, progressAt: clock.monotonic() }
      connections.set(socket, connection)
      // Arguments one by one: each answer passes here.
      const write = socket.write as (data: unknown, encoding: unknown, done: unknown) => boolean
      socket.write = (data: unknown, encoding?: unknown, done?: unknown) => {
        const isBelow = write.call(socket, data, encoding, done)
        if (!isBelow && connections.has(socket)) note(socket, connection)
        return isBelow
      }
      socket.on('drain', () => hold(connection, 0))
      socket.on('close', () => {
        hold(connection, 0)
        connections.delete(socket)
      })
    },
    hasRoom: makeRoom,
    isOpen,
    whenOpen: () =>
      new Promise((settle) => {
        waiting.add({ until: clock.monotonic() + limits.outflowWaitMs.value, settle })
      }),
    close() {
      clearInterval(timer)
      for (const { settle } of waiting) settle(false)
      waiting.clear()
    },
  } satisfies Outflow)
}

/**
 * Bytes written to a connection that the kernel has not accepted. Node counts a write as a whole until it
 * ends; the queue of the handle shows the progress within it, and net.Socket bases its own time-outs on it.
 */
function unsentBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? socket.writableLength
}
