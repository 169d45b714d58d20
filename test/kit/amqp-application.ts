/** An application that consumes notifications from RabbitMQ, as the original Java clients do, and durable ones. */
import { type Channel, type ChannelModel, connect } from 'amqplib'

export interface ConsumedMessage {
  readonly body: string
  readonly exchange: string
  readonly routingKey: string
  readonly correlationId: unknown
}

export interface AmqpApplication {
  /** All messages since the start, in the order of their arrival. */
  readonly messages: readonly ConsumedMessage[]
  /** Values of the watched attribute, in order. */
  values(): number[]
  /** Settles when the connection is closed. */
  readonly closed: Promise<unknown>
  close(): Promise<void>
}

/** Binds a server-named exclusive queue to the exchange of a subscription. */
export async function consumeExchange(url: string, exchange: string): Promise<AmqpApplication> {
  return consuming(url, async (channel, take) => {
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await channel.bindQueue(queue, exchange, '')
    await channel.consume(queue, take, { noAck: true })
  })
}

/** Declares the exchange of a subscription as the original clients do, or only looks for it. */
export async function declareExchange(
  url: string,
  exchange: string,
  { passive = false } = {},
): Promise<void> {
  const connection = await connect(url)
  connection.on('error', () => undefined)
  try {
    const channel = await connection.createChannel()
    channel.on('error', () => undefined)
    if (passive) await channel.checkExchange(exchange)
    else await channel.assertExchange(exchange, 'fanout', { durable: false, autoDelete: false })
  } finally {
    await connection.close()
  }
}

/** Consumes a durable queue with acknowledgements, or a stream from its beginning. */
export async function consumeQueue(
  url: string,
  queue: string,
  { isStream = false, messages = [] as ConsumedMessage[] } = {},
): Promise<AmqpApplication> {
  return consuming(
    url,
    async (channel, take) => {
      await channel.prefetch(200)
      const options = isStream ? { arguments: { 'x-stream-offset': 'first' } } : {}
      await channel.consume(
        queue,
        (message) => {
          take(message)
          if (message !== null) channel.ack(message)
        },
        options,
      )
    },
    messages,
  )
}

type Take = (message: Parameters<Parameters<Channel['consume']>[1]>[0]) => void

async function consuming(
  url: string,
  begin: (channel: Channel, take: Take) => Promise<void>,
  messages: ConsumedMessage[] = [],
): Promise<AmqpApplication> {
  const connection: ChannelModel = await connect(url)
  connection.on('error', () => undefined)
  const closed = new Promise((resolve) => connection.once('close', resolve))
  const channel = await connection.createChannel()
  channel.on('error', () => undefined)
  await begin(channel, (message) => {
    if (message === null) return
    const { content, fields, properties } = message
    const { exchange, routingKey } = fields
    messages.push({ body: content.toString(), exchange, routingKey, correlationId: properties.correlationId })
  })
  return {
    messages,
    closed,
    values: () => messages.flatMap(({ body }) => valuesIn(body)),
    close: () => connection.close().catch(() => undefined),
  }
}

/** The numbers of `hasSimpleResult` in a notification, under its full or short name. */
function valuesIn(body: string): number[] {
  const { data } = JSON.parse(body) as { data: Readonly<Record<string, { readonly value?: unknown }>>[] }
  return data.flatMap((entity) =>
    Object.entries(entity).flatMap(([name, { value }]) =>
      name.endsWith('hasSimpleResult') ? [Number(value)] : [],
    ),
  )
}
