/**
 * Names and properties of what the orchestrator declares at the AMQP server for a subscription, and the
 * messages it publishes there. Pure.
 *
 * The transient exchange is that of the original: fanout, named by the subscription id, neither durable nor
 * auto-deleted. A durable exchange has a quorum queue for each client that wants one. Clients read a stream
 * from any offset.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { AmqpDeclaration, AmqpMessage } from '#contract'
import type { ClientDelivery } from '#plugins/orchestrator/subscriptions/subscription-form.ts'

/** Clients of a subscription, and how each is notified. */
export type ClientDeliveries = ReadonlyMap<string, { readonly delivery: ClientDelivery }>

export type AmqpName = { readonly exchange: string } | { readonly queue: string }

const durableOf = (id: string): string => `${id}.durable`
const streamOf = (id: string): string => `${id}.replay`
const queueOf = (id: string, client: string): string =>
  `${durableOf(id)}.${hash('sha1', client).slice(0, 16)}`

/** The queue that a client consumes; undefined if it binds one of its own. */
export function clientQueueOf(id: string, client: string, delivery: ClientDelivery): string | undefined {
  if (delivery === 'transient') return undefined
  return delivery === 'durable' ? queueOf(id, client) : streamOf(id)
}

/** Kinds of delivery of a subscription; the transient exchange always exists. */
export function deliveriesOf(clients: ClientDeliveries): readonly ClientDelivery[] {
  const wanted = new Set<ClientDelivery>(['transient'])
  for (const { delivery } of clients.values()) wanted.add(delivery)
  return [...wanted]
}

export const declarationsOf = (id: string, clients: ClientDeliveries): readonly AmqpDeclaration[] =>
  deliveriesOf(clients).flatMap((delivery) => declarationsFor(id, clients, delivery))

/** Declarations of one kind of delivery of a subscription. */
export function declarationsFor(
  id: string,
  clients: ClientDeliveries,
  delivery: ClientDelivery,
): readonly AmqpDeclaration[] {
  if (delivery === 'transient') return [{ exchange: id, durable: false }]
  if (delivery === 'replay') return [{ queue: streamOf(id), arguments: streamArguments() }]
  const durable = [...clients].filter(([, client]) => client.delivery === 'durable')
  return [
    { exchange: durableOf(id), durable: true },
    ...durable.map(([client]) => ({
      queue: queueOf(id, client),
      arguments: queueArguments(),
      boundTo: durableOf(id),
    })),
  ]
}

export const nameOf = (declaration: AmqpDeclaration): AmqpName =>
  'exchange' in declaration ? { exchange: declaration.exchange } : { queue: declaration.queue }

/** A full queue rejects, so that notifications wait in the outbox instead of being dropped there. */
const queueArguments = () => ({
  'x-queue-type': 'quorum',
  'x-overflow': 'reject-publish',
  'x-max-length': limits.orchestratorQueueMessages.value,
  'x-max-length-bytes': limits.orchestratorQueueBytes.value,
})

/** A server deletes whole segments of a stream. */
const streamArguments = () => ({
  'x-queue-type': 'stream',
  'x-max-length-bytes': limits.orchestratorStreamBytes.value,
  'x-stream-max-segment-size-bytes': Math.ceil(limits.orchestratorStreamBytes.value / 16),
})

export function amqpMessageOf(id: string, delivery: ClientDelivery, body: Buffer): AmqpMessage {
  const message = { correlationId: id, body }
  if (delivery === 'transient') return { ...message, exchange: id, routingKey: '', isPersistent: false }
  if (delivery === 'durable')
    return { ...message, exchange: durableOf(id), routingKey: '', isPersistent: true }
  return { ...message, exchange: '', routingKey: streamOf(id), isPersistent: true }
}
