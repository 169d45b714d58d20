/** Packets and framing against the library mqtt-packet. */
import fc from 'fast-check'
import { generate, type Packet, parser } from 'mqtt-packet'
import { describe, expect, it } from 'vitest'
import { extentAt } from './framing.ts'
import { ackBytes, asQos, publishBytes } from './wire.ts'

function parsed(bytes: Buffer): Packet[] {
  const packets: Packet[] = []
  const reader = parser()
  reader.on('packet', (packet: Packet) => packets.push(packet))
  reader.parse(bytes)
  return packets
}

const sizes = fc.oneof(fc.nat(300), fc.constantFrom(100, 16_300, 16_384, 2_097_152))
const publish = fc.record({
  topic: fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 50 })
    .filter((text) => !/[+#\u0000]/.test(text)),
  payload: sizes.map((size) => Buffer.alloc(size, 'x')),
  qos: fc.integer({ min: 0, max: 2 }).map(asQos),
  retain: fc.boolean(),
  id: fc.integer({ min: 1, max: 65_535 }),
})

describe('packets', () => {
  it('encodes PUBLISH exactly as mqtt-packet does', () => {
    fc.assert(
      fc.property(publish, fc.boolean(), ({ id, ...message }, isRepeat) => {
        const dup = isRepeat && message.qos > 0
        const expected = generate({ cmd: 'publish', ...message, dup, messageId: id })
        expect(publishBytes(message, { ...message, dup, id }).equals(expected)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  it('encodes PUBACK, PUBREC, PUBREL and PUBCOMP so that mqtt-packet can read them', () => {
    const all = (['puback', 'pubrec', 'pubrel', 'pubcomp'] as const).flatMap((type) =>
      [1, 256, 65_535].map((id) => ({ type, id, code: 0 })),
    )
    expect(parsed(ackBytes(all))).toMatchObject(all.map(({ type, id }) => ({ cmd: type, messageId: id })))
  })
})

describe('framing', () => {
  it('finds the end of every packet, and none of an incomplete one', () => {
    fc.assert(
      fc.property(fc.array(publish, { minLength: 1, maxLength: 4 }), fc.nat(), (messages, cut) => {
        const packets = messages.map(({ id, ...message }) =>
          publishBytes(message, { ...message, dup: false, id }),
        )
        const bytes = Buffer.concat(packets)
        let at = 0
        for (const packet of packets) {
          expect(extentAt(bytes, at)).toMatchObject({ kind: 'whole', size: packet.length })
          at += packet.length
        }
        const last = packets.at(-1)!
        const part = last.subarray(0, cut % last.length)
        expect(['part', 'unknown']).toContain(extentAt(part, 0).kind)
      }),
      { numRuns: 100 },
    )
  })

  it('refuses a length of more than four bytes', () => {
    expect(extentAt(Uint8Array.of(0x30, 0x80, 0x80, 0x80, 0x80, 0x01), 0)).toEqual({ kind: 'malformed' })
  })
})
