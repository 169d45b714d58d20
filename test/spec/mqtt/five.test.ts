/**
 * MQTT 5, connections and messages: properties, reason codes, expiry and flow control, against the real
 * broker with raw bytes.
 */
import type { IConnackPacket, IPublishPacket, Packet } from 'mqtt-packet'
import { generate } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import {
  type Broker,
  type BrokerOptions,
  connectFive,
  connectPacket,
  connectRaw,
  openBroker,
  openRaw,
  publishPacket,
  type RawClient,
} from '#test/kit/mqtt.ts'

let file: TemporaryDatabase
let broker: Broker

const options: BrokerOptions = {
  authenticate: ({ username }) => username !== 'intruder',
}

beforeEach(async () => {
  file = temporaryDatabase()
  broker = await openBroker(file.file, options)
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

const publish = (topic: string, payload: string, more: Partial<IPublishPacket> = {}): Packet =>
  ({ ...publishPacket(topic, payload), ...more }) as Packet

/** Subscribes and awaits SUBACK; each filter with its options. */
async function subscribe(
  client: RawClient,
  filters: readonly Record<string, unknown>[],
  properties: object = {},
): Promise<number[]> {
  const subscriptions = filters.map((one) => ({ qos: 1, nl: false, rap: false, rh: 0, ...one }))
  client.send({ cmd: 'subscribe', messageId: 9, subscriptions, properties } as never)
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

/** Reason code of the DISCONNECT that answers the bytes, after which the connection is closed. */
async function goodbye(client: RawClient, ...sent: (Packet | Uint8Array)[]): Promise<number | undefined> {
  for (const packet of sent) client.send(packet)
  const last = (await client.next()) as unknown as { cmd: string; reasonCode?: number }
  expect(last.cmd).toBe('disconnect')
  await client.ended
  return last.reasonCode
}

describe('CONNACK', () => {
  it('states the limits of the broker and the features it lacks', async () => {
    const { connack } = await connectFive(broker.port, 'one')
    expect(connack).toMatchObject({ reasonCode: 0, sessionPresent: false })
    expect(connack.properties).toEqual({
      receiveMaximum: limits.mqttReceiveMax.value,
      maximumPacketSize: limits.mqttPacketBytesMax.value,
      topicAliasMaximum: limits.topicAliasesMax.value,
      sharedSubscriptionAvailable: false,
    })
  })

  it('states the identifier assigned to a client without one', async () => {
    const first = await connectFive(broker.port, '')
    const second = await connectFive(broker.port, '')
    const names = [first, second].map(({ connack }) => connack.properties?.assignedClientIdentifier)
    expect(names).toEqual([expect.stringMatching(/^selvedge-/), expect.stringMatching(/^selvedge-/)])
    expect(names[0]).not.toBe(names[1])
  })

  it('states the session expiry interval if it is shorter than the client requested', async () => {
    const properties = { sessionExpiryInterval: 0xffffffff }
    const { connack } = await connectFive(broker.port, 'long', { properties })
    expect(connack.properties?.sessionExpiryInterval).toBe(limits.sessionAgeMs.value / 1000)
  })

  it.each([
    ['a wrong password', 0x86, { username: 'intruder', password: Buffer.from('x') }],
    ['an authentication method', 0x8c, { properties: { authenticationMethod: 'SCRAM' } }],
    ['an identifier that is too long', 0x85, { clientId: 'x'.repeat(300) }],
    ['a Receive Maximum of 0', 0x82, { properties: { receiveMaximum: 0 } }],
    ['a will that cannot be published', 0x90, { will: { topic: 'a/#', payload: Buffer.from('x') } }],
  ])('refuses %s with its reason code', async (_title, reasonCode, more) => {
    const client = openRaw(broker.port, 5)
    client.send({ ...connectPacket('refused'), protocolVersion: 5, ...more } as never)
    expect((await client.next()) as IConnackPacket).toMatchObject({ cmd: 'connack', reasonCode })
    await client.ended
  })

  it('refuses a session beyond the limit, but accepts a client without one', async () => {
    await broker.close()
    broker = await openBroker(file.file, { sessionsMax: 1 })
    const properties = { sessionExpiryInterval: 60 }
    await connectFive(broker.port, 'kept', { properties })
    const second = await connectFive(broker.port, 'more', { properties })
    expect(second.connack.reasonCode).toBe(0x97)
    const third = await connectFive(broker.port, 'more')
    expect(third.connack.reasonCode).toBe(0)
  })
})

describe('a message', () => {
  const properties = {
    payloadFormatIndicator: true,
    contentType: 'application/json',
    responseTopic: 'answers/here',
    correlationData: Buffer.from([0, 1, 255]),
    userProperties: { site: ['north', 'south'], '10': 'ten' },
  }

  it('keeps its properties for current subscribers, and has none for MQTT 3.1.1', async () => {
    const five = await connectFive(broker.port, 'five')
    const four = await connectRaw(broker.port, 'four')
    await subscribe(five, [{ topic: 'p/#' }])
    four.send(generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'p/#', qos: 1 }] }))
    await four.next()
    const publisher = await connectFive(broker.port, 'publisher')
    expect(await publishAt(publisher, publish('p/x', 'hello', { properties }))).toBe(0)
    expect(((await five.next()) as IPublishPacket).properties).toEqual(properties)
    expect(await four.next()).toMatchObject({ topic: 'p/x', payload: Buffer.from('hello') })
  })

  it('keeps them in a session queue and when retained, across a restart', async () => {
    const away = await connectFive(broker.port, 'away', { properties: { sessionExpiryInterval: 600 } })
    await subscribe(away, [{ topic: 'p/#' }], { subscriptionIdentifier: 300 })
    away.end()
    await away.ended
    const publisher = await connectFive(broker.port, 'publisher')
    await publishAt(publisher, publish('p/x', 'hello', { properties, retain: true }))
    await broker.close()
    broker = await openBroker(file.file, options)
    const back = await connectFive(broker.port, 'away', {
      clean: false,
      properties: { sessionExpiryInterval: 600 },
    })
    expect(back.connack.sessionPresent).toBe(true)
    const queued = (await back.next()) as IPublishPacket
    expect(queued.properties).toEqual({ ...properties, subscriptionIdentifier: 300 })
    const late = await connectFive(broker.port, 'late')
    await subscribe(late, [{ topic: 'p/+' }])
    const retained = (await late.next()) as IPublishPacket
    expect(retained).toMatchObject({ retain: true, payload: Buffer.from('hello') })
    expect(retained.properties).toEqual(properties)
  })

  it('without receivers is acknowledged with 16, and one for a bridge or a subscriber with 0', async () => {
    const publisher = await connectFive(broker.port, 'publisher')
    expect(await publishAt(publisher, publish('nobody', 'x'))).toBe(16)
    expect(await publishAt(publisher, publish('claimed/x', 'x'))).toBe(0)
    await subscribe(publisher, [{ topic: 'somebody', qos: 0 }])
    publisher.send({ ...publish('somebody', 'x'), qos: 1, messageId: 7 } as Packet)
    const got = [await publisher.next(), await publisher.next()].map(({ cmd }) => cmd)
    expect(got.sort()).toEqual(['puback', 'publish'])
  })

  it('passes its media type to the bridges', async () => {
    await broker.close()
    const types: (string | undefined)[] = []
    broker = await openBroker(file.file, { onDecide: (frame) => types.push(frame.contentType) })
    const publisher = await connectFive(broker.port, 'publisher')
    await publishAt(
      publisher,
      publish('claimed/x', '{}', { properties: { contentType: 'application/json' } }),
    )
    expect(types).toEqual(['application/json'])
  })

  it('may name its topic by an alias, for as long as the connection lasts', async () => {
    const publisher = await connectFive(broker.port, 'publisher')
    await publishAt(publisher, publish('claimed/long', '1', { properties: { topicAlias: 3 } }))
    await publishAt(publisher, publish('', '2', { properties: { topicAlias: 3 } }))
    publisher.send(publish('', '3', { qos: 2, messageId: 8, properties: { topicAlias: 3 } }))
    expect(await publisher.next()).toMatchObject({ cmd: 'pubrec', reasonCode: 0 })
    expect(broker.frames()).toEqual(['claimed/long 1', 'claimed/long 2', 'claimed/long 3'])
    const other = await connectFive(broker.port, 'other')
    expect(await goodbye(other, publish('', '4', { properties: { topicAlias: 3 } }))).toBe(0x82)
  })
})

describe('the lifetime of a message', () => {
  const reconnected = async (): Promise<RawClient> => {
    const back = await connectFive(broker.port, 'away', {
      clean: false,
      properties: { sessionExpiryInterval: 600 },
    })
    expect(back.connack.sessionPresent).toBe(true)
    return back
  }

  it('ends in a session queue and for a retained message; the remainder is forwarded', async () => {
    let ahead = 0
    const clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() }
    await broker.close()
    broker = await openBroker(file.file, { clock })
    const away = await connectFive(broker.port, 'away', { properties: { sessionExpiryInterval: 600 } })
    await subscribe(away, [{ topic: '#' }])
    away.end()
    const publisher = await connectFive(broker.port, 'publisher')
    for (const [topic, seconds] of [
      ['short', 10],
      ['long', 100],
    ] as const) {
      const properties = { messageExpiryInterval: seconds }
      await publishAt(publisher, publish(topic, 'x', { retain: true, properties }))
    }
    ahead = 50_000
    const back = await reconnected()
    const got = (await back.next()) as IPublishPacket
    expect(got.topic).toBe('long')
    expect(got.properties?.messageExpiryInterval).toBeGreaterThan(40)
    expect(got.properties?.messageExpiryInterval).toBeLessThanOrEqual(50)
    const late = await connectFive(broker.port, 'late')
    await subscribe(late, [{ topic: '#' }])
    expect(await late.next()).toMatchObject({ topic: 'long', retain: true })
    expect(await late.all(50)).toEqual([])
    await broker.close()
    broker = await openBroker(file.file, { clock })
    await expect
      .poll(() => broker.database.prepare('SELECT topic FROM retained').all())
      .toEqual([{ topic: 'long' }])
  })

  it('still delivers a message that follows a thousand expired ones', async () => {
    let ahead = 0
    const clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() }
    await broker.close()
    broker = await openBroker(file.file, { clock })
    const away = await connectFive(broker.port, 'away', { properties: { sessionExpiryInterval: 600 } })
    await subscribe(away, [{ topic: 'a' }])
    away.end()
    await away.ended
    const publisher = await connectFive(broker.port, 'publisher')
    const properties = { messageExpiryInterval: 10 }
    for (let sent = 0; sent < 1000; sent += 250) {
      for (let n = 1; n <= 250; n++) publisher.send(publish('a', 'x', { qos: 1, messageId: n, properties }))
      for (let n = 1; n <= 250; n++) expect((await publisher.next()).cmd).toBe('puback')
    }
    await publishAt(publisher, publish('a', 'lasts'))
    ahead = 20_000
    const back = await reconnected()
    expect(await back.next()).toMatchObject({ payload: Buffer.from('lasts') })
    expect(broker.count('selvedge_mqtt_unsent_total')).toBe(1000)
    await expect.poll(() => broker.server.stats().queued).toBe(1)
  })
})

describe('a session', () => {
  it('lives for its expiry interval and no longer, across a restart as well', async () => {
    let ahead = 0
    const clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() }
    await broker.close()
    broker = await openBroker(file.file, { clock })
    const properties = { sessionExpiryInterval: 60 }
    const first = await connectFive(broker.port, 'one', { properties })
    await subscribe(first, [{ topic: 'a' }])
    first.end()
    await first.ended
    await broker.close()
    ahead = 50_000
    broker = await openBroker(file.file, { clock })
    const second = await connectFive(broker.port, 'one', { clean: false, properties })
    expect(second.connack.sessionPresent).toBe(true)
    second.end()
    await second.ended
    await expect.poll(() => broker.server.stats().clients).toBe(0)
    ahead = 120_000
    const third = await connectFive(broker.port, 'one', { clean: false, properties })
    expect(third.connack.sessionPresent).toBe(false)
  })

  it('ends with the connection without one, and starts anew with Clean Start', async () => {
    const properties = { sessionExpiryInterval: 60 }
    const first = await connectFive(broker.port, 'one', { properties })
    await subscribe(first, [{ topic: 'a' }])
    first.end()
    // Resumed, with an expiry interval of 0 this time.
    const second = await connectFive(broker.port, 'one', { clean: false })
    expect(second.connack.sessionPresent).toBe(true)
    second.end()
    await second.ended
    await expect.poll(() => broker.server.stats().sessions).toBe(0)
    const third = await connectFive(broker.port, 'one', { properties })
    await subscribe(third, [{ topic: 'a' }])
    third.end()
    const fourth = await connectFive(broker.port, 'one', { clean: true, properties })
    expect(fourth.connack.sessionPresent).toBe(false)
    const publisher = await connectFive(broker.port, 'publisher')
    expect(await publishAt(publisher, publish('a', 'x'))).toBe(16)
  })

  it('may get another interval from DISCONNECT, unless it had none', async () => {
    const first = await connectFive(broker.port, 'one', { properties: { sessionExpiryInterval: 60 } })
    await subscribe(first, [{ topic: 'a' }])
    first.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 0 } } as never)
    await first.ended
    await expect.poll(() => broker.server.stats().sessions).toBe(0)
    const second = await connectFive(broker.port, 'one')
    const late = { cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 60 } } as never
    expect(await goodbye(second, late)).toBe(0x82)
  })
})
