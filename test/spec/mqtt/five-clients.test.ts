/** MQTT 5 with third-party clients: Mosquitto's command line clients, paho and the mqtt library. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connectAsync, type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { run } from '#test/kit/mosquitto.ts'
import { type Broker, openBroker, subscribed } from '#test/kit/mqtt.ts'
import { describePeer } from '#test/kit/peers.ts'

let file: TemporaryDatabase
let broker: Broker

const options = {
  authenticate: ({ username }: { username: string | undefined }) => username !== 'intruder',
}

beforeEach(async () => {
  file = temporaryDatabase()
  broker = await openBroker(file.file, options)
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

describePeer('mosquitto_pub', 'the clients of Mosquitto, by MQTT 5,', () => {
  const publish = (...args: string[]) => run('mosquitto_pub', ['-V', '5', '-p', String(broker.port), ...args])
  const subscribe = (...args: string[]) =>
    run('mosquitto_sub', ['-V', '5', '-p', String(broker.port), ...args])

  it.each(['0', '1', '2'])('publish with QoS %s', async (qos) => {
    await publish('-t', 'claimed/m', '-m', 'hello', '-q', qos)
    await expect.poll(broker.frames).toEqual(['claimed/m hello'])
  })

  it('receive properties with retained messages, and from a session after an absence', async () => {
    const session = ['-c', '-i', 'keeper', '-x', '600', '-q', '2', '-t', 'p/#']
    await subscribe(...session, '-E')
    const properties = [
      ...['-D', 'publish', 'user-property', 'site', 'north'],
      ...['-D', 'publish', 'content-type', 'text/plain'],
      ...['-D', 'publish', 'response-topic', 'answer'],
      ...['-D', 'publish', 'message-expiry-interval', '500'],
    ]
    await publish('-t', 'p/kept', '-m', 'x', '-r', '-q', '1', ...properties)
    const format = ['-F', '%t %q %r %p %P %C %R', '-C', '1']
    expect(await subscribe(...session, ...format)).toBe('p/kept 1 0 x site:north text/plain answer\n')
    expect(await subscribe('-t', 'p/+', '-q', '1', ...format)).toBe(
      'p/kept 1 1 x site:north text/plain answer\n',
    )
  })

  it('get none of their own messages with No Local, and RETAIN as it was published', async () => {
    const filters = ['-t', 'r/#', '-T', 'r/probe']
    const got = subscribe(...filters, '-q', '1', '--retain-as-published', '-F', '%t %r', '-C', '2')
    await subscribed(broker.port, 'r/probe')
    await publish('-t', 'r/a', '-m', '1', '-q', '1', '-r')
    await publish('-t', 'r/b', '-m', '2', '-q', '1')
    expect(await got).toBe('r/a 1\nr/b 0\n')
  })

  it('receive the reason when they are refused', async () => {
    const wrong = publish('-t', 'claimed/p', '-m', 'x', '-u', 'intruder', '-P', 'guess')
    await expect(wrong).rejects.toThrow(/bad user name or password/i)
  })
})

describePeer('paho-mqtt', 'the Python client paho, by MQTT 5,', () => {
  it('receives all messages queued for its session, in order, with properties and levels', async () => {
    const script = join(import.meta.dirname, 'paho-client.py')
    const { stdout } = await promisify(execFile)('/usr/bin/python3', [script, String(broker.port)])
    const texts = Array.from({ length: 30 }, (_, n) => `${n}`)
    expect(JSON.parse(stdout)).toEqual({
      first: [0, 'Success'],
      granted: ['Granted QoS 2'],
      again: [1, 'Success'],
      one: texts.filter((_, n) => n % 2 === 0),
      two: texts.filter((_, n) => n % 2 === 1),
      last: [[['n', '29']], 'text/plain', [9]],
    })
    expect(broker.frames()).toEqual(texts.map((text) => `claimed/paho ${text}`))
  })
})

describe('the mqtt library, by MQTT 5,', () => {
  const clients: MqttClient[] = []
  const connect = async (more: IClientOptions = {}): Promise<MqttClient> => {
    const url = `mqtt://127.0.0.1:${broker.port}`
    const client = await connectAsync(url, { reconnectPeriod: 50, protocolVersion: 5, ...more })
    clients.push(client)
    return client
  }
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.endAsync(true)
  })

  it('publishes with QoS 2 in parallel, each message once, in order, with its properties', async () => {
    const receiver = await connect({ properties: { receiveMaximum: 5 } })
    const got: string[] = []
    receiver.on('message', (_topic, payload, { properties }) => {
      got.push(`${payload.toString()} ${String(properties?.userProperties?.['n'])}`)
    })
    await receiver.subscribeAsync('claimed/#', { qos: 2 })
    const client = await connect()
    const texts = Array.from({ length: 300 }, (_, n) => `${n}`)
    await Promise.all(
      texts.map((n) =>
        client.publishAsync('claimed/two', n, { qos: 2, properties: { userProperties: { n } } }),
      ),
    )
    expect(broker.frames()).toEqual(texts.map((text) => `claimed/two ${text}`))
    await expect.poll(() => got).toEqual(texts.map((n) => `${n} ${n}`))
  })

  it('reconnects after a restart of the broker and receives its queued messages', async () => {
    const { port } = broker
    const receiver = await connect({
      clientId: 'keeper',
      clean: false,
      properties: { sessionExpiryInterval: 600 },
    })
    const got: IPublishPacket[] = []
    receiver.on('packetreceive', (packet) => void (packet.cmd === 'publish' && got.push(packet)))
    await receiver.subscribeAsync('claimed/#', { qos: 1, properties: { subscriptionIdentifier: 7 } })
    await broker.close()
    broker = await openBroker(file.file, { ...options, port })
    await new Promise((resolve) => receiver.once('connect', resolve))
    const client = await connect()
    await client.publishAsync('claimed/x', 'after', { qos: 1 })
    await expect.poll(() => got.map(({ topic }) => topic)).toEqual(['claimed/x'])
    expect(got[0]!.properties?.subscriptionIdentifier).toBe(7)
  })

  it('receives the reason when another client takes its identifier, and when the gateway stops', async () => {
    const reasons: (number | undefined)[] = []
    const open = async () => {
      const client = await connect({ clientId: 'twin', reconnectPeriod: 0 })
      client.on('disconnect', ({ reasonCode }) => reasons.push(reasonCode))
    }
    await open()
    await open()
    await expect.poll(() => reasons).toEqual([0x8e])
    await broker.close()
    await expect.poll(() => reasons).toEqual([0x8e, 0x8b])
    broker = await openBroker(file.file, options)
  })
})
