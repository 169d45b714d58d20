/**
 * Splits the bytes of one connection into packets. It keeps incomplete packets and allocates each of them
 * once. It refuses a packet above the limit by its first bytes.
 */
import type { Flow } from './flow.ts'
import { extentAt } from './framing.ts'
import { reasons } from './reasons.ts'

export interface PacketReader {
  /** Reads bytes; false when reading stopped before their end. */
  read(bytes: Buffer): boolean
  /** Continues where reading stopped; false when it stops again. */
  proceed(): boolean
  /** Releases the memory of an incomplete packet. */
  end(): void
}

export interface PacketReaderPorts {
  /** Bytes of incomplete packets of all connections. */
  readonly partials: Flow
  /** Current maximum packet size in bytes. */
  readonly ceiling: () => number
  readonly mayRead: () => boolean
  /** True when nothing more is to be read, ever. */
  readonly isEnded: () => boolean
  /** Handles the packet between two positions; its fixed header has `head` bytes. */
  readonly packet: (bytes: Buffer, at: number, head: number, end: number) => void
  readonly fail: (reason: string, code: number) => void
}

export function createPacketReader(ports: PacketReaderPorts): PacketReader {
  const { partials, ceiling, mayRead, isEnded, packet, fail } = ports
  let rest: Buffer | undefined
  /** An incomplete packet, and how much of it has arrived. */
  let whole: Buffer | undefined
  let filled = 0

  function parse(bytes: Buffer): boolean {
    let at = 0
    while (at < bytes.length && !isEnded()) {
      if (!mayRead()) {
        rest = bytes.subarray(at)
        return false
      }
      const extent = extentAt(bytes, at)
      if (extent.kind === 'malformed') fail('malformed remaining length', reasons.malformedPacket)
      else if (extent.kind === 'unknown') rest = bytes.subarray(at)
      else if (extent.size > ceiling()) {
        fail(`the packet has ${extent.size} bytes; the maximum is ${ceiling()}`, reasons.packetTooLarge)
      } else if (extent.kind === 'part') begin(bytes.subarray(at), extent.size)
      else packet(bytes, at, extent.head, at + extent.size)
      if (extent.kind !== 'whole') return true
      at += extent.size
    }
    return true
  }

  function begin(bytes: Buffer, size: number): void {
    if (partials.isFull()) {
      fail('the incomplete packets of all clients use too much memory', reasons.serverBusy)
      return
    }
    partials.add(size)
    whole = Buffer.allocUnsafe(size)
    filled = bytes.copy(whole)
  }

  /** Fills the incomplete packet; returns the bytes after it, or undefined while it is incomplete. */
  function fill(bytes: Buffer): Buffer | undefined {
    const count = bytes.copy(whole!, filled)
    filled += count
    if (filled < whole!.length) return undefined
    const complete = whole!
    end()
    const extent = extentAt(complete, 0)
    if (extent.kind === 'whole') packet(complete, 0, extent.head, complete.length)
    return bytes.subarray(count)
  }

  function end(): void {
    if (whole !== undefined) partials.remove(whole.length)
    whole = undefined
  }

  function proceed(): boolean {
    const bytes = rest
    rest = undefined
    return bytes === undefined || parse(bytes)
  }

  return Object.freeze({
    read(bytes) {
      if (whole !== undefined) {
        const after = fill(bytes)
        return after === undefined || parse(after)
      }
      if (rest === undefined) return parse(bytes)
      const joined = Buffer.concat([rest, bytes])
      rest = undefined
      return parse(joined)
    },
    proceed,
    end,
  } satisfies PacketReader)
}
