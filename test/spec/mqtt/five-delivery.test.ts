/**
 * MQTT 5: delivery to subscribers and flow control, wills with a delay, and the reasons that end a
 * connection.
 */
import { generate, type IPublishPacket, type Packet } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  connectFive,
  connectPacket,
  openBroker,
  openRaw,
  publishPacket,
  type RawClient,
  textOf,
} from '#test/kit/mqtt.ts'

let file: TemporaryDatabase
let broker: Broker

beforeEach(async () => {
  file = temporaryDatabase()
  broker = await openBroker(file.file)
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

const publish = (topic: string, payload: string | Buffer, more: Partial<IPublishPacket> = {}): Packet =>
  ({ ...publishPacket(topic, payload), ...more }) as Packet

/** The reason code of a message that was accepted and matches no subscription. */
const noSubscribers = 0x10

const bytesOf = (packet: Packet): number => generate(packet, { protocolVersion: 5 }).length

/** A message that has this many bytes on the wire. */
function publishOf(bytes: number, topic: string): Packet {
  const qosOne = { qos: 1, messageId: 7 } as const
  const rest = bytesOf(publish(topic, Buffer.alloc(bytes), qosOne)) - bytes
  const packet = publish(topic, Buffer.alloc(bytes - rest), qosOne)
  expect(bytesOf(packet)).toBe(bytes)
  return packet
}

interface Options {
  readonly topic: string
  readonly qos?: number
  readonly nl?: boolean
  readonly rap?: boolean
  readonly rh?: number
}

function subscribePacket(filters: readonly Options[], properties: object = {}): Packet {
  const subscriptions = filters.map((one) => ({ qos: 1, nl: false, rap: false, rh: 0, ...one }))
  return { cmd: 'subscribe', messageId: 9, subscriptions, properties } as never
}

async function subscribe(
  client: RawClient,
  filters: readonly Options[],
  properties: object = {},
): Promise<number[]> {
  client.send(subscribePacket(filters, properties))
  const suback = (await client.next()) as unknown as { cmd: string; granted: number[] }
  expect(suback.cmd).toBe('suback')
  return suback.granted
}

async function publishAt(client: RawClient, packet: Packet): Promise<number | undefined> {
  client.send({ ...packet, qos: 1, messageId: 7 } as Packet)
  const puback = (await client.next()) as unknown as { cmd: string; reasonCode?: number }
  expect(puback.cmd).toBe('puback')
  return puback.reasonCode
}

/** The messages received before a message to `end`, which is published last. */
async function until(client: RawClient, end: string): Promise<IPublishPacket[]> {
  const got: IPublishPacket[] = []
  for (;;) {
    const packet = (await client.next()) as IPublishPacket
    if (packet.topic === end) return got
    got.push(packet)
  }
}

describe('a subscription', () => {
  it('is answered filter by filter: granted, shared, too many', async () => {
    const client = await connectFive(broker.port, 'many')
    expect(
      await subscribe(client, [{ topic: 'a', qos: 2 }, { topic: '$share/g/a' }, { topic: 'b' }]),
    ).toEqual([2, 0x9e, 1])
    const filters = Array.from({ length: limits.subscriptionsPerClientMax.value }, (_, n) => ({
      topic: `${n}`,
      qos: 0,
    }))
    const codes = await subscribe(client, filters)
    expect(codes.filter((code) => code === 0x97)).toHaveLength(2)
    expect(codes.slice(-2)).toEqual([0x97, 0x97])
    client.send({ cmd: 'unsubscribe', messageId: 4, unsubscriptions: ['a', 'never', 'b'] } as never)
    expect(await client.next()).toMatchObject({ cmd: 'unsuback', granted: [0, 0x11, 0] })
  })

  it('answers filters in order, whatever their names, and repeated ones repeatedly', async () => {
    const client = await connectFive(broker.port, 'constructor')
    const filters = ['b', '1', '__proto__', 'b', 'constructor', '0'].map((topic, at) => ({
      topic,
      qos: at % 3,
    }))
    expect(await subscribe(client, filters)).toEqual([0, 1, 2, 0, 1, 2])
  })

  it("with No Local delivers none of the client's own messages, from a session neither", async () => {
    for (const sessionExpiryInterval of [0, 60]) {
      const client = await connectFive(broker.port, 'self', { properties: { sessionExpiryInterval } })
      await subscribe(client, [{ topic: 'a/#', nl: true }, { topic: 'end' }])
      const other = await connectFive(broker.port, 'other')
      client.send(publish('a/own', 'x', { qos: 0 }))
      client.send({ cmd: 'pingreq' })
      expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
      await publishAt(other, publish('a/other', 'y'))
      await publishAt(other, publish('end', ''))
      expect((await until(client, 'end')).map(textOf)).toEqual(['a/other y qos1'])
    }
  })

  it('with Retain As Published delivers RETAIN as it was set, from a session too', async () => {
    for (const sessionExpiryInterval of [0, 60]) {
      const client = await connectFive(broker.port, 'rap', { properties: { sessionExpiryInterval } })
      await subscribe(client, [{ topic: 'r/#', rap: true, rh: 2 }, { topic: 'p/#', rh: 2 }, { topic: 'end' }])
      const other = await connectFive(broker.port, 'other')
      for (const [topic, retain] of [
        ['r/kept', true],
        ['r/live', false],
        ['p/kept', true],
      ] as const) {
        await publishAt(other, publish(topic, 'x', { retain }))
      }
      await publishAt(other, publish('end', ''))
      expect((await until(client, 'end')).map(textOf)).toEqual([
        'r/kept x qos1 retain',
        'r/live x qos1',
        'p/kept x qos1',
      ])
    }
  })

  it('delivers retained messages always, only when it is new, or never (Retain Handling)', async () => {
    const other = await connectFive(broker.port, 'other')
    await publishAt(other, publish('kept', 'x', { retain: true }))
    await publishAt(other, publish('end', 'x', { retain: true }))
    const client = await connectFive(broker.port, 'handling')
    const counts: number[] = []
    for (const rh of [1, 1, 2, 0, 0]) {
      // Retained messages are sent filter by filter.
      await subscribe(client, [{ topic: 'kept', rh }, { topic: 'end' }])
      counts.push((await until(client, 'end')).length)
    }
    expect(counts).toEqual([1, 0, 0, 1, 1])
  })

  it('has an identifier; a message that several match has all identifiers and is sent once', async () => {
    const client = await connectFive(broker.port, 'ids')
    await subscribe(client, [{ topic: 'a/#' }], { subscriptionIdentifier: 5 })
    await subscribe(client, [{ topic: 'a/+', qos: 2 }], { subscriptionIdentifier: 70_000 })
    const other = await connectFive(broker.port, 'other')
    await publishAt(other, publish('a/b', 'x'))
    const got = (await client.next()) as IPublishPacket
    expect(
      [got.properties?.subscriptionIdentifier]
        .flat()
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual([5, 70_000])
    client.send(publish('never', ''))
    client.send({ cmd: 'pingreq' })
    expect(await client.next()).toMatchObject({ cmd: 'pingresp' })
  })
})

describe('flow control', () => {
  it.each([0, 60])(
    'sends no more than Receive Maximum, and all in order (session for %i s)',
    async (seconds) => {
      const properties = { receiveMaximum: 3, sessionExpiryInterval: seconds }
      const client = await connectFive(broker.port, 'narrow', { properties })
      await subscribe(client, [{ topic: 'a', qos: 2 }])
      const other = await connectFive(broker.port, 'other')
      for (let n = 0; n < 20; n++) await publishAt(other, publish('a', `${n}`))
      const texts: string[] = []
      while (texts.length < 20) {
        const got = [(await client.next()) as IPublishPacket]
        client.send({ cmd: 'pingreq' })
        for (let packet = await client.next(); packet.cmd !== 'pingresp'; packet = await client.next()) {
          got.push(packet as IPublishPacket)
        }
        expect(got.length).toBeLessThanOrEqual(3)
        for (const { payload, messageId } of got) {
          texts.push(payload.toString())
          client.send({ cmd: 'puback', messageId } as never)
        }
      }
      expect(texts).toEqual(Array.from({ length: 20 }, (_, n) => `${n}`))
    },
  )

  it('does not send messages larger than Maximum Packet Size, and continues after them', async () => {
    for (const sessionExpiryInterval of [0, 60]) {
      const properties = { maximumPacketSize: 100, sessionExpiryInterval }
      const client = await connectFive(broker.port, 'small', { properties })
      await subscribe(client, [{ topic: '#' }])
      const other = await connectFive(broker.port, 'other')
      await publishAt(other, publishOf(101, 'a'))
      await publishAt(other, publishOf(100, 'b'))
      expect(await client.next()).toMatchObject({ cmd: 'publish', topic: 'b' })
    }
    expect(broker.count('selvedge_mqtt_unsent_total')).toBe(2)
    await expect.poll(() => broker.server.stats().queued).toBe(1)
  })
})

describe('the broker', () => {
  it('accepts a packet of its Maximum Packet Size', async () => {
    const client = await connectFive(broker.port, 'large')
    expect(await publishAt(client, publishOf(limits.mqttPacketBytesMax.value, 'a'))).toBe(noSubscribers)
  })

  it('accepts a CONNECT up to its limit, and closes the connection at a larger one', async () => {
    const connectOf = (last: number): Packet => {
      const site = [...Array<string>(4).fill('x'.repeat(65_000)), 'x'.repeat(last)]
      const properties = { userProperties: { site } }
      return { ...connectPacket('talkative'), protocolVersion: 5, properties } as Packet
    }
    const room = limits.mqttConnectBytesMax.value - bytesOf(connectOf(0))
    expect(bytesOf(connectOf(room))).toBe(limits.mqttConnectBytesMax.value)
    const client = openRaw(broker.port, 5)
    client.send(connectOf(room))
    expect(await client.next()).toMatchObject({ cmd: 'connack', reasonCode: 0 })
    const refused = openRaw(broker.port, 5)
    refused.send(connectOf(room + 1))
    await refused.ended
    await expect(refused.next()).rejects.toThrow('the connection ended')
  })
})

describe('QoS 2', () => {
  it('answers PUBREC and PUBREL for unknown messages with 0x92', async () => {
    const client = await connectFive(broker.port, 'lost')
    client.send({ cmd: 'pubrec', messageId: 5, reasonCode: 0 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubrel', messageId: 5, reasonCode: 0x92 })
    client.send({ cmd: 'pubrel', messageId: 6, reasonCode: 0 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubcomp', messageId: 6, reasonCode: 0x92 })
  })

  it('ends when the subscriber refuses the message, and its slot is free again', async () => {
    for (const sessionExpiryInterval of [0, 60]) {
      const properties = { receiveMaximum: 1, sessionExpiryInterval }
      const client = await connectFive(broker.port, 'refusing', { properties })
      await subscribe(client, [{ topic: 'a', qos: 2 }])
      const other = await connectFive(broker.port, 'other')
      for (const text of ['1', '2']) {
        other.send(publish('a', text, { qos: 2, messageId: 3 }))
        await other.next()
        other.send({ cmd: 'pubrel', messageId: 3, reasonCode: 0 } as never)
        await other.next()
      }
      const first = (await client.next()) as IPublishPacket
      client.send({ cmd: 'pubrec', messageId: first.messageId, reasonCode: 0x83 } as never)
      expect(textOf(await client.next())).toBe('a 2 qos2')
    }
  })
})

describe('a will', () => {
  const will = (delay: number, more: object = {}) => ({
    will: {
      topic: 'claimed/will',
      payload: Buffer.from('gone'),
      qos: 1 as const,
      retain: false,
      properties: { willDelayInterval: delay, userProperties: { why: 'lost' }, ...more },
    },
    properties: { sessionExpiryInterval: 60 },
  })

  it('is published with its properties after its delay', async () => {
    const witness = await connectFive(broker.port, 'witness')
    await subscribe(witness, [{ topic: 'claimed/will' }])
    const mortal = await connectFive(broker.port, 'mortal', will(1, { contentType: 'text/plain' }))
    mortal.end()
    const from = performance.now()
    const got = (await witness.next()) as IPublishPacket
    expect(performance.now() - from).toBeGreaterThan(900)
    expect(got.properties).toEqual({ contentType: 'text/plain', userProperties: { why: 'lost' } })
  })

  it('is discarded when its client reconnects in time, and published at once when it does so with Clean Start', async () => {
    const first = await connectFive(broker.port, 'mortal', will(1))
    first.end()
    await first.ended
    const second = await connectFive(broker.port, 'mortal', { clean: false, ...will(30) })
    second.end()
    await second.ended
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(broker.frames()).toEqual([])
    await connectFive(broker.port, 'mortal')
    await expect.poll(broker.frames).toEqual(['claimed/will gone'])
  })

  it('is published at once when its session ends first, and at DISCONNECT with 0x04', async () => {
    const first = await connectFive(broker.port, 'mortal', { ...will(30), properties: {} })
    first.end()
    await expect.poll(broker.frames).toHaveLength(1)
    const second = await connectFive(broker.port, 'leaver', will(0))
    second.send({ cmd: 'disconnect', reasonCode: 4 } as never)
    await expect.poll(broker.frames).toHaveLength(2)
    const third = await connectFive(broker.port, 'leaver', will(0))
    third.send({ cmd: 'disconnect', reasonCode: 0 } as never)
    await third.ended
    expect(broker.frames()).toHaveLength(2)
  })
})

describe('a connection that violates the protocol gets', () => {
  const aliasMax = limits.topicAliasesMax.value
  const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)
  const broken: [string, number, Packet | Uint8Array][] = [
    ['0x81 for properties that are cut short', 0x81, bytes(0x30, 5, 0, 1, 97, 9, 1)],
    ['0x81 for a property that does not exist', 0x81, bytes(0x30, 6, 0, 1, 97, 2, 0x7f, 0)],
    ['0x81 for a text that is no UTF-8', 0x81, bytes(0x30, 9, 0, 1, 97, 5, 3, 0, 2, 0xc0, 0x80)],
    ['0x82 for a property that comes twice', 0x82, bytes(0x30, 8, 0, 1, 97, 4, 1, 0, 1, 0)],
    ['0x82 for a subscription identifier of a publisher', 0x82, bytes(0x30, 6, 0, 1, 97, 2, 0x0b, 1)],
    [
      '0x82 for a second CONNECT',
      0x82,
      generate({
        ...({
          cmd: 'connect',
          protocolId: 'MQTT',
          protocolVersion: 5,
          clean: true,
          keepalive: 0,
          clientId: 'b',
        } as const),
      }),
    ],
    ['0x82 for AUTH', 0x82, bytes(0xf0, 2, 0x18, 0)],
    ['0x82 for subscription identifier 0', 0x82, bytes(0x82, 9, 0, 1, 2, 0x0b, 0, 0, 1, 97, 0)],
    ['0x81 for reserved options of a subscription', 0x81, bytes(0x82, 7, 0, 1, 0, 0, 1, 97, 0xc0)],
    ['0x8f for a broken filter', 0x8f, subscribePacket([{ topic: 'a/#/b' }])],
    ['0x90 for a topic with a wildcard', 0x90, publish('a/+', 'x')],
    [
      '0x82 for a response topic with a wildcard',
      0x82,
      publish('a', 'x', { properties: { responseTopic: 'a/#' } }),
    ],
    [
      '0x94 for an alias beyond the maximum',
      0x94,
      publish('a', 'x', { properties: { topicAlias: aliasMax + 1 } }),
    ],
    ['0x82 for no topic and no alias', 0x82, bytes(0x30, 3, 0, 0, 0)],
    [
      '0x95 for a packet that is one byte too large',
      0x95,
      publishOf(limits.mqttPacketBytesMax.value + 1, 'a'),
    ],
    [
      '0x97 for too many properties',
      0x97,
      publish('a', 'x', {
        properties: { correlationData: Buffer.alloc(limits.messagePropertiesBytesMax.value) },
      }),
    ],
  ]
  it.each(broken)('%s', async (_title, reasonCode, packet) => {
    const client = await connectFive(broker.port, 'breaker')
    client.send(packet)
    expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode })
    await client.ended
  })

  it('0x93 for more messages in flight than Receive Maximum', async () => {
    const client = await connectFive(broker.port, 'breaker')
    const burst = Array.from({ length: limits.mqttReceiveMax.value + 1 }, (_, n) =>
      generate(publish('claimed/two', 'x', { qos: 2, messageId: n + 1 }), { protocolVersion: 5 }),
    )
    client.send(Buffer.concat(burst))
    let last = await client.next()
    while (last.cmd === 'pubrec') last = await client.next()
    expect(last).toMatchObject({ cmd: 'disconnect', reasonCode: 0x93 })
    await client.ended
  })

  it('0x8d for silence beyond its keep-alive', async () => {
    const client = await connectFive(broker.port, 'silent', { keepalive: 1 })
    expect(await client.next()).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8d })
  })
})
