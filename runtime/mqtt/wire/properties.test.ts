/**
 * Properties of MQTT 5 against the library mqtt-packet: its output is parsed, and it parses the properties
 * that are passed on.
 */
import fc from 'fast-check'
import { generate, type IPublishPacket, type Packet, parser } from 'mqtt-packet'
import { describe, expect, it } from 'vitest'
import { type Incoming, readPublish } from '#mqtt/link/incoming.ts'
import { extentAt } from './framing.ts'
import { encodeWill, withSubscriptions } from './properties.ts'
import { asQos, publishBytes } from './wire.ts'

function parsed(bytes: Buffer): Packet | undefined {
  let found: Packet | undefined
  const reader = parser({ protocolVersion: 5 })
  reader.on('packet', (packet: Packet) => {
    found = packet
  })
  reader.parse(bytes)
  return found
}

function read(bytes: Buffer): ReturnType<typeof readPublish> {
  const extent = extentAt(bytes, 0)
  if (extent.kind !== 'whole') throw new Error(extent.kind)
  return readPublish({ bytes, at: 0, from: extent.head, end: extent.size, first: bytes[0]! }, true)
}

const text = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((value) => !value.includes('\u0000'))
const topic = text.filter((value) => value !== '' && !/[+#]/.test(value))
const name = fc.stringMatching(/^[a-z]{1,8}$/)
const passed = fc.record(
  {
    payloadFormatIndicator: fc.boolean(),
    contentType: text,
    responseTopic: topic,
    correlationData: fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value)),
    userProperties: fc.dictionary(name, text, { minKeys: 1, maxKeys: 5 }),
  },
  { requiredKeys: [], noNullPrototype: true },
)

describe('properties of a message', () => {
  it('are parsed, and those for subscribers are passed on unchanged', () => {
    const own = fc.record(
      { messageExpiryInterval: fc.nat(), topicAlias: fc.integer({ min: 1, max: 65_535 }) },
      { requiredKeys: [], noNullPrototype: true },
    )
    const ids = fc.array(fc.integer({ min: 1, max: 268_435_455 }), { maxLength: 1 })
    fc.assert(
      fc.property(passed, own, ids, fc.nat(2), (properties, mine, subscriptions, qosNumber) => {
        const qos = asQos(qosNumber)
        const packet: IPublishPacket = {
          cmd: 'publish',
          topic: 'a/b',
          payload: Buffer.from('x'),
          qos,
          messageId: 5,
          dup: false,
          retain: false,
          properties: { ...properties, ...mine },
        }
        const incoming = read(generate(packet, { protocolVersion: 5 })) as Incoming
        expect(incoming).toMatchObject({ id: qos === 0 ? 0 : 5, alias: mine.topicAlias })
        expect(incoming.expirySeconds).toBe(mine.messageExpiryInterval)
        expect(Buffer.from(incoming.payload).toString()).toBe('x')
        const message = { topic: 'a/b', payload: incoming.payload, qos, properties: incoming.properties }
        const flags = { qos, retain: false, dup: false, id: 5 }
        const sent = publishBytes(message, flags, {
          subscriptions,
          expirySeconds: mine.messageExpiryInterval,
        })
        const { properties: got = {} } = parsed(sent) as IPublishPacket
        const { messageExpiryInterval } = mine
        const expected = {
          ...properties,
          ...(messageExpiryInterval === undefined ? {} : { messageExpiryInterval }),
          ...(subscriptions.length === 0 ? {} : { subscriptionIdentifier: subscriptions[0] }),
        }
        expect(JSON.parse(JSON.stringify(got))).toEqual(JSON.parse(JSON.stringify(expected)))
        // A queued message has its subscription identifiers first.
        const kept = { ...message, properties: withSubscriptions(message.properties, subscriptions) }
        const later = parsed(publishBytes(kept, flags, { subscriptions: [], expirySeconds: undefined }))
        expect((later as IPublishPacket).properties?.subscriptionIdentifier).toBe(subscriptions[0])
      }),
      { numRuns: 200 },
    )
  })

  it('of a will are encoded like those of a message', () => {
    fc.assert(
      fc.property(passed, (properties) => {
        const message = {
          topic: 'a',
          payload: Buffer.alloc(0),
          qos: 0,
          properties: encodeWill(properties),
        } as const
        const flags = { qos: 0, retain: false, dup: false, id: 0 } as const
        const sent = parsed(publishBytes(message, flags, { subscriptions: [], expirySeconds: undefined }))
        const { properties: got = {} } = sent as IPublishPacket
        expect(JSON.parse(JSON.stringify(got))).toEqual(JSON.parse(JSON.stringify(properties)))
      }),
      { numRuns: 100 },
    )
  })

  it('never make the parser throw, whatever their bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
        const bytes = Buffer.concat([Buffer.from([0x30, 3 + tail.length, 0, 1, 97]), tail])
        const got = read(bytes)
        expect('reason' in got ? typeof got.code : got.topic).toMatch(/^(number|a)$/)
      }),
      { numRuns: 1000 },
    )
  })
})
