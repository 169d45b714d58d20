/**
 * MQTT 3.1.1, sections 3.1.2.4 and 4.4: sessions, their queued messages, and wills, across connections and
 * restarts.
 */
import { generate, type Packet } from 'mqtt-packet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { madeAfterMs } from '#base/register/version.ts'
import { systemClock } from '#base/time/clock.ts'
import { createTimekeeper } from '#base/time/timekeeper.ts'
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

async function publish(topic: string, payload: string | Buffer, qos: 1 | 2 = 1): Promise<void> {
  publisher.send(publishPacket(topic, payload, { qos, messageId: 1 }))
  expect(await publisher.next()).toMatchObject({ cmd: qos === 1 ? 'puback' : 'pubrec' })
  if (qos === 1) return
  publisher.send({ cmd: 'pubrel', messageId: 1 } as never)
  expect(await publisher.next()).toMatchObject({ cmd: 'pubcomp' })
}

/** A persistent client that subscribes and acknowledges nothing. */
async function persistent(id: string, ...filters: [string, 0 | 1 | 2][]): Promise<RawClient> {
  const client = await connectRaw(broker.port, id, { clean: false })
  client.send(subscribePacket(1, ...filters))
  expect(await client.next()).toMatchObject({ cmd: 'suback' })
  return client
}

const back = (id: string) => connectRaw(broker.port, id, { clean: false })
const rows = (table: string): number =>
  (broker.database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n

async function gone(client: RawClient): Promise<void> {
  const before = broker.server.stats().clients
  client.end()
  await client.ended
  await expect.poll(() => broker.server.stats().clients).toBe(before - 1)
}

describe('a session', () => {
  it('[MQTT-3.1.2-4] [MQTT-3.2.2-2] is present again, even without subscriptions, even after a restart', async () => {
    const first = await back('empty')
    expect(first.connack).toMatchObject({ returnCode: 0, sessionPresent: false })
    await gone(first)
    const second = await back('empty')
    expect(second.connack.sessionPresent).toBe(true)
    await gone(second)
    await restart()
    expect((await back('empty')).connack.sessionPresent).toBe(true)
  })

  it('[MQTT-3.1.2-6] [MQTT-3.2.2-1] ends with CleanSession 1, on disk as well', async () => {
    await gone(await persistent('ender', ['a', 1]))
    await publish('a', 'x')
    const clean = await connectRaw(broker.port, 'ender')
    expect(clean.connack.sessionPresent).toBe(false)
    expect(await clean.all(50)).toEqual([])
    await gone(clean)
    expect((await back('ender')).connack.sessionPresent).toBe(false)
    expect([rows('session_filter'), rows('session_message')]).toEqual([0, 0])
  })

  it('[MQTT-3.1.2-5] receives messages published while its client was away, in order, and acknowledged ones never again', async () => {
    await gone(await persistent('away', ['a/+', 2], ['zero', 0]))
    for (let n = 1; n <= 5; n++) await publish(`a/${n}`, `${n}`, n % 2 === 0 ? 2 : 1)
    await publish('zero', 'QoS 0 is not kept')
    const client = await back('away')
    const got = await client.all(100)
    expect(got.map(textOf)).toEqual(['a/1 1 qos1', 'a/2 2 qos2', 'a/3 3 qos1', 'a/4 4 qos2', 'a/5 5 qos1'])
    for (const { messageId } of got.filter((packet) => packet.cmd === 'publish' && packet.qos === 1)) {
      client.send({ cmd: 'puback', messageId } as never)
    }
    for (const { messageId } of got.filter((packet) => packet.cmd === 'publish' && packet.qos === 2)) {
      client.send({ cmd: 'pubrec', messageId } as never)
      expect(await client.next()).toMatchObject({ cmd: 'pubrel', messageId })
      client.send({ cmd: 'pubcomp', messageId } as never)
    }
    await expect.poll(() => rows('session_message')).toBe(0)
    await gone(client)
    const again = await back('away')
    expect(await again.all(50)).toEqual([])
    expect(broker.server.stats()).toMatchObject({ queued: 0, growthBytes: 0 })
  })

  it('receives live messages in the same order while its client is connected', async () => {
    const client = await persistent('live', ['#', 1])
    const packets = Array.from({ length: 300 }, (_, n) =>
      generate(publishPacket('l', `${n}`, { qos: 1, messageId: n + 1 })),
    )
    publisher.send(Buffer.concat(packets))
    for (let n = 0; n < 300; n++) {
      const packet = await client.next()
      expect(textOf(packet)).toBe(`l ${n} qos1`)
      client.send({ cmd: 'puback', messageId: packet.messageId } as never)
    }
    await expect.poll(() => rows('session_message')).toBe(0)
  })

  it('[MQTT-4.4.0-1] [MQTT-3.3.1-1] receives unacknowledged messages again with DUP and their identifiers, even after a restart', async () => {
    const client = await persistent('dup', ['d', 2])
    await publish('d', 'one')
    await publish('d', 'two', 2)
    const first = [await client.next(), await client.next()]
    await gone(client)
    await publish('d', 'three')
    const second = await back('dup')
    const repeated = await second.all(50)
    expect(repeated.map(textOf)).toEqual(['d one qos1 dup', 'd two qos2 dup', 'd three qos1'])
    expect(repeated.slice(0, 2).map(({ messageId }) => messageId)).toEqual(
      first.map(({ messageId }) => messageId),
    )
    await gone(second)
    await publish('d', 'four')
    await restart()
    const third = await (await back('dup')).all(50)
    expect(third.map(textOf)).toEqual(['d one qos1 dup', 'd two qos2 dup', 'd three qos1 dup', 'd four qos1'])
    expect(third.slice(0, 3).map(({ messageId }) => messageId)).toEqual(
      repeated.map(({ messageId }) => messageId),
    )
  })

  it('[MQTT-4.3.3-1] gets only PUBREL after its PUBREC, even after a restart', async () => {
    const client = await persistent('rel', ['e', 2])
    await publish('e', 'x', 2)
    const { messageId } = await client.next()
    client.send({ cmd: 'pubrec', messageId } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubrel', messageId })
    await gone(client)
    await restart()
    const second = await back('rel')
    expect(await second.next()).toMatchObject({ cmd: 'pubrel', messageId })
    second.send({ cmd: 'pubcomp', messageId } as never)
    await expect.poll(() => rows('session_message')).toBe(0)
  })

  it('remembers QoS 2 messages received, even after a restart', async () => {
    const message = publishPacket('claimed/once', 'x', { qos: 2, messageId: 3 })
    const client = await back('once')
    client.send(message)
    expect(await client.next()).toMatchObject({ cmd: 'pubrec', messageId: 3 })
    await gone(client)
    await restart()
    const second = await back('once')
    second.send({ ...message, dup: true } as Packet)
    expect(await second.next()).toMatchObject({ cmd: 'pubrec', messageId: 3 })
    second.send({ cmd: 'pubrel', messageId: 3 } as never)
    expect(await second.next()).toMatchObject({ cmd: 'pubcomp', messageId: 3 })
    expect(broker.frames()).toEqual(['claimed/once x'])
    await gone(second)
    await restart()
    const third = await back('once')
    third.send(publishPacket('claimed/once', 'y', { qos: 2, messageId: 3 }))
    expect(await third.next()).toMatchObject({ cmd: 'pubrec', messageId: 3 })
    expect(broker.frames()).toEqual(['claimed/once x', 'claimed/once y'])
  })

  it('is moved, not copied, when its client connects a second time', async () => {
    const first = await persistent('move', ['m', 1])
    const second = await back('move')
    await first.ended
    await publish('m', 'x')
    expect(textOf(await second.next())).toBe('m x qos1')
    expect(second.connack.sessionPresent).toBe(true)
  })

  it('drains more than its window while its client acknowledges', async () => {
    await gone(await persistent('drain', ['w', 1]))
    const total = 450
    for (let n = 0; n < total; n += 50) {
      const packets = Array.from({ length: 50 }, (_, i) =>
        generate(publishPacket('w', `${n + i}`, { qos: 1, messageId: i + 1 })),
      )
      publisher.send(Buffer.concat(packets))
      for (let i = 0; i < 50; i++) await publisher.next()
    }
    const client = await back('drain')
    expect((await client.all(100)).length).toBe(100)
    client.end()
    const second = await back('drain')
    for (let n = 0; n < total; n++) {
      const packet = await second.next()
      expect(textOf(packet).split(' ')[1]).toBe(`${n}`)
      second.send({ cmd: 'puback', messageId: packet.messageId } as never)
    }
    await expect.poll(() => rows('session_message')).toBe(0)
  })

  it('keeps its messages apart from retained ones, which have other identifiers', async () => {
    publisher.send(publishPacket('k', 'kept', { qos: 1, messageId: 1, retain: true }))
    await publisher.next()
    const client = await persistent('apart', ['k', 1])
    const retained = await client.next()
    await publish('k', 'queued')
    const queued = await client.next()
    expect([textOf(retained), textOf(queued)]).toEqual(['k kept qos1 retain', 'k queued qos1'])
    client.send({ cmd: 'puback', messageId: retained.messageId } as never)
    await client.all(50)
    expect(rows('session_message')).toBe(1)
    client.send({ cmd: 'puback', messageId: queued.messageId } as never)
    await expect.poll(() => rows('session_message')).toBe(0)
  })
})

describe('ceilings of sessions', () => {
  const evictions = () => broker.lines.filter(({ event }) => event === 'mqtt.session-evicted')

  it('drop the oldest messages of a session that has too many, counted, logged once', async () => {
    await restart({ sessionMessagesMax: 10 })
    await gone(await persistent('full', ['f', 1]))
    for (let n = 1; n <= 25; n++) await publish('f', `${n}`)
    expect(rows('session_message')).toBe(10)
    expect(broker.count('selvedge_mqtt_offline_evicted_total')).toBe(15)
    expect(evictions()).toMatchObject([{ client: 'full' }])
    const got = await (await back('full')).all(50)
    expect(got.map((packet) => textOf(packet).split(' ')[1])).toEqual(
      Array.from({ length: 10 }, (_, n) => `${n + 16}`),
    )
  })

  it('drop the oldest messages of a session that has too many bytes', async () => {
    await restart({ sessionBytesMax: 10_000 })
    await gone(await persistent('fat', ['f', 1]))
    for (let n = 1; n <= 30; n++) await publish('f', Buffer.alloc(1000, `${n % 10}`))
    expect(broker.server.stats().growthBytes).toBeLessThanOrEqual(10_000)
    expect(rows('session_message')).toBeGreaterThanOrEqual(8)
  })

  it('drop the oldest messages of the largest session when the total is too large', async () => {
    await restart({ sessionsBytesMax: 20_000 })
    await gone(await persistent('large', ['f/#', 1]))
    await gone(await persistent('small', ['f/s', 1]))
    for (let n = 1; n <= 5; n++) await publish('f/s', Buffer.alloc(500, 's'))
    for (let n = 1; n <= 40; n++) await publish('f/l', Buffer.alloc(1000, 'l'))
    expect(broker.server.stats().growthBytes).toBeLessThanOrEqual(20_000)
    expect(evictions()).toMatchObject([{ client: 'large' }])
    expect((await (await back('small')).all(50)).length).toBe(5)
  })

  it('keep the counts across a restart', async () => {
    await gone(await persistent('count', ['f', 1]))
    for (let n = 1; n <= 5; n++) await publish('f', `${n}`)
    const { queued, growthBytes } = broker.server.stats()
    await restart({ sessionMessagesMax: 5 })
    expect(broker.server.stats()).toMatchObject({ queued, growthBytes, sessions: 1 })
    await publish('f', '6')
    expect(rows('session_message')).toBe(5)
  })

  it('refuse a session beyond the limit with return code 3, and let existing clients reconnect', async () => {
    await restart({ sessionsMax: 2 })
    await gone(await back('s1'))
    await gone(await back('s2'))
    const third = await connectRaw(broker.port, 's3', { clean: false })
    expect(third.connack.returnCode).toBe(3)
    await third.ended
    expect((await back('s1')).connack.returnCode).toBe(0)
    expect((await connectRaw(broker.port, 's3')).connack.returnCode).toBe(0)
  })

  it('end sessions whose client is away for too long', async () => {
    await gone(await persistent('old', ['f', 1]))
    await publish('f', 'x')
    await gone(await back('empty'))
    await new Promise((resolve) => setTimeout(resolve, 60))
    await restart({ sessionAgeMs: 50 })
    await expect.poll(() => rows('session')).toBe(0)
    expect([rows('session_filter'), rows('session_message')]).toEqual([0, 0])
    expect(broker.lines.filter(({ event }) => event === 'mqtt.session-ended')).toHaveLength(2)
  })

  it('end no session because of a clock change or an unknown last-seen time', async () => {
    await gone(await persistent('before', ['f', 1]))
    let wrongBy = -systemClock.now()
    const clock = createTimekeeper(
      {
        system: { now: () => systemClock.now() + wrongBy, monotonic: systemClock.monotonic },
        evidence: () => ({ setAt: wrongBy === 0 ? 1 : undefined, isAwaited: false }),
        boot: 'b1',
        bootedMs: 0,
        floor: madeAfterMs,
      },
      { believe: 'plausible' },
    )
    await restart({ clock, sessionAgeMs: 3_600_000 })
    await gone(await persistent('meanwhile', ['f', 1]))
    await publish('f', 'x')
    wrongBy = 0
    clock.check()
    await restart({ clock, sessionAgeMs: 3_600_000 })
    expect(rows('session')).toBe(2)
    expect((await back('meanwhile')).connack).toMatchObject({ sessionPresent: true })
    expect((await back('before')).connack).toMatchObject({ sessionPresent: true })
  })
})

describe('a will', () => {
  const will = { topic: 'claimed/will', payload: Buffer.from('lost'), qos: 1 as const, retain: true }

  it('[MQTT-3.1.2-8] is stored, retained and sent when its client disconnects without DISCONNECT', async () => {
    const witness = await persistent('witness', ['claimed/#', 1])
    const client = await connectRaw(broker.port, 'mortal', { will })
    expect(rows('will')).toBe(1)
    client.end()
    expect(textOf(await witness.next())).toBe('claimed/will lost qos1')
    expect(broker.frames()).toEqual(['claimed/will lost'])
    expect([rows('will'), rows('retained')]).toEqual([0, 1])
  })

  it('[MQTT-3.1.2-10] is discarded by DISCONNECT', async () => {
    const client = await connectRaw(broker.port, 'polite', { will })
    client.send({ cmd: 'disconnect' } as never)
    await client.ended
    await expect.poll(() => rows('will')).toBe(0)
    expect(broker.frames()).toEqual([])
  })

  // Otherwise the wills of 200 clients that connect at once would be one group of 12 MB.
  it('counts with its payload towards the bytes of a group', async () => {
    const bytes: unknown[] = []
    await broker.close()
    broker = await openBroker(file.file, {
      wrapDoor: (door) => ({
        ...door,
        commit(decide, options) {
          bytes.push(options?.bytes)
          return door.commit(decide, options)
        },
      }),
    })
    await connectRaw(broker.port, 'mortal', { will: { ...will, payload: Buffer.alloc(50_000) } })
    expect(rows('will')).toBe(1)
    expect(bytes).toContain(50_000)
  })

  it('is sent when another connection takes over; the will of that one stays', async () => {
    const first = await connectRaw(broker.port, 'twin', { will })
    const second = await connectRaw(broker.port, 'twin', { will: { ...will, payload: Buffer.from('new') } })
    await first.ended
    await expect.poll(broker.frames).toEqual(['claimed/will lost'])
    expect(broker.database.prepare('SELECT payload FROM will').all()).toEqual([
      { payload: Buffer.from('new') },
    ])
    second.end()
    await expect.poll(broker.frames).toEqual(['claimed/will lost', 'claimed/will new'])
  })

  it('is kept across an orderly restart, and sent when its client does not reconnect', async () => {
    await connectRaw(broker.port, 'absent', { will })
    await connectRaw(broker.port, 'returning', { will: { ...will, payload: Buffer.from('never') } })
    await restart({ willGraceMs: 400 })
    expect(broker.frames()).toEqual([])
    await connectRaw(broker.port, 'returning')
    await expect.poll(broker.frames).toEqual(['claimed/will lost'])
    await expect.poll(() => rows('will')).toBe(0)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(broker.frames()).toEqual(['claimed/will lost'])
  })
})
