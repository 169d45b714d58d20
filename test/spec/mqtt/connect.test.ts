/**
 * MQTT 3.1.1, section 3.1 CONNECT, 3.2 CONNACK, 3.12 PINGREQ and 3.14 DISCONNECT, against the real broker
 * with raw bytes.
 */
import { generate } from 'mqtt-packet'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { calmTime } from '#test/kit/calm-time.ts'
import { temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  connectPacket,
  connectRaw,
  openBroker,
  openRaw,
  publishPacket,
  subscribePacket,
} from '#test/kit/mqtt.ts'

const file = temporaryDatabase()
let broker: Broker

beforeAll(async () => {
  broker = await openBroker(file.file, {
    authenticate: async ({ username, password }) =>
      username === undefined ||
      (username === 'sensor' && Buffer.from(password ?? []).toString() === 'secret'),
  })
})

afterAll(async () => {
  await broker.close()
  file.remove()
})

/** The broker's output for bytes of an unidentified client, until it closes the connection. */
async function answerTo(...bytes: Uint8Array[]): Promise<string[]> {
  const client = openRaw(broker.port)
  for (const piece of bytes) client.send(piece)
  await client.ended
  return (await client.all(0)).map((packet) =>
    'returnCode' in packet ? `connack ${packet.returnCode}` : packet.cmd,
  )
}

const connect = (...args: Parameters<typeof connectPacket>) => generate(connectPacket(...args))

describe('CONNECT', () => {
  it('[MQTT-3.1.0-1] must be the first packet', async () => {
    expect(await answerTo(generate({ cmd: 'pingreq' }))).toEqual([])
    expect(await answerTo(generate(publishPacket('claimed/early', 'x')))).toEqual([])
    expect(broker.frames()).not.toContain('claimed/early x')
  })

  it('[MQTT-3.1.0-2] must not be repeated', async () => {
    expect(await answerTo(connect('twice'), connect('twice'))).toEqual(['connack 0'])
  })

  it('[MQTT-3.1.2-1] must name its protocol', async () => {
    const bytes = connect('name')
    bytes.write('MQTX', 4)
    expect(await answerTo(bytes)).toEqual([])
  })

  it('of MQTT 3.1 is accepted', async () => {
    const client = openRaw(broker.port)
    client.send({ ...connectPacket('old'), protocolId: 'MQIsdp', protocolVersion: 3 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'connack', returnCode: 0 })
    client.end()
  })

  it('[MQTT-3.1.2-3] must have its reserved flag at zero', async () => {
    const bytes = connect('flag')
    bytes[9]! |= 1
    expect(await answerTo(bytes)).toEqual([])
  })

  it('may arrive in several pieces', async () => {
    const client = openRaw(broker.port)
    client.socket.setNoDelay(true)
    for (const byte of connect('pieces')) {
      client.send(Uint8Array.of(byte))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(await client.next()).toMatchObject({ cmd: 'connack', returnCode: 0 })
    client.end()
  })

  it('may be followed by packets before CONNACK, which are kept in order', async () => {
    const client = openRaw(broker.port)
    const publishes = [1, 2, 3].map((n) =>
      generate(publishPacket('claimed/eager', `${n}`, { qos: 1, messageId: n })),
    )
    client.send(Buffer.concat([connect('eager'), ...publishes]))
    const answers = [await client.next(), await client.next(), await client.next(), await client.next()]
    expect(answers.map(({ cmd, messageId }) => [cmd, messageId])).toEqual([
      ['connack', undefined],
      ['puback', 1],
      ['puback', 2],
      ['puback', 3],
    ])
    expect(broker.frames().filter((frame) => frame.startsWith('claimed/eager'))).toEqual([
      'claimed/eager 1',
      'claimed/eager 2',
      'claimed/eager 3',
    ])
    client.end()
  })

  it('[MQTT-3.1.3-6] may leave the client identifier empty with CleanSession 1', async () => {
    const { connack, end } = await connectRaw(broker.port, '')
    expect(connack).toMatchObject({ returnCode: 0, sessionPresent: false })
    end()
  })

  it('[MQTT-3.1.3-8] is refused with return code 2 when it leaves it empty with CleanSession 0', async () => {
    const bytes = connect('')
    bytes[9]! &= ~2
    expect(await answerTo(bytes)).toEqual(['connack 2'])
  })

  it('is refused with return code 2 when the identifier is too long or has invalid characters', async () => {
    expect(await answerTo(connect('x'.repeat(257)))).toEqual(['connack 2'])
    expect(await answerTo(connect('a\u0000b'))).toEqual(['connack 2'])
  })

  it('is refused with return code 4 for a wrong password [MQTT-3.2.2-5]', async () => {
    const wrong = { username: 'sensor', password: Buffer.from('guess') }
    expect(await answerTo(connect('intruder', wrong))).toEqual(['connack 4'])
    const right = { username: 'sensor', password: Buffer.from('secret') }
    const client = await connectRaw(broker.port, 'friend', right)
    expect(client.connack.returnCode).toBe(0)
    client.end()
  })

  it('closes the connection when its will cannot be published', async () => {
    const will = { topic: 'a/#', payload: Buffer.from('x'), qos: 0 as const, retain: false }
    expect(await answerTo(connect('will', { will }))).toEqual([])
  })

  it('[MQTT-3.1.4-2] with the identifier of a connected client closes the older connection', async () => {
    const first = await connectRaw(broker.port, 'doppel')
    const second = await connectRaw(broker.port, 'doppel')
    await first.ended
    second.send({ cmd: 'pingreq' })
    expect(await second.next()).toMatchObject({ cmd: 'pingresp' })
    second.end()
  })

  it('can take over its own connection a hundred times', async () => {
    const clients = await Promise.all(
      Array.from({ length: 100 }, async (_, n) => {
        const client = openRaw(broker.port)
        client.send(connectPacket('storm', { clean: n % 2 === 0 }))
        await Promise.race([client.next(10_000).catch(() => undefined), client.ended])
        return client
      }),
    )
    const last = await connectRaw(broker.port, 'storm')
    for (const client of clients) await client.ended
    last.send(publishPacket('claimed/storm', 'calm', { qos: 1, messageId: 1 }))
    expect(await last.next()).toMatchObject({ cmd: 'puback' })
    last.end()
  })
})

describe('keep-alive', () => {
  it('[MQTT-3.1.2-24] closes a client that is silent for one and a half times its keep-alive', async () => {
    const client = await connectRaw(broker.port, 'silent', { keepalive: 1 })
    const from = performance.now()
    const passed = calmTime()
    await client.ended
    expect(performance.now() - from).toBeGreaterThan(1400)
    expect(passed()).toBeLessThan(4000)
  })

  it.each([
    ['QoS 1 messages only', publishPacket('a', 'b', { qos: 1, messageId: 1 })],
    ['pings', { cmd: 'pingreq' } as const],
  ])('keeps a client that sends %s', async (_title, packet) => {
    const client = await connectRaw(broker.port, 'lively', { keepalive: 1 })
    for (let n = 0; n < 5; n++) {
      client.send(packet)
      await client.next()
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    client.end()
  })
})

describe('DISCONNECT', () => {
  it('[MQTT-3.14.4-1] ends the connection and nothing after it is read', async () => {
    const client = await connectRaw(broker.port, 'leaver')
    client.send(
      Buffer.concat([
        generate(publishPacket('claimed/last', 'words')),
        generate({ cmd: 'disconnect' } as never),
        generate(publishPacket('claimed/after', 'all')),
      ]),
    )
    await client.ended
    await expect.poll(broker.frames).toContain('claimed/last words')
    expect(broker.frames()).not.toContain('claimed/after all')
  })
})

describe('a connection that breaks the protocol', () => {
  const broken: [string, Uint8Array][] = [
    ['[MQTT-2.2.2-2] has reserved flags set', Uint8Array.of(0x83, 5, 0, 1, 0, 0, 0)],
    ['[MQTT-3.3.1-4] publishes with QoS 3', Uint8Array.of(0x36, 5, 0, 1, 97, 0, 1)],
    ['[MQTT-3.3.1-2] publishes with DUP and QoS 0', Uint8Array.of(0x38, 3, 0, 1, 97)],
    ['[MQTT-2.3.1-1] publishes with packet identifier 0', Uint8Array.of(0x32, 5, 0, 1, 97, 0, 0)],
    ['publishes with a topic longer than the packet', Uint8Array.of(0x30, 3, 0, 9, 97)],
    ['states a length of five bytes', Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0xff, 1)],
    ['[MQTT-1.5.3-1] publishes to ill-formed UTF-8', Uint8Array.of(0x30, 5, 0, 2, 0xc0, 0x80, 1)],
    ['[MQTT-1.5.3-1] publishes to a surrogate', Uint8Array.of(0x30, 6, 0, 3, 0xed, 0xa0, 0x80, 1)],
    ['[MQTT-1.5.3-2] publishes to U+0000', Uint8Array.of(0x30, 4, 0, 1, 0, 1)],
    ['[MQTT-3.3.2-2] publishes to a wildcard', generate(publishPacket('a/+/b', 'x'))],
    ['[MQTT-4.7.3-1] publishes to an empty topic', Uint8Array.of(0x30, 3, 0, 0, 1)],
    ['publishes to a topic of the server', generate(publishPacket('$SYS/x', 'x', { qos: 1, messageId: 1 }))],
    ['publishes to 1,000 levels', generate(publishPacket('a/'.repeat(1000), 'x', { qos: 2, messageId: 1 }))],
    ['[MQTT-3.8.3-3] subscribes to nothing', Uint8Array.of(0x82, 2, 0, 1)],
    ['subscribes to 1,000 levels', generate(subscribePacket(1, ['+/'.repeat(500), 0]))],
    ['[MQTT-4.7.1-2] subscribes to a#', generate(subscribePacket(1, ['a#', 0]))],
    ['[MQTT-4.7.1-3] subscribes to +a', generate(subscribePacket(1, ['+a/b', 0]))],
    ['sends a packet that only servers send', Uint8Array.of(0xd0, 0)],
  ]
  it.each(broken)('is closed when it %s', async (_title, bytes) => {
    const client = await connectRaw(broker.port, 'breaker')
    client.send(bytes)
    await client.ended
    expect(await client.all(0)).toEqual([])
  })

  it('is logged with the reason, at most once a second', () => {
    const said = broker.lines.filter(({ event }) => event === 'mqtt.client-error')
    expect(said.length).toBeGreaterThan(0)
    expect(broker.count('selvedge_mqtt_client_errors_total')).toBeGreaterThan(said.length)
  })
})
