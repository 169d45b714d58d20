/** The broker survives any bytes at the MQTT port and continues to serve other clients. */
import { connect } from 'node:net'
import fc from 'fast-check'
import { generate, type Packet } from 'mqtt-packet'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  connectPacket,
  connectRaw,
  openBroker,
  publishPacket,
  subscribePacket,
} from '#test/kit/mqtt.ts'

const file = temporaryDatabase()
let broker: Broker

beforeAll(async () => {
  broker = await openBroker(file.file)
})

afterAll(async () => {
  await broker.close()
  file.remove()
})

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
const id = fc.integer({ min: 0, max: 4 })
const topic = fc.oneof(
  fc.constantFrom('a', 'claimed/x', '$SYS/x', 'a/+', '#', ''),
  fc.string({ maxLength: 20 }),
)
const qos = fc.constantFrom(0 as const, 1 as const, 2 as const)

/** Well-formed packets in any order, with colliding identifiers. */
const properties = fc.constantFrom(
  undefined,
  { topicAlias: 2 },
  { messageExpiryInterval: 1, contentType: 'a/b', userProperties: { a: ['b', 'c'] } },
)
const packet: fc.Arbitrary<Packet> = fc.oneof(
  fc
    .record({ topic, payload: bytes(40), qos, id, retain: fc.boolean(), dup: fc.boolean(), properties })
    .map((one) => publishPacket(one.topic, one.payload, { ...one, messageId: one.id })),
  fc.record({ topic, qos, id }).map((one) => subscribePacket(one.id, [one.topic, one.qos])),
  fc
    .record({ topic, id })
    .map((one) => ({ cmd: 'unsubscribe', messageId: one.id, unsubscriptions: [one.topic] }) as never),
  fc
    .record({ cmd: fc.constantFrom('puback', 'pubrec', 'pubrel', 'pubcomp'), messageId: id })
    .map((one) => one as never),
  fc.constantFrom({ cmd: 'pingreq' } as Packet, { cmd: 'disconnect' } as never, connectPacket('again')),
)

/**
 * Bytes of a packet, or arbitrary ones if the library refuses to encode it, sometimes with one byte changed.
 */
const chunk = fc.oneof(
  bytes(60),
  fc
    .tuple(packet, fc.option(fc.tuple(fc.nat(30), fc.nat(255))), fc.constantFrom(4, 5))
    .map(([one, change, version]) => {
      let whole: Buffer
      try {
        whole = generate(one, { protocolVersion: version })
      } catch {
        whole = Buffer.from([0x30, 4, 0, 1, 97, 98])
      }
      if (change !== null && change[0] < whole.length) whole[change[0]] = change[1]
      return whole
    }),
)

it('survives any sequence of packets and bytes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(undefined, 4 as const, 5 as const),
      fc.boolean(),
      fc.array(chunk, { maxLength: 12 }),
      async (version, clean, chunks) => {
        const client = connect({ port: broker.port, host: '127.0.0.1' })
        client.on('error', () => undefined).resume()
        const ended = new Promise((resolve) => client.on('close', resolve))
        const protocolVersion = version ?? 4
        const greeting = { ...connectPacket('fuzz', { clean }), protocolVersion } as Packet
        if (version !== undefined) client.write(generate(greeting, { protocolVersion }))
        for (const piece of chunks) client.write(piece)
        client.end()
        await ended
      },
    ),
    { numRuns: 300 },
  )
  const witness = await connectRaw(broker.port, 'witness')
  witness.send(publishPacket('claimed/alive', 'yes', { qos: 1, messageId: 1 }))
  expect(await witness.next()).toMatchObject({ cmd: 'puback', messageId: 1 })
  witness.end()
  await expect.poll(() => broker.server.stats().clients).toBe(0)
})
