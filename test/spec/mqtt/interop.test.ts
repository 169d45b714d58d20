/** Third-party clients: Mosquitto's command line clients and the mqtt library. */
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TemporaryDatabase, temporaryDatabase } from '#test/kit/door.ts'
import { run } from '#test/kit/mosquitto.ts'
import { type Broker, openBroker, subscribed } from '#test/kit/mqtt.ts'
import { describePeer } from '#test/kit/peers.ts'

let file: TemporaryDatabase
let broker: Broker

beforeEach(async () => {
  file = temporaryDatabase()
  broker = await openBroker(file.file, {
    authenticate: ({ username, password }) =>
      username === undefined || Buffer.from(password ?? []).toString() === `${username}!`,
  })
})

afterEach(async () => {
  await broker.close()
  file.remove()
})

describePeer('mosquitto_pub', 'the clients of Mosquitto', () => {
  const publish = (...args: string[]) => run('mosquitto_pub', ['-p', String(broker.port), ...args])
  const subscribe = (...args: string[]) =>
    run('mosquitto_sub', ['-p', String(broker.port), '-F', '%t %q %r %p', ...args])

  it.each(['0', '1', '2'])('publish with QoS %s', async (qos) => {
    await publish('-t', 'claimed/m', '-m', 'hello', '-q', qos)
    await expect.poll(broker.frames).toEqual(['claimed/m hello'])
  })

  it('get retained messages and live ones, by MQTT 3.1 too', async () => {
    await publish('-t', 'claimed/r', '-m', 'kept', '-r', '-q', '1')
    expect(await subscribe('-t', 'claimed/+', '-q', '2', '-C', '1')).toBe('claimed/r 1 1 kept\n')
    expect(await subscribe('-t', '#', '-q', '0', '-C', '1', '-V', 'mqttv31')).toBe('claimed/r 0 1 kept\n')
    const live = subscribe('-t', 'live/#', '-T', 'live/probe', '-q', '1', '-C', '2')
    await subscribed(broker.port, 'live/probe')
    await publish('-t', 'live/a', '-m', '1', '-q', '1')
    await publish('-t', 'live/b', '-m', '2', '-q', '2')
    expect(await live).toBe('live/a 1 0 1\nlive/b 1 0 2\n')
  })

  it('receive the messages queued for their session', async () => {
    const session = ['-c', '-i', 'keeper', '-q', '2', '-t', 'queued/#']
    await subscribe(...session, '-E')
    for (const n of ['1', '2', '3']) await publish('-t', 'queued/x', '-m', n, '-q', n === '3' ? '2' : '1')
    expect(await subscribe(...session, '-C', '3')).toBe('queued/x 1 0 1\nqueued/x 1 0 2\nqueued/x 2 0 3\n')
    await expect.poll(() => broker.server.stats().queued).toBe(0)
  })

  it('send a burst of lines in order', async () => {
    const lines = Array.from({ length: 2000 }, (_, n) => `${n}`)
    const port = String(broker.port)
    await run('mosquitto_pub', ['-p', port, '-q', '1', '-t', 'claimed/l', '-l'], lines.join('\n'))
    expect(broker.frames()).toEqual(lines.map((line) => `claimed/l ${line}`))
  })

  it('get an error for a wrong password', async () => {
    const wrong = publish('-t', 'claimed/p', '-m', 'x', '-u', 'me', '-P', 'guess')
    await expect(wrong).rejects.toThrow(/bad user name or password/i)
    await publish('-t', 'claimed/p', '-m', 'x', '-u', 'me', '-P', 'me!', '-q', '1')
    expect(broker.frames()).toEqual(['claimed/p x'])
  })
})

describe('the mqtt library', () => {
  const clients: MqttClient[] = []
  const connect = async (options: IClientOptions = {}): Promise<MqttClient> => {
    const client = await connectAsync(`mqtt://127.0.0.1:${broker.port}`, { reconnectPeriod: 50, ...options })
    clients.push(client)
    return client
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) await client.endAsync(true)
  })

  it('publishes with QoS 2 in parallel, each message once', async () => {
    const receiver = await connect()
    const got: string[] = []
    receiver.on('message', (_topic, payload) => got.push(payload.toString()))
    await receiver.subscribeAsync('claimed/#', { qos: 2 })
    const client = await connect()
    const texts = Array.from({ length: 300 }, (_, n) => `${n}`)
    await Promise.all(texts.map((text) => client.publishAsync('claimed/two', text, { qos: 2 })))
    expect(broker.frames()).toEqual(texts.map((text) => `claimed/two ${text}`))
    await expect.poll(() => got).toEqual(texts)
  })

  it('reconnects after a restart of the broker and receives its queued messages', async () => {
    const { port } = broker
    const receiver = await connect({ clientId: 'keeper', clean: false })
    const got: string[] = []
    receiver.on('message', (_topic, payload) => got.push(payload.toString()))
    await receiver.subscribeAsync('claimed/#', { qos: 1 })
    await broker.close()
    broker = await openBroker(file.file, { port })
    await new Promise((resolve) => receiver.once('connect', resolve))
    const client = await connect()
    await client.publishAsync('claimed/x', 'after', { qos: 1 })
    await expect.poll(() => got).toEqual(['after'])
  })
})
