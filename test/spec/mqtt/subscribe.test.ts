/**
 * MQTT 3.1.1, sections 3.8 to 3.11 and 4.7: SUBSCRIBE, UNSUBSCRIBE, filters; and retained messages, 3.3.1.3.
 */
import { generate, type Packet } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { productToken } from '#base/register/version.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  type BrokerOptions,
  connectRaw,
  openBroker,
  publishPacket,
  type RawClient,
  subscribePacket,
  textOf,
} from '#test/kit/mqtt.ts'

let file: TemporaryDatabase
let broker: Broker
let publisher: RawClient

async function start(options: BrokerOptions = {}): Promise<void> {
  broker = await openBroker(file.file, options)
  publisher = await connectRaw(broker.port, 'publisher')
}

async function restart(options: BrokerOptions = {}): Promise<void> {
  await broker.close()
  await start(options)
}

beforeEach(async () => {
  file = temporaryDatabase()
  await start()
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

async function publish(topic: string, payload: string, options: Parameters<typeof publishPacket>[2] = {}) {
  publisher.send(publishPacket(topic, payload, { qos: 1, messageId: 1, ...options }))
  expect(await publisher.next()).toMatchObject({ cmd: 'puback' })
}

async function subscribe(client: RawClient, ...filters: [string, 0 | 1 | 2][]): Promise<Packet> {
  client.send(subscribePacket(11, ...filters))
  return client.next()
}

describe('SUBSCRIBE', () => {
  it('[MQTT-3.8.4-5] [MQTT-3.9.3-1] is answered with one return code per filter, in order', async () => {
    const client = await connectRaw(broker.port, 'codes')
    expect(await subscribe(client, ['a', 2], ['b/+', 0], ['c/#', 1])).toMatchObject({
      cmd: 'suback',
      messageId: 11,
      granted: [2, 0, 1],
    })
  })

  it('[MQTT-3.8.4-3] to the same filter replaces the QoS and sends retained messages again', async () => {
    await publish('kept', 'x', { retain: true })
    const client = await connectRaw(broker.port, 'again')
    for (const qos of [0, 1] as const) {
      await subscribe(client, ['kept', qos])
      expect(textOf(await client.next())).toBe(`kept x qos${qos} retain`)
    }
    await publish('kept', 'y')
    expect((await client.all(50)).map(textOf)).toEqual(['kept y qos1'])
  })

  it('for a shared subscription is refused, because the client would wait forever', async () => {
    const client = await connectRaw(broker.port, 'sharing')
    expect(await subscribe(client, ['$share/group/a', 1], ['b', 1])).toMatchObject({ granted: [128, 1] })
    await publish('a', 'x')
    await publish('$share/group/a', 'y')
    await publish('b', 'z')
    expect((await client.all(50)).map(textOf)).toEqual(['b z qos1'])
  })

  it('beyond the limit of filters is refused filter by filter', async () => {
    const client = await connectRaw(broker.port, 'many')
    const filters = Array.from({ length: 502 }, (_, n): [string, 0] => [`many/${n}`, 0])
    const suback = (await subscribe(client, ...filters)) as unknown as { granted: number[] }
    expect(suback.granted.filter((code) => code === 128)).toHaveLength(2)
    await publish('many/499', 'in')
    await publish('many/501', 'out')
    expect((await client.all(50)).map(textOf)).toEqual(['many/499 in qos0'])
  })

  it('beyond the limit of filters is refused for a session too, and loses no existing filter', async () => {
    const client = await connectRaw(broker.port, 'many', { clean: false })
    const filters = Array.from({ length: 501 }, (_, n): [string, 1] => [`many/${n}`, 1])
    const suback = (await subscribe(client, ...filters)) as unknown as { granted: number[] }
    expect(suback.granted.filter((code) => code === 128)).toHaveLength(1)
    expect(broker.database.prepare('SELECT count(*) AS n FROM session_filter').get()).toEqual({ n: 500 })
  })
})

describe('UNSUBSCRIBE', () => {
  it('[MQTT-3.10.4-2] [MQTT-3.10.4-4] ends delivery, for a session on disk as well', async () => {
    const client = await connectRaw(broker.port, 'leaving', { clean: false })
    await subscribe(client, ['go', 1], ['stay', 1])
    client.send({ cmd: 'unsubscribe', messageId: 12, unsubscriptions: ['go', 'never'] } as never)
    expect(await client.next()).toMatchObject({ cmd: 'unsuback', messageId: 12 })
    client.end()
    await restart()
    await publish('go', 'x')
    await publish('stay', 'y')
    const back = await connectRaw(broker.port, 'leaving', { clean: false })
    expect((await back.all(100)).map(textOf)).toEqual(['stay y qos1'])
  })

  it('[MQTT-3.10.4-5] is answered even if nothing is unsubscribed', async () => {
    const client = await connectRaw(broker.port, 'nothing')
    client.send({ cmd: 'unsubscribe', messageId: 3, unsubscriptions: ['never'] } as never)
    expect(await client.next()).toMatchObject({ cmd: 'unsuback', messageId: 3 })
  })
})

describe('retained messages', () => {
  it('include the version of the server, which # does not match', async () => {
    const client = await connectRaw(broker.port, 'curious')
    await subscribe(client, ['#', 1])
    await subscribe(client, ['$SYS/broker/version', 1])
    expect((await client.all(50)).map(textOf)).toEqual([`$SYS/broker/version ${productToken} qos0 retain`])
    expect(broker.server.stats().retained).toBe(0)
  })

  it('[MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT-3.3.1-8] are the last of each topic, sent with RETAIN and the lower QoS', async () => {
    await publish('r/1', 'old', { retain: true })
    await publish('r/1', 'new', { retain: true })
    publisher.send(publishPacket('r/2', 'zero', { retain: true }))
    await publish('r/3', 'not retained')
    const client = await connectRaw(broker.port, 'r')
    await subscribe(client, ['r/#', 2])
    expect((await client.all(50)).map(textOf).sort()).toEqual(['r/1 new qos1 retain', 'r/2 zero qos0 retain'])
    await subscribe(client, ['r/1', 0])
    expect(textOf(await client.next())).toBe('r/1 new qos0 retain')
  })

  it('[MQTT-3.3.1-10] [MQTT-3.3.1-11] with an empty payload remove the retained one and are forwarded', async () => {
    const live = await connectRaw(broker.port, 'live')
    await subscribe(live, ['e', 1])
    await publish('e', 'x', { retain: true })
    await publish('e', '', { retain: true })
    expect((await live.all(30)).map(textOf)).toEqual(['e x qos1', 'e  qos1'])
    const client = await connectRaw(broker.port, 'e')
    await subscribe(client, ['e', 1])
    expect(await client.all(50)).toEqual([])
    expect(broker.server.stats().retained).toBe(0)
  })

  it('survive a restart; removed ones stay removed', async () => {
    await publish('s/1', 'x', { retain: true, qos: 1 })
    await publish('s/2', 'y', { retain: true })
    await publish('s/2', '', { retain: true })
    await restart()
    const client = await connectRaw(broker.port, 's')
    await subscribe(client, ['#', 2])
    expect((await client.all(50)).map(textOf)).toEqual(['s/1 x qos1 retain'])
  })

  it('are removed also if the one to remove is not stored yet', async () => {
    const packets = ['x', ''].map((payload, n) =>
      publishPacket('f', payload, { qos: 1, messageId: n + 1, retain: true }),
    )
    publisher.socket.write(Buffer.concat(packets.map((packet) => generate(packet))))
    for (const messageId of [1, 2]) expect(await publisher.next()).toMatchObject({ cmd: 'puback', messageId })
    expect(broker.server.stats().retained).toBe(0)
  })

  it('beyond the limits are not retained, logged once, and no stale one remains', async () => {
    await restart({ retainedMessagesMax: 3, retainedBytesMax: 100 })
    for (const n of [1, 2, 3, 4, 5]) await publish(`c/${n}`, 'x', { retain: true })
    await publish('c/1', 'x'.repeat(200), { retain: true })
    const client = await connectRaw(broker.port, 'c')
    await subscribe(client, ['c/#', 1])
    expect((await client.all(50)).map(textOf).sort()).toEqual(['c/2 x qos1 retain', 'c/3 x qos1 retain'])
    expect(broker.lines.filter(({ event }) => event === 'mqtt.retained-refused')).toHaveLength(1)
    await publish('c/4', 'room', { retain: true })
    expect(broker.server.stats().retained).toBe(3)
  })

  it('are sent to a slow subscriber as it reads them', async () => {
    const payload = 'x'.repeat(100_000)
    for (let n = 0; n < 40; n++) await publish(`slow/${n}`, payload, { retain: true })
    const client = await connectRaw(broker.port, 'slow')
    client.socket.pause()
    client.send(generate(subscribePacket(1, ['slow/#', 1])))
    await new Promise((resolve) => setTimeout(resolve, 200))
    client.socket.resume()
    expect(await client.next()).toMatchObject({ cmd: 'suback' })
    for (let n = 0; n < 40; n++) expect(await client.next()).toMatchObject({ cmd: 'publish', retain: true })
  })
})
