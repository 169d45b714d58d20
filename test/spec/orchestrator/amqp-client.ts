/** Tests of the example client of docs/examples/orchestrator: RabbitMQ and the gateway end while it receives. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'amqplib'
import { expect, it } from 'vitest'
import {
  type ApplicationMessage,
  type NotificationClientOptions,
  openNotificationClient,
} from '#examples/orchestrator/notification-client.ts'
import { declareExchange } from '#test/kit/amqp-application.ts'
import { createFaultProxy, type FaultProxy } from '#test/kit/fault-proxy.ts'
import { describePeer } from '#test/kit/peers.ts'
import { type AmqpSite, observationId, patience, watched } from './application-site.ts'

/** Registers the tests. The last one restarts RabbitMQ and the gateway. */
export function clientTests(place: AmqpSite): void {
  /** A client, and what its application has received. */
  function application(entity: string, given: Partial<NotificationClientOptions> = {}) {
    const received: ApplicationMessage[] = []
    const notices: ApplicationMessage[] = []
    const troubles: string[] = []
    const client = openNotificationClient({
      orchestrator: `${place.site.gateway().httpUrl}/orchestrator`,
      client: 'example',
      subscription: {
        type: 'Subscription',
        entities: [
          { id: observationId(entity), type: 'http://purl.org/iot/ontology/iot-stream#StreamObservation' },
        ],
        watchedAttributes: [watched],
      },
      amqp: { url: place.rabbitmq.url },
      pauseMsMax: 300,
      onNotification: (notification) => void received.push(notification),
      onNotice: (notice) => void notices.push(notice),
      onTrouble: (reason) => void troubles.push(reason),
      ...given,
    })
    return { client, received, notices, troubles, values: () => received.flatMap(valuesOf) }
  }

  const receiving = (client: { isReceiving(): boolean }) =>
    expect.poll(() => client.isReceiving(), patience).toBe(true)

  it('receives from the transient exchange, also after a reset of its connection, and unsubscribes', async () => {
    const way = await wayTo(place)
    const { client, notices, values } = application('e', { amqp: { url: `amqp://127.0.0.1:${way.port}` } })
    const id = await client.subscribed
    await receiving(client)
    await place.site.observe('e', 1)
    await expect.poll(values, patience).toEqual([1])
    await way.set('refused')
    await expect.poll(() => client.isReceiving(), patience).toBe(false)
    await way.set('none')
    await receiving(client)
    await place.site.observe('e', 2)
    await expect.poll(values, patience).toEqual([1, 2])
    const notice = { id: 'urn:n:1', type: 'StreamFailure', subscriptionId: id, alternatives: [] }
    await publish(place.rabbitmq.url, id, notice, notice)
    await publish(place.rabbitmq.url, id, { ...notice, id: 'urn:n:2', type: 'StreamRecovery' })
    await expect
      .poll(() => notices.map(({ type }) => type), patience)
      .toEqual(['StreamFailure', 'StreamRecovery'])
    await client.unsubscribe()
    expect(client.isReceiving()).toBe(false)
    await expect(declareExchange(place.rabbitmq.url, id, { passive: true })).rejects.toThrow('NOT_FOUND')
    await way.close()
  })

  it('reports a subscription that is refused', async () => {
    const { client, troubles } = application('c', {
      subscription: { type: 'Subscription', entities: 'none' },
    })
    await expect(client.subscribed).rejects.toThrow('400')
    expect(troubles).toHaveLength(1)
    await client.close()
  })

  describePeer('pika', 'the example in Python', () => {
    it('consumes its durable queue, also after a reset of its connection and while it was not running', async () => {
      const way = await wayTo(place)
      const { subscriptions } = await place.site.status()
      const first = startProgram(place, { entity: 'g', port: way.port })
      await first.receiving()
      await place.site.observe('g', 1)
      await expect.poll(first.values, patience).toEqual([1])
      await way.set('refused')
      await place.site.observe('g', 2)
      await way.set('none')
      await expect.poll(first.values, patience).toEqual([1, 2])
      await first.stop()
      await place.site.observe('g', 3)
      const second = startProgram(place, { entity: 'g', port: way.port })
      await expect.poll(second.values, patience).toEqual([3])
      await second.stop()
      const last = startProgram(place, { entity: 'g', port: way.port, more: ['--unsubscribe'] })
      expect(await last.exited).toBe(0)
      await expect.poll(async () => (await place.site.status()).subscriptions, patience).toBe(subscriptions)
      await way.close()
    })
  })

  it('passes each notification on once and in order, while RabbitMQ restarts and the orchestrator is killed', async () => {
    const refused = new Set<unknown>()
    const received: ApplicationMessage[] = []
    const { client } = application('f', {
      amqp: { url: place.rabbitmq.url, isDurable: true },
      onNotification(notification) {
        // The application fails once; the same notification arrives again.
        if (valuesOf(notification)[0] === 2 && refused.size === 0) throw new Error(`${refused.add(2).size}`)
        received.push(notification)
      },
    })
    const values = () => received.flatMap(valuesOf)
    const id = await client.subscribed
    const transient = application('f', { client: 'other' })
    expect(await transient.client.subscribed).toBe(id)
    for (let value = 1; value <= 3; value++) await place.site.observe('f', value)
    await expect.poll(values, patience).toEqual([1, 2, 3])
    await place.rabbitmq.kill()
    await place.site.observe('f', 4)
    await place.rabbitmq.start()
    await expect.poll(values, patience).toEqual([1, 2, 3, 4])
    await receiving(transient.client)
    await place.site.gateway().kill()
    await place.site.start()
    await place.site.observe('f', 5)
    await expect.poll(values, patience).toEqual([1, 2, 3, 4, 5])
    await expect.poll(() => transient.values().at(-1), patience).toBe(5)
    const repeated = { id: 'urn:n:9', type: 'Notification', subscriptionId: id, data: [observation(9)] }
    const last = { ...repeated, id: 'urn:n:10', data: [observation(10)] }
    await publish(place.rabbitmq.url, `${id}.durable`, repeated, repeated, last)
    await expect.poll(values, patience).toEqual([1, 2, 3, 4, 5, 9, 10])
    await transient.client.unsubscribe()
    await client.unsubscribe()
    expect(await place.site.unsubscribe(id, 'example')).toBe(404)
  })
}

const observation = (value: number) => ({
  id: observationId('f'),
  hasSimpleResult: { type: 'Property', value },
})

/** The numbers of the observation in a notification. */
function valuesOf({ data }: ApplicationMessage): unknown[] {
  return (data as Readonly<Record<string, { value?: unknown }>>[]).flatMap((entity) =>
    Object.entries(entity).flatMap(([name, { value }]) => (name.endsWith('hasSimpleResult') ? [value] : [])),
  )
}

const wayTo = ({ rabbitmq }: AmqpSite): Promise<FaultProxy> =>
  createFaultProxy({ target: { host: '127.0.0.1', port: Number(new URL(rabbitmq.url).port) } })

interface ProgramOptions {
  readonly entity: string
  /** RabbitMQ. */
  readonly port: number
  readonly more?: readonly string[]
}

/** The example in Python, with a durable queue. */
function startProgram({ site }: AmqpSite, { entity, port, more = [] }: ProgramOptions) {
  const path = new URL('../../../docs/examples/orchestrator/notifications.py', import.meta.url).pathname
  const options = [
    '--orchestrator',
    `${site.gateway().httpUrl}/orchestrator`,
    '--amqp',
    `amqp://127.0.0.1:${port}`,
  ]
  const subscription = ['--entity', observationId(entity), '--watch', watched, '--durable']
  // Debian's Python has Debian's pika.
  const child = spawn('/usr/bin/python3', [path, ...options, ...subscription, ...more])
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  const exited = once(child, 'exit').then(([code]) => {
    process.off('exit', end)
    return code as unknown
  })
  let printed = ''
  let reported = ''
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()))
  child.stderr.on('data', (data: Buffer) => (reported += data.toString()))
  return {
    exited,
    receiving: () => expect.poll(() => reported, patience).toContain('receiving'),
    values: () =>
      [...printed.matchAll(/^notification (.*)$/gm)].flatMap(([, text]) =>
        valuesOf(JSON.parse(text!) as ApplicationMessage),
      ),
    async stop(): Promise<void> {
      child.kill('SIGINT')
      await exited
    },
  }
}

/** Publishes messages to an exchange. */
async function publish(url: string, exchange: string, ...messages: object[]): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  for (const message of messages) channel.publish(exchange, '', Buffer.from(JSON.stringify(message)))
  await channel.waitForConfirms()
  await connection.close()
}
