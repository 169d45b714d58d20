/** Publishing to an AMQP 0-9-1 broker with confirms, declarations there, and publishing by MQTT. */
import type { Json } from './pipeline.ts'
import type { SourceBroker } from './sources-port.ts'

/** A fanout exchange, or a queue with its arguments. */
export type AmqpDeclaration =
  | { readonly exchange: string; readonly durable: boolean }
  | {
      readonly queue: string
      readonly arguments: Readonly<Record<string, Json>>
      /** The exchange that it is bound to, with an empty key. */
      readonly boundTo?: string | undefined
    }

export interface AmqpMessage {
  /** '' is the default exchange, whose routing keys are names of queues. */
  readonly exchange: string
  readonly routingKey: string
  readonly body: Buffer
  readonly correlationId: string
  /** Whether durable queues write it to disk. */
  readonly isPersistent: boolean
}

/** `rejected`: a queue is full. `lost`: the channel ended first, so nobody knows. */
export type PublishOutcome = 'confirmed' | 'rejected' | 'lost'

export interface ExchangeHandlers {
  /** Connected. Exchanges and queues that are not durable may have been deleted. */
  connected(): void
  /** The channel ended; called before the outcomes of its unconfirmed messages. */
  lost(reason: string): void
  /** No connection could be made; this is retried. */
  refused(reason: string): void
}

export interface ExchangeConnection {
  readonly isConnected: () => boolean
  /** Calls `done` once, not before it returns. Messages are sent in the order of the calls. */
  publish(message: AmqpMessage, done: (outcome: PublishOutcome) => void): void
  /** Declares; one after the other. @throws peer.unavailable with the reason of the broker. */
  declare(declaration: AmqpDeclaration): Promise<void>
  /** Deletes an exchange or a queue; one that does not exist counts as deleted. @throws peer.unavailable */
  remove(name: { readonly exchange: string } | { readonly queue: string }): Promise<void>
  close(): Promise<void>
}

/** @throws config.invalid for an unreadable file. */
export type OpenExchanges = (broker: SourceBroker, handlers: ExchangeHandlers) => Promise<ExchangeConnection>

/** Publishes with QoS 1. Calls `done` when it is stored for all sessions, or could not be stored. */
export type PublishOwn = (topic: string, payload: Uint8Array, done: (isStored: boolean) => void) => void
