/**
 * MQTT 3.1.1, sections 3.3 to 3.7, 4.3 and 4.6: PUBLISH, its acknowledgements and their order, with raw
 * bytes.
 */
import { generate, type Packet } from 'mqtt-packet'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GatewayError } from '#base/register/errors.ts'
import { temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  connectRaw,
  openBroker,
  publishPacket,
  type RawClient,
  subscribePacket,
  textOf,
} from '#test/kit/mqtt.ts'

const file = temporaryDatabase()
let broker: Broker

beforeAll(async () => {
  broker = await openBroker(file.file, {
    onDecide({ topic }) {
      if (topic === 'claimed/poison') throw new GatewayError('gateway.internal', 'nobody can store this')
    },
  })
})

afterAll(async () => {
  await broker.close()
  file.remove()
})

async function subscriber(...filters: [string, 0 | 1 | 2][]): Promise<RawClient> {
  const client = await connectRaw(broker.port, '')
  client.send(subscribePacket(1, ...filters))
  expect(await client.next()).toMatchObject({ cmd: 'suback' })
  return client
}

const committed = (prefix: string): string[] => broker.frames().filter((frame) => frame.startsWith(prefix))

describe('PUBLISH', () => {
  it('[MQTT-4.3.2-2] with QoS 1 is acknowledged when it is on disk, with its packet identifier', async () => {
    const client = await connectRaw(broker.port, 'one')
    client.send(publishPacket('claimed/one', 'a', { qos: 1, messageId: 4711 }))
    expect(await client.next()).toMatchObject({ cmd: 'puback', messageId: 4711 })
    expect(committed('claimed/one')).toEqual(['claimed/one a'])
    client.end()
  })

  it('with QoS 0 is stored too, even if the sender disconnects at once', async () => {
    const client = await connectRaw(broker.port, 'zero')
    client.send(Buffer.concat([generate(publishPacket('claimed/zero', 'b')), Uint8Array.of(0xe0, 0)]))
    await expect.poll(() => committed('claimed/zero')).toEqual(['claimed/zero b'])
  })

  it('[MQTT-4.3.1-1] [MQTT-4.3.2-1] [MQTT-4.3.3-1] reaches each subscriber with the lower of both QoS', async () => {
    const receivers = [
      await subscriber(['qos/#', 0]),
      await subscriber(['qos/+', 1]),
      await subscriber(['qos/x', 2]),
    ]
    const client = await connectRaw(broker.port, 'sender')
    for (const qos of [0, 1, 2] as const)
      client.send(publishPacket('qos/x', `${qos}`, { qos, messageId: qos + 1 }))
    const got = await Promise.all(
      receivers.map(async (receiver) => [
        await receiver.next(),
        await receiver.next(),
        await receiver.next(),
      ]),
    )
    expect(got.map((packets) => packets.map(textOf))).toEqual([
      ['qos/x 0 qos0', 'qos/x 1 qos0', 'qos/x 2 qos0'],
      ['qos/x 0 qos0', 'qos/x 1 qos1', 'qos/x 2 qos1'],
      ['qos/x 0 qos0', 'qos/x 1 qos1', 'qos/x 2 qos2'],
    ])
    for (const one of [client, ...receivers]) one.end()
  })

  it('[MQTT-3.3.5-1] reaches a client once if its filters overlap, with the highest QoS of them', async () => {
    const receiver = await subscriber(['over/#', 0], ['over/+', 1], ['over/lap', 0])
    const client = await connectRaw(broker.port, 'overlap')
    client.send(publishPacket('over/lap', 'x', { qos: 2, messageId: 1 }))
    client.send(publishPacket('over/lap', 'y', { qos: 2, messageId: 2 }))
    expect((await receiver.all(200)).map(textOf)).toEqual(['over/lap x qos1', 'over/lap y qos1'])
    for (const one of [client, receiver]) one.end()
  })

  it('[MQTT-3.3.1-3] [MQTT-3.3.1-9] is forwarded with DUP and RETAIN at zero', async () => {
    const receiver = await subscriber(['flags', 1])
    const client = await connectRaw(broker.port, 'flags')
    client.send(publishPacket('flags', 'x', { qos: 1, messageId: 1, dup: true, retain: true }))
    expect(textOf(await receiver.next())).toBe('flags x qos1')
    for (const one of [client, receiver]) one.end()
  })

  it('[MQTT-3.3.1-1] is recognized as re-sent by DUP', async () => {
    const client = await connectRaw(broker.port, 'again')
    client.send(publishPacket('claimed/again', 'x', { qos: 1, messageId: 1 }))
    client.send(publishPacket('claimed/again', 'x', { qos: 1, messageId: 1, dup: true }))
    for (const _ of [1, 2]) expect((await client.next()).cmd).toBe('puback')
    expect(committed('claimed/again')).toEqual(['claimed/again x', 'claimed/again x resent'])
    client.end()
  })

  it('[MQTT-4.6.0-2] is acknowledged in the order of arrival, whatever each message needs', async () => {
    const client = await connectRaw(broker.port, 'order')
    const topics = ['claimed/order', 'idle', 'claimed/poison', 'kept/order', 'idle', 'claimed/order']
    const packets = Array.from({ length: 120 }, (_, n) =>
      generate(
        publishPacket(topics[n % topics.length]!, `${n}`, { qos: 1, messageId: n + 1, retain: n % 6 === 3 }),
      ),
    )
    client.send(Buffer.concat(packets))
    const ids: (number | undefined)[] = []
    while (ids.length < packets.length) ids.push((await client.next()).messageId)
    expect(ids).toEqual(packets.map((_, n) => n + 1))
    client.end()
  })

  it('[MQTT-4.6.0-6] reaches subscribers in the order of arrival', async () => {
    const receiver = await subscriber(['seq', 1])
    const client = await connectRaw(broker.port, 'sequence')
    // Every other message is retained and needs a commit; the ones between need none.
    const packets = Array.from({ length: 60 }, (_, n) =>
      generate(publishPacket('seq', `${n}`, { qos: 1, messageId: n + 1, retain: n % 2 === 0 })),
    )
    client.send(Buffer.concat(packets))
    const got: Packet[] = []
    while (got.length < packets.length) got.push(await receiver.next())
    expect(got.map((packet) => textOf(packet).split(' ')[1])).toEqual(packets.map((_, n) => `${n}`))
    for (const one of [client, receiver]) one.end()
  })

  it('without receivers costs no commit', async () => {
    const client = await connectRaw(broker.port, 'idle')
    const before = broker.door.status()
    client.send(publishPacket('nobody/cares', 'x', { qos: 1, messageId: 1 }))
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
    expect(broker.door.status()).toEqual(before)
    client.end()
  })

  it('that can never be stored is acknowledged, counted and logged; its other parts are stored', async () => {
    const refused = broker.count('selvedge_mqtt_refused_total')
    const client = await connectRaw(broker.port, 'poison')
    client.send(
      Buffer.concat(
        ['claimed/beside', 'claimed/poison', 'claimed/beside'].map((topic, n) =>
          generate(publishPacket(topic, `${n}`, { qos: 1, messageId: n + 1 })),
        ),
      ),
    )
    expect(
      [await client.next(), await client.next(), await client.next()].map(({ messageId }) => messageId),
    ).toEqual([1, 2, 3])
    expect(committed('claimed/beside')).toEqual(['claimed/beside 0', 'claimed/beside 2'])
    expect(broker.count('selvedge_mqtt_refused_total') - refused).toBe(1)
    expect(broker.lines).toContainEqual(
      expect.objectContaining({ event: 'mqtt.frame-refused', topic: 'claimed/poison' }),
    )
    client.end()
  })

  it('may be as large as the limit and no larger', async () => {
    const client = await connectRaw(broker.port, 'large')
    const payload = Buffer.alloc(1024 * 1024 - 100, 'x')
    client.send(publishPacket('claimed/large', payload, { qos: 1, messageId: 1 }))
    expect(await client.next()).toMatchObject({ cmd: 'puback' })
    expect(committed('claimed/large')).toEqual([`claimed/large ${payload}`])
    // The first bytes state the size, so the rest of the packet is not needed.
    client.send(Uint8Array.of(0x32, 0x80, 0x80, 0x80, 0x01))
    await client.ended
  })
})

describe('QoS 2', () => {
  it('[MQTT-4.3.3-2] is PUBREC, PUBREL, PUBCOMP, and the message is forwarded once', async () => {
    const receiver = await subscriber(['claimed/exact', 2])
    const client = await connectRaw(broker.port, 'exact')
    client.send(publishPacket('claimed/exact', 'x', { qos: 2, messageId: 9 }))
    expect(await client.next()).toMatchObject({ cmd: 'pubrec', messageId: 9 })
    expect(committed('claimed/exact')).toEqual(['claimed/exact x'])
    client.send(publishPacket('claimed/exact', 'x', { qos: 2, messageId: 9, dup: true }))
    expect(await client.next()).toMatchObject({ cmd: 'pubrec', messageId: 9 })
    client.send({ cmd: 'pubrel', messageId: 9 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubcomp', messageId: 9 })
    client.send(publishPacket('claimed/exact', 'y', { qos: 2, messageId: 9 }))
    expect(await client.next()).toMatchObject({ cmd: 'pubrec', messageId: 9 })
    expect(committed('claimed/exact')).toEqual(['claimed/exact x', 'claimed/exact y'])
    expect((await receiver.all(50)).map(textOf)).toEqual(['claimed/exact x qos2', 'claimed/exact y qos2'])
    for (const one of [client, receiver]) one.end()
  })

  it('answers PUBREL for an unknown packet identifier', async () => {
    const client = await connectRaw(broker.port, 'unknown')
    client.send({ cmd: 'pubrel', messageId: 77 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubcomp', messageId: 77 })
    client.end()
  })

  it('stores a message once that arrives twice before it is on disk, over two connections', async () => {
    const packet = publishPacket('claimed/hurry', 'x', { qos: 2, messageId: 5 })
    const first = await connectRaw(broker.port, 'hurry', { clean: false })
    first.send(packet)
    first.send(packet)
    const second = await connectRaw(broker.port, 'hurry', { clean: false })
    second.send({ ...packet, dup: true } as Packet)
    expect(await second.next()).toMatchObject({ cmd: 'pubrec', messageId: 5 })
    expect(committed('claimed/hurry')).toEqual(['claimed/hurry x'])
    second.end()
  })

  it('closes a client with too many unfinished messages', async () => {
    const client = await connectRaw(broker.port, 'halves')
    for (let n = 1; n <= 1001; n++) client.send(publishPacket('half', 'x', { qos: 2, messageId: n }))
    await client.ended
    expect((await client.all(0)).filter(({ cmd }) => cmd === 'pubrec').length).toBeLessThanOrEqual(1000)
  })

  it('[MQTT-4.3.3-1] towards a subscriber is PUBREC, PUBREL, PUBCOMP', async () => {
    const receiver = await subscriber(['out', 2])
    const client = await connectRaw(broker.port, 'out')
    client.send(publishPacket('out', 'x', { qos: 2, messageId: 1 }))
    const { messageId } = await receiver.next()
    receiver.send({ cmd: 'pubrec', messageId } as never)
    expect(await receiver.next()).toMatchObject({ cmd: 'pubrel', messageId })
    receiver.send({ cmd: 'pubcomp', messageId } as never)
    for (const one of [client, receiver]) one.end()
  })
})
