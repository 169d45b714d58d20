/**
 * Cuts the bytes of one connection into packets. It keeps what could not be read yet, gives a packet that comes in
 * pieces its room once, and refuses one above the ceiling by its first bytes.
 */
import type { Flow } from './flow.ts'
import { extentAt } from './framing.ts'
import { reasons } from './reasons.ts'

export interface PacketReader {
  /** Takes bytes; false when reading stopped before their end. */
  read(bytes: Buffer): boolean
  /** Goes on where reading stopped; false when it stops again. */
  proceed(): boolean
  /** Gives back the room of a packet that will not wholly come. */
  end(): void
}

export interface PacketReaderPorts {
  /** Bytes of packets, of all connections, that have not wholly come. */
  readonly partials: Flow
  /** Largest packet in bytes, now. */
  readonly ceiling: () => number
  readonly mayRead: () => boolean
  /** True when nothing more is to be read, ever. */
  readonly isDeaf: () => boolean
  /** Takes the packet between two places; its fixed header has `head` bytes. */
  readonly packet: (bytes: Buffer, at: number, head: number, end: number) => void
  readonly fail: (reason: string, code: number) => void
}

export function createPacketReader(ports: PacketReaderPorts): PacketReader {
  const { partials, ceiling, mayRead, isDeaf, packet, fail } = ports
  let rest: Buffer | undefined
  /** A packet that comes in pieces, and how much of it is there. */
  let whole: Buffer | undefined
  let filled = 0

  function parse(bytes: Buffer): boolean {
    let at = 0
    while (at < bytes.length && !isDeaf()) {
      if (!mayRead()) {
        rest = bytes.subarray(at)
        return false
      }
      const extent = extentAt(bytes, at)
      if (extent.kind === 'malformed') fail('malformed remaining length', reasons.malformedPacket)
      else if (extent.kind === 'unknown') rest = bytes.subarray(at)
      else if (extent.size > ceiling()) {
        fail(`a packet of ${extent.size} bytes, at most ${ceiling()}`, reasons.packetTooLarge)
      } else if (extent.kind === 'part') begin(bytes.subarray(at), extent.size)
      else packet(bytes, at, extent.head, at + extent.size)
      if (extent.kind !== 'whole') return true
      at += extent.size
    }
    return true
  }

  function begin(bytes: Buffer, size: number): void {
    if (partials.isFull()) {
      fail('too many packets come in pieces', reasons.serverBusy)
      return
    }
    partials.add(size)
    whole = Buffer.allocUnsafe(size)
    filled = bytes.copy(whole)
  }

  /** Fills the packet that comes in pieces; returns the bytes after it, or undefined while it is not whole. */
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
