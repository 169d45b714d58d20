/** MQTT 3.1.1, section 4.7: filters match topics, live and retained, against the real broker. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
let publisher: RawClient

beforeAll(async () => {
  broker = await openBroker(file.file)
  publisher = await connectRaw(broker.port, 'publisher')
})

afterAll(async () => {
  await broker.close()
  file.remove()
})

async function publish(topic: string, payload: string, retain: boolean): Promise<void> {
  publisher.send(publishPacket(topic, payload, { qos: 1, messageId: 1, retain }))
  expect(await publisher.next()).toMatchObject({ cmd: 'puback' })
}

async function subscriber(filter: string): Promise<RawClient> {
  const client = await connectRaw(broker.port, '')
  client.send(subscribePacket(1, [filter, 1]))
  expect(await client.next()).toMatchObject({ cmd: 'suback' })
  return client
}

describe('filters', () => {
  const cases: [filter: string, topic: string, isMatch: boolean][] = [
    ['sport/tennis/player1/#', 'sport/tennis/player1', true],
    ['sport/tennis/player1/#', 'sport/tennis/player1/ranking', true],
    ['sport/#', 'sport', true],
    ['#', '/', true],
    ['sport/tennis/+', 'sport/tennis/player1', true],
    ['sport/tennis/+', 'sport/tennis/player1/ranking', false],
    ['sport/+', 'sport', false],
    ['sport/+', 'sport/', true],
    ['+/+', '/finance', true],
    ['/+', '/finance', true],
    ['+', '/finance', false],
    ['#', '$own/x', false],
    ['+/x', '$own/x', false],
    ['$own/#', '$own/x', true],
    ['ACCOUNTS', 'Accounts', false],
    ['a//b', 'a//b', true],
    ['a/+/b', 'a//b', true],
    ['Ä/€/𝄞', 'Ä/€/𝄞', true],
    ['a b/c', 'a b/c', true],
  ]
  it.each(cases)('[MQTT-4.7] %s against %s: %s', async (filter, topic, isMatch) => {
    const client = await subscriber(filter)
    await publish(topic, 'live', false)
    await publish(topic, 'kept', true)
    const late = await subscriber(filter)
    expect((await client.all(30)).map(textOf)).toEqual(
      isMatch ? [`${topic} live qos1`, `${topic} kept qos1`] : [],
    )
    expect((await late.all(0)).map(textOf)).toEqual(isMatch ? [`${topic} kept qos1 retain`] : [])
    await publish(topic, '', true)
    for (const one of [client, late]) one.end()
  })
})
