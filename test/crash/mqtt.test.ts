/**
 * Nothing that MQTT acknowledged is lost when the process is killed: QoS 1 messages are there, QoS 2 messages are
 * there once, retained messages and messages queued for absent sessions too. Judged message by message.
 */
import { generate } from 'mqtt-packet'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openReader } from '#store/file/database.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import {
  committedFrames,
  connectRaw,
  publishPacket,
  type RawClient,
  subscribePacket,
} from '#test/kit/mqtt.ts'
import { type BrokerProcess, startBrokerProcess } from '#test/kit/mqtt-process.ts'

let file: TemporaryDatabase
let broker: BrokerProcess

beforeEach(async () => {
  file = temporaryDatabase()
  broker = await startBrokerProcess(file.file)
})

afterEach(async () => {
  await broker.kill()
  file.remove()
})

/** Sends QoS 1 messages, eight in flight, until the connection ends; a resend has the same text. */
async function publishOnce(name: string, state: { next: number; acknowledged: Set<string> }): Promise<void> {
  const client = await connectRaw(broker.port, name, { clean: true })
  const flight = new Map<number, string>()
  const send = (): void => {
    const text = `${name}-${state.next++}`
    flight.set((state.next % 60_000) + 1, text)
    client.send(publishPacket(`claimed/${name}`, text, { qos: 1, messageId: (state.next % 60_000) + 1 }))
  }
  for (let n = 0; n < 8; n++) send()
  for (;;) {
    const { messageId } = await client.next()
    state.acknowledged.add(flight.get(messageId!)!)
    send()
  }
}

interface Exact {
  number: number
  step: 'publish' | 'release'
  isRepeat: boolean
}

/** Sends QoS 2 messages one by one, always with the same packet identifier, as the standard says over connections. */
async function publishExactly(name: string, state: Exact): Promise<void> {
  const client = await connectRaw(broker.port, name, { clean: false })
  for (;;) {
    if (state.step === 'publish') {
      const dup = state.isRepeat
      state.isRepeat = true
      client.send(
        publishPacket('claimed/exact', `exact-${state.number}`, { qos: 2, messageId: 1, dup, retain: true }),
      )
      expect(await client.next()).toMatchObject({ cmd: 'pubrec', messageId: 1 })
      state.step = 'release'
    }
    client.send({ cmd: 'pubrel', messageId: 1 } as never)
    expect(await client.next()).toMatchObject({ cmd: 'pubcomp', messageId: 1 })
    state.number++
    state.step = 'publish'
    state.isRepeat = false
  }
}

/**
 * Receives what is queued for a session, up to a message that the client itself publishes: queues keep the order. The
 * broker has read all acknowledgements when it answers a ping.
 */
async function drain(client: RawClient, mark: string): Promise<string[]> {
  const got: string[] = []
  client.send(publishPacket('claimed/mark', mark, { qos: 1, messageId: 65_000 }))
  for (;;) {
    const packet = await client.next()
    if (packet.cmd === 'pingresp') return got
    if (packet.cmd === 'pubrel') client.send({ cmd: 'pubcomp', messageId: packet.messageId } as never)
    if (packet.cmd !== 'publish') continue
    if (packet.payload.toString() === mark) client.send({ cmd: 'pingreq' } as never)
    else got.push(packet.payload.toString())
    client.send({ cmd: packet.qos === 2 ? 'pubrec' : 'puback', messageId: packet.messageId } as never)
  }
}

it('keeps every acknowledged message over kills at random instants', async () => {
  const kills = Number(process.env['SELVEDGE_KILLS'] ?? 6)
  const absent = await connectRaw(broker.port, 'absent', { clean: false })
  absent.send(subscribePacket(1, ['claimed/#', 2]))
  await absent.next()
  absent.end()
  const states = ['a', 'b', 'c'].map((name) => ({ name, next: 0, acknowledged: new Set<string>() }))
  const exact: Exact = { number: 0, step: 'publish', isRepeat: false }
  const received: string[] = []

  for (let kill = 0; kill < kills; kill++) {
    const senders = [
      ...states.map((state) => publishOnce(state.name, state)),
      publishExactly('exact', exact),
    ].map((sender) => sender.catch(() => undefined))
    const most = 30 + Math.random() * 100
    const before = states.map(({ acknowledged }) => acknowledged.size)
    const exactly = exact.number
    await expect
      .poll(
        () =>
          exact.number > exactly + 1 &&
          states.every((state, i) => state.acknowledged.size > before[i]! + most),
        { interval: 5, timeout: 100_000 },
      )
      .toBe(true)
    await broker.kill()
    await Promise.all(senders)
    broker = await startBrokerProcess(file.file)
    const client = await connectRaw(broker.port, 'absent', { clean: false })
    expect(client.connack.sessionPresent).toBe(true)
    received.push(...(await drain(client, `mark-${kill}`)))
    client.end()
    await client.ended
  }

  const witness = await connectRaw(broker.port, 'witness')
  witness.send(generate(subscribePacket(1, ['claimed/exact', 2])))
  await witness.next()
  const retained = (await witness.next()) as { payload?: Buffer }
  await broker.stop()
  const database = openReader(file.file)
  const frames = committedFrames(database).map((frame) => frame.split(' ')[1]!)
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
  database.close()
  broker = await startBrokerProcess(file.file)

  const acknowledged = states.flatMap((state) => [...state.acknowledged])
  expect(acknowledged.length).toBeGreaterThan(kills * 20)
  const stored = new Set(frames)
  expect(acknowledged.filter((text) => !stored.has(text))).toEqual([])
  const delivered = new Set(received)
  expect(acknowledged.filter((text) => !delivered.has(text))).toEqual([])
  const exactFrames = frames.filter((text) => text.startsWith('exact-'))
  expect(exact.number).toBeGreaterThan(kills)
  expect(exactFrames).toEqual(exactFrames.map((_, n) => `exact-${n}`))
  expect(exactFrames.length).toBeGreaterThanOrEqual(exact.number)
  expect(received.filter((text) => text.startsWith('exact-'))).toEqual(exactFrames)
  expect(String(retained.payload)).toBe(exactFrames.at(-1))
})

it('publishes the wills of clients that were connected', async () => {
  const will = { topic: 'claimed/will', payload: Buffer.from('lost'), qos: 1 as const, retain: false }
  await connectRaw(broker.port, 'mortal', { will })
  await broker.kill()
  broker = await startBrokerProcess(file.file)
  const database = openReader(file.file)
  await expect.poll(() => committedFrames(database)).toEqual(['claimed/will lost'])
  database.close()
})
