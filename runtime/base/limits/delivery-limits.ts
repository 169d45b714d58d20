/**
 * Ceilings of the delivery of notifications; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const deliveryLimits = {
  /** About 20 MB on disk. Beyond it: oldest is dropped and counted. */
  deliveriesPerEndpointMax: limit(200_000, 'deliveries'),
  /** Held in memory per endpoint. Beyond it: read later. */
  deliveriesWindow: limit(512, 'deliveries'),
  /** Bounds that window by size. Beyond it: read later. */
  deliveriesWindowBytes: limit(512 * 1024, 'bytes'),
  /** Concurrent requests per endpoint. Beyond it: waits. */
  deliveriesInFlightMax: limit(16, 'requests'),
  /** Concurrent requests to all endpoints of one host and port. Beyond it: waits. */
  deliveriesInFlightHostMax: limit(32, 'requests'),
  /** Sockets and bodies in memory. Beyond it: waits. */
  deliveriesInFlightTotalMax: limit(128, 'requests'),
  /** Notifications are rendered this long before other requests run. Beyond it: the next turn. */
  deliveryTurnMs: limit(5, 'ms'),
  /** Deliveries of one commit handed to their endpoints at once. Beyond it: the next turn. */
  deliveriesAnnouncedAtOnce: limit(256, 'deliveries'),
  /** Deliveries settled by one work. Beyond it: settled at once instead of after deliverySettleMs. */
  deliverySettleMax: limit(256, 'deliveries'),
  /** Delays settling to save flash writes; a crash re-sends these deliveries. Beyond it: settled. */
  deliverySettleMs: limit(1000, 'ms'),
  /** Attempts answered with 4xx, which repeating hardly changes. Beyond it: dead letter. */
  deliveryPoisonTries: limit(5, 'tries'),
  /** Kept for inspection. Beyond it: oldest is dropped. */
  deadLettersMax: limit(10_000, 'deliveries'),
  /** Parsed endpoint URIs cached; 1 MB. Beyond it: the cache is cleared. */
  deliveryTargetsMax: limit(1000, 'URIs'),
  /** A whole entity and its context. Beyond it: dead letter. */
  deliveryBytesMax: limit(2 * 1024 * 1024, 'bytes'),
  /** Responses are read and discarded. Beyond it: connection closed. */
  deliveryAnswerBytesMax: limit(64 * 1024, 'bytes'),
  /** An unreachable host. Beyond it: the endpoint is down. */
  deliveryConnectMs: limit(3000, 'ms'),
  /** An endpoint that does not respond. Beyond it: counts as failed. */
  deliveryTimeoutMs: limit(10_000, 'ms'),
  /** Longest timeout that a subscription may request. Beyond it: lowered to this. */
  deliveryTimeoutMsMax: limit(120_000, 'ms'),
  /** Sent to a streaming consumer and not yet written to its socket. Beyond it: waits on disk. */
  streamBufferBytes: limit(256 * 1024, 'bytes'),
  /** A confirmation over WebSocket. Beyond it: connection closed. */
  streamMessageBytesMax: limit(4096, 'bytes'),
  /** Keeps a silent stream open through NAT. Beyond it: a keep-alive is sent. */
  streamBeatMs: limit(15_000, 'ms'),
  /** Reconnection delay sent to consumers of Server-Sent Events. Beyond it: they reconnect. */
  streamRetryMs: limit(2000, 'ms'),
  /** Connections kept for notifications. Beyond it: idle ones are closed. */
  mqttTargetsMax: limit(64, 'brokers'),
  /** An unused connection for notifications. Beyond it: closed. */
  mqttIdleMs: limit(30_000, 'ms'),
  /** Longest pause after a failed attempt. Beyond it: stays at this. */
  deliveryBackoffMsMax: limit(60_000, 'ms'),
  /** Longest Retry-After or cooldown obeyed. Beyond it: lowered to this. */
  deliveryPauseMsMax: limit(3_600_000, 'ms'),
  /** First pause before connecting to an AMQP source again; it doubles. Beyond it: `bridgeRetryMsMax`. */
  amqpRetryMs: limit(1000, 'ms'),
  /** Response of an AMQP server to the end of a connection. Beyond it: not waited for. */
  amqpCloseMs: limit(2000, 'ms'),
  /** A queue that this gateway declared at an AMQP source and does not consume. Beyond it: deleted there. */
  amqpQueueExpiryMs: limit(7 * 86_400_000, 'ms'),
  /** Messages in such a queue. Beyond it: the oldest is dropped. */
  amqpQueueMessages: limit(100_000, 'messages'),
} as const satisfies Record<string, Limit>
