/**
 * A client of another AMQP 0-9-1 broker that consumes queues, and bindings of exchanges by a durable queue of
 * its own. Its owner acknowledges each message; the broker delivers the others again.
 *
 * A lost connection is opened again after a pause that grows with each attempt. Each place has a channel of
 * its own, so a queue that does not exist affects no other one; it is tried again.
 */
import { hash } from 'node:crypto'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { limits } from '#base/limits/limits.ts'
import { assert } from '#base/register/errors.ts'
import type { SourceHandlers, SourcePlace } from '#contract'
import { type AmqpConnectionSettings, closeAmqp, connectAmqp } from './amqp-connection.ts'

export interface AmqpConsumerSettings extends AmqpConnectionSettings {
  /** First part of the names of its own queues; must be stable and unique at the broker. */
  readonly queuePrefix: string
}

export interface AmqpConsumer {
  /** Replaces the places. */
  follow(places: readonly SourcePlace[]): void
  readonly isConnected: () => boolean
  close(): Promise<void>
}

type StatedProperties = Readonly<Record<'messageId' | 'timestamp' | 'contentType', unknown>>

interface Consumer {
  readonly place: SourcePlace
  channel: Channel | undefined
  timer: NodeJS.Timeout | undefined
  failures: number
  isEnded: boolean
}

export async function openAmqpConsumer(
  handlers: SourceHandlers,
  settings: AmqpConsumerSettings,
): Promise<AmqpConsumer> {
  const consumers = new Map<string, Consumer>()
  let model: ChannelModel | undefined
  let isClosing = false

  const ending = new AbortController()
  const connection = await connectAmqp(settings, ending.signal)
  connection.on('connect', (opened: ChannelModel) => {
    model = opened
    handlers.connected()
    for (const consumer of consumers.values()) void consume(consumer)
  })
  connection.on('disconnect', () => {
    model = undefined
    for (const consumer of consumers.values()) consumer.channel = undefined
    if (!isClosing) handlers.lost()
  })
  const refused = (error: Error): void => {
    if (!isClosing) handlers.refused(error.message)
  }
  connection.on('connect-failed', refused)
  connection.on('error', refused)

  /** Consumes a place, unless this is so already, or there is no connection. */
  async function consume(consumer: Consumer): Promise<void> {
    clearTimeout(consumer.timer)
    const opened = model
    if (opened === undefined || consumer.isEnded || consumer.channel !== undefined) return
    let channel: Channel | undefined
    try {
      channel = await opened.createChannel()
      consumer.channel = channel
      channel.on('error', (error) => handlers.refused(error.message))
      channel.on('close', () => retry(consumer, channel))
      await channel.prefetch(limits.bridgeInFlightMax.value)
      const queue = await queueOf(channel, consumer.place)
      await channel.consume(queue, (message) => take(consumer, channel!, message))
      if (consumer.isEnded) await channel.close()
      else recovered(consumer)
    } catch (error) {
      if (channel === undefined) handlers.refused((error as Error).message)
      retry(consumer, channel)
    }
  }

  /** Notes that a place is consumed; after failures, the owner learns when no place fails any more. */
  function recovered(consumer: Consumer): void {
    if (consumer.failures === 0) return
    consumer.failures = 0
    if ([...consumers.values()].every(({ failures }) => failures === 0)) handlers.connected()
  }

  /** Consumes a place again after a pause, if it failed while the connection lasts. */
  function retry(consumer: Consumer, channel: Channel | undefined): void {
    if (consumer.channel !== channel) return
    consumer.channel = undefined
    if (consumer.isEnded || isClosing || model === undefined) return
    const pauseMs = Math.min(
      limits.bridgeRetryMsMax.value,
      limits.amqpRetryMs.value * 2 ** consumer.failures++,
    )
    clearTimeout(consumer.timer)
    consumer.timer = setTimeout(() => void consume(consumer), pauseMs)
  }

  const queueNameOf = ({ exchange, routingKey }: { exchange: string; routingKey: string }): string =>
    `${settings.queuePrefix}.${hash('sha1', JSON.stringify([exchange, routingKey])).slice(0, 12)}`

  /** The queue of a place; that of an exchange is created. */
  async function queueOf(channel: Channel, place: SourcePlace): Promise<string> {
    if ('queue' in place) return (await channel.checkQueue(place.queue)).queue
    assert('exchange' in place, 'a topic is a place of MQTT')
    const { queue } = await channel.assertQueue(queueNameOf(place), {
      durable: true,
      expires: limits.amqpQueueExpiryMs.value,
      maxLength: limits.amqpQueueMessages.value,
    })
    await channel.bindQueue(queue, place.exchange, place.routingKey)
    return queue
  }

  function take(consumer: Consumer, channel: Channel, message: ConsumeMessage | null): void {
    // The queue was deleted.
    if (message === null) {
      void channel.close().catch(() => retry(consumer, channel))
      return
    }
    if (isClosing || consumer.isEnded) return
    const { content, fields, properties } = message
    const stated: StatedProperties = properties
    const { messageId, timestamp, contentType } = stated
    const acknowledge = (): void => {
      if (consumer.channel === channel && !consumer.isEnded) channel.ack(message)
    }
    handlers.message(
      {
        places: [consumer.place],
        topic: fields.routingKey.replaceAll('.', '/'),
        payload: content,
        contentType: typeof contentType === 'string' ? contentType : undefined,
        isRetained: false,
        isResent: fields.redelivered,
        key: JSON.stringify([consumer.place, messageId, timestamp, fields.routingKey]),
      },
      acknowledge,
    )
  }

  /** Ends a place; the queue of an exchange is deleted, since it would grow. */
  async function end(consumer: Consumer): Promise<void> {
    consumer.isEnded = true
    clearTimeout(consumer.timer)
    const { channel, place } = consumer
    try {
      if ('exchange' in place) await channel?.deleteQueue(queueNameOf(place))
      await channel?.close()
    } catch {
      // The broker closed the channel; the queue expires.
    }
  }

  return Object.freeze({
    follow(places) {
      const wanted = new Map(places.map((place) => [JSON.stringify(place), place]))
      for (const [key, consumer] of consumers) {
        if (wanted.has(key)) continue
        consumers.delete(key)
        void end(consumer)
      }
      for (const [key, place] of wanted) {
        if (consumers.has(key)) continue
        const consumer = { place, channel: undefined, timer: undefined, failures: 0, isEnded: false }
        consumers.set(key, consumer)
        void consume(consumer)
      }
    },
    isConnected: () => model !== undefined,
    async close() {
      isClosing = true
      for (const { timer } of consumers.values()) clearTimeout(timer)
      const opened = model
      model = undefined
      await closeAmqp(connection, opened, ending)
    },
  } satisfies AmqpConsumer)
}
