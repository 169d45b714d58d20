/**
 * What MQTT 5 promises holds when the process is killed: messages with their properties and their remaining lifetime in
 * the queue of an absent session, the subscription and the expiry of that session, and wills with a delay.
 */
import type { IPublishPacket } from 'mqtt-packet'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openReader } from '#store/file/database.ts'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { committedFrames, connectFive, publishPacket, type RawClient } from '#test/kit/mqtt.ts'
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

async function restart(): Promise<void> {
  await broker.kill()
  broker = await startBrokerProcess(file.file)
}

const lasting = { sessionExpiryInterval: 600 }

async function subscribe(client: RawClient, subscriptionIdentifier: number): Promise<void> {
  const subscriptions = [{ topic: 'claimed/#', qos: 2, nl: false, rap: true, rh: 0 }]
  client.send({
    cmd: 'subscribe',
    messageId: 1,
    subscriptions,
    properties: { subscriptionIdentifier },
  } as never)
  expect(await client.next()).toMatchObject({ cmd: 'suback', granted: [2] })
}

/** Publishes with QoS 1 and 2 in turn, one by one, until the connection ends. */
async function publishOn(name: string, state: { next: number; acknowledged: string[] }): Promise<void> {
  const client = await connectFive(broker.port, name, { clean: false, properties: lasting })
  for (;;) {
    const text = `${state.next}`
    const qos = state.next % 2 === 0 ? 1 : 2
    // What is sent again after a kill has a number of its own: the copy before may be there, too.
    state.next++
    const messageId = (state.next % 60_000) + 1
    const properties = { userProperties: { n: text }, messageExpiryInterval: 3600 }
    client.send({ ...publishPacket('claimed/x', text, { qos, messageId }), properties } as never)
    expect((await client.next()).messageId).toBe(messageId)
    state.acknowledged.push(text)
    if (qos === 1) continue
    client.send({ cmd: 'pubrel', messageId, reasonCode: 0 } as never)
    await client.next()
  }
}

it('keeps messages with their properties over kills', async () => {
  const kills = Number(process.env['SELVEDGE_KILLS'] ?? 4)
  const absent = await connectFive(broker.port, 'absent', { properties: lasting })
  await subscribe(absent, 9)
  absent.end()
  const state = { next: 0, acknowledged: [] as string[] }
  const delivered = new Map<string, number>()
  for (let kill = 0; kill < kills; kill++) {
    const before = state.acknowledged.length
    const publishing = publishOn('publisher', state).catch(() => undefined)
    await expect.poll(() => state.acknowledged.length - before).toBeGreaterThan(15)
    await restart()
    await publishing
    const client = await connectFive(broker.port, 'absent', { clean: false, properties: lasting })
    expect(client.connack.sessionPresent).toBe(true)
    const last = state.acknowledged.at(-1)!
    while (!delivered.has(last)) {
      const packet = (await client.next()) as IPublishPacket
      if (packet.cmd !== 'publish') {
        client.send({ cmd: 'pubcomp', messageId: packet.messageId, reasonCode: 0 } as never)
        continue
      }
      const text = packet.payload.toString()
      expect(packet.properties).toMatchObject({ userProperties: { n: text }, subscriptionIdentifier: 9 })
      expect(packet.properties?.messageExpiryInterval).toBeLessThanOrEqual(3600)
      expect(packet.properties?.messageExpiryInterval).toBeGreaterThan(3000)
      delivered.set(text, (delivered.get(text) ?? 0) + 1)
      const cmd = packet.qos === 2 ? 'pubrec' : 'puback'
      client.send({ cmd, messageId: packet.messageId, reasonCode: 0 } as never)
    }
    client.end()
    await client.ended
  }
  expect(state.acknowledged.filter((text) => !delivered.has(text))).toEqual([])
})

it('ends a session after its expiry interval, counted from the kill', async () => {
  const brief = await connectFive(broker.port, 'brief', { properties: { sessionExpiryInterval: 1 } })
  await subscribe(brief, 1)
  const kept = await connectFive(broker.port, 'kept', { properties: lasting })
  await subscribe(kept, 1)
  await restart()
  const database = openReader(file.file)
  const clients = (): unknown[] => database.prepare('SELECT client FROM session').pluck().all()
  await expect.poll(clients).toEqual(['kept'])
  database.close()
})

it('publishes a delayed will after a kill, with its properties', async () => {
  const witness = await connectFive(broker.port, 'witness', { properties: lasting })
  await subscribe(witness, 3)
  const properties = { willDelayInterval: 1, contentType: 'text/plain' }
  const will = {
    topic: 'claimed/will',
    payload: Buffer.from('lost'),
    qos: 1 as const,
    retain: false,
    properties,
  }
  const mortal = await connectFive(broker.port, 'mortal', { will, properties: lasting } as never)
  mortal.end()
  await restart()
  const back = await connectFive(broker.port, 'witness', { clean: false, properties: lasting })
  const got = (await back.next()) as IPublishPacket
  expect(got).toMatchObject({ topic: 'claimed/will', payload: Buffer.from('lost') })
  expect(got.properties).toEqual({ contentType: 'text/plain', subscriptionIdentifier: 3 })
  const database = openReader(file.file)
  expect(committedFrames(database)).toEqual(['claimed/will lost'])
  await expect.poll(() => database.prepare('SELECT count(*) FROM will').pluck().get()).toBe(0)
  database.close()
})
