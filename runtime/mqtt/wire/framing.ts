/**
 * Finds the boundaries of MQTT packets. The first bytes state the size of a packet, so a packet above the
 * limit is refused before any of it is stored. A packet in several pieces is allocated once.
 */

/** The packet at a position: complete, incomplete with known size, or neither. */
export type PacketExtent =
  | { readonly kind: 'whole'; readonly head: number; readonly size: number }
  | { readonly kind: 'part'; readonly size: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'malformed' }

const unknown: PacketExtent = { kind: 'unknown' }
const malformed: PacketExtent = { kind: 'malformed' }

/**
 * The extent of the packet that begins at `at`: `head` is the size of its fixed header, `size` that of the
 * whole packet in bytes (MQTT 3.1.1, section 2.2.3). `unknown` until the remaining length is complete.
 */
export function extentAt(bytes: Uint8Array, at: number): PacketExtent {
  let length = 0
  for (let i = 1; i <= 4; i++) {
    const byte = bytes[at + i]
    if (byte === undefined) return unknown
    length += (byte & 0x7f) * 128 ** (i - 1)
    if (byte < 0x80) {
      const size = 1 + i + length
      return bytes.length - at < size ? { kind: 'part', size } : { kind: 'whole', head: 1 + i, size }
    }
  }
  return malformed
}
