/**
 * Publishes to an AMQP 0-9-1 broker with publisher confirms. Messages and declarations have a channel each,
 * since the broker closes a channel after a declaration that it refuses. A channel for messages that ends
 * counts as a lost connection: all of its unconfirmed messages are `lost`.
 */
import type { Channel, ChannelModel, ConfirmChannel } from 'amqplib'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { AmqpDeclaration, ExchangeConnection, ExchangeHandlers } from '#contract'
import { type AmqpConnectionSettings, closeAmqp, connectAmqp } from './amqp-connection.ts'

export async function openAmqpPublisher(
  handlers: ExchangeHandlers,
  settings: AmqpConnectionSettings,
): Promise<ExchangeConnection> {
  const ending = new AbortController()
  const retryMsMax = limits.amqpPublishRetryMsMax.value
  const connection = await connectAmqp({ ...settings, retryMsMax }, ending.signal)
  let model: ChannelModel | undefined
  let messages: ConfirmChannel | undefined
  let declarations: Promise<Channel> | undefined
  let timer: NodeJS.Timeout | undefined
  let failures = 0
  let isClosing = false

  connection.on('connect', (opened: ChannelModel) => {
    model = opened
    void open(opened)
  })
  connection.on('disconnect', (error: Error) => {
    model = undefined
    declarations = undefined
    clearTimeout(timer)
    end(error.message)
  })
  const refused = (error: Error): void => {
    if (!isClosing) handlers.refused(error.message)
  }
  connection.on('connect-failed', refused)
  connection.on('error', refused)

  /** Opens the channel for messages. */
  async function open(opened: ChannelModel): Promise<void> {
    try {
      const channel = await opened.createConfirmChannel()
      let reason = 'the channel was closed'
      channel.on('error', (error: Error) => {
        reason = error.message
      })
      // Called before the callbacks of unconfirmed messages, which the library would call first.
      channel.prependListener('close', () => {
        if (messages === channel) end(reason)
        if (model === opened) retry(opened)
      })
      if (model !== opened || isClosing) return
      messages = channel
      handlers.connected()
    } catch (error) {
      handlers.refused((error as Error).message)
      if (model === opened) retry(opened)
    }
  }

  function retry(opened: ChannelModel): void {
    if (isClosing) return
    const pauseMs = Math.min(limits.amqpPublishRetryMsMax.value, limits.amqpRetryMs.value * 2 ** failures++)
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (model === opened) void open(opened)
    }, pauseMs)
  }

  function end(reason: string): void {
    if (messages === undefined) return
    messages = undefined
    if (!isClosing) handlers.lost(reason)
  }

  /** The channel for declarations; the next call opens another one if it was closed. */
  function declaring(): Promise<Channel> {
    if (model === undefined) throw unavailable('not connected')
    if (declarations !== undefined) return declarations
    const opening = model.createChannel().then((channel) => {
      channel.on('error', () => undefined)
      channel.on('close', () => {
        if (declarations === opening) declarations = undefined
      })
      return channel
    })
    opening.catch(() => {
      if (declarations === opening) declarations = undefined
    })
    declarations = opening
    return opening
  }

  async function onChannel(work: (channel: Channel) => Promise<unknown>): Promise<void> {
    try {
      await work(await declaring())
    } catch (error) {
      throw error instanceof GatewayError ? error : unavailable((error as Error).message, error)
    }
  }

  return Object.freeze({
    isConnected: () => messages !== undefined,
    publish({ exchange, routingKey, body, correlationId, isPersistent }, done) {
      const channel = messages
      if (channel === undefined) {
        setImmediate(done, 'lost')
        return
      }
      const properties = { correlationId, ...(isPersistent ? { persistent: true } : {}) }
      const answered = (error: Error | null): void => {
        if (error === null) failures = 0
        done(error === null ? 'confirmed' : messages === channel ? 'rejected' : 'lost')
      }
      try {
        channel.publish(exchange, routingKey, body, properties, answered)
      } catch {
        // The channel is being closed.
        setImmediate(done, 'lost')
      }
    },
    declare: (declaration) => onChannel((channel) => declareAt(channel, declaration)),
    remove: (name) =>
      onChannel((channel) =>
        'exchange' in name ? channel.deleteExchange(name.exchange) : channel.deleteQueue(name.queue),
      ),
    async close() {
      isClosing = true
      clearTimeout(timer)
      await closeAmqp(connection, model, ending)
    },
  } satisfies ExchangeConnection)
}

async function declareAt(channel: Channel, declaration: AmqpDeclaration): Promise<void> {
  if ('exchange' in declaration) {
    const { exchange, durable } = declaration
    await channel.assertExchange(exchange, 'fanout', { durable, autoDelete: false })
    return
  }
  const { queue, arguments: given, boundTo } = declaration
  await channel.assertQueue(queue, { durable: true, arguments: given })
  if (boundTo !== undefined) await channel.bindQueue(queue, boundTo, '')
}

const unavailable = (reason: string, cause?: unknown): GatewayError =>
  new GatewayError('peer.unavailable', `the AMQP server: ${reason}`, {}, cause)
