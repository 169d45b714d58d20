/**
 * Message brokers of others (MQTT, AMQP 0-9-1) as sources of data for plugins. A plugin acknowledges each
 * message when it has stored what it needs of it; an unacknowledged message is delivered again.
 */
import type { Decoded, Frame } from './pipeline.ts'

/** Where messages come from at a broker: an MQTT topic filter, a queue, or a binding of an exchange. */
export type SourcePlace =
  | { readonly topic: string }
  | { readonly queue: string }
  | { readonly exchange: string; readonly routingKey: string }

/** Address and credentials of a message broker. */
export interface SourceBroker {
  /** mqtt, mqtts, amqp or amqps; the path of an AMQP address is its virtual host. */
  readonly url: string
  readonly username?: string | undefined
  /** Its first line is the password. Mode 0600. */
  readonly passwordFile?: string | undefined
  /** PEM file of its certificate authorities, in addition to those of the system. */
  readonly caFile?: string | undefined
}

export interface SourceMessage {
  /** The followed places that it came from; none if the session still has a place of earlier. */
  readonly places: readonly SourcePlace[]
  /** MQTT topic; for AMQP the routing key, its dots as slashes. */
  readonly topic: string
  readonly payload: Uint8Array
  /** Media type, if the message states it. */
  readonly contentType: string | undefined
  /** True for an old message that an MQTT broker retained. */
  readonly isRetained: boolean
  /** Whether it may have been delivered before. */
  readonly isResent: boolean
  /** Text that an earlier delivery of the same message also had. */
  readonly key: string
}

export interface SourceHandlers {
  /** Takes a message, and calls `acknowledge` once it is stored; else it is delivered again. */
  message(message: SourceMessage, acknowledge: () => void): void
  /** Connected, or all places that were refused are followed now. */
  connected(): void
  lost(): void
  /** The connection or a place was refused, or cannot be reached; this is retried. */
  refused(reason: string): void
}

/** A connection that is opened again whenever it is lost. */
export interface SourceConnection {
  /** Replaces the places. */
  follow(places: readonly SourcePlace[]): void
  readonly isConnected: () => boolean
  /** Disconnects; the broker keeps unacknowledged messages for the next connection. */
  close(): Promise<void>
}

export interface SourcesPort {
  /** Whether the settings allow requests to this machine (`outbound.allowLoopback`). */
  readonly allowsLoopback: boolean
  /**
   * Opens a connection. Session and queues at the broker are those of this gateway and plugin, so that it
   * gets what arrived while it was away. The caller decides which brokers are allowed.
   * @throws config.invalid for an unreadable file.
   */
  open(broker: SourceBroker, handlers: SourceHandlers): Promise<SourceConnection>
  /**
   * Decodes a payload by the firmware bridge of its media type, or of its topic by the settings of `bridges`;
   * any other payload as plain text, a number or JSON with each member as a field. Never throws.
   */
  decode(frame: Frame): Decoded
}
