/**
 * Ceilings of the delivery of notifications; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const deliveryLimits = {
  deliveriesPerEndpointMax: limit(
    200_000,
    'deliveries',
    'About 20 MB on disk',
    'oldest is dropped and counted',
  ),
  deliveriesWindow: limit(512, 'deliveries', 'Held in memory per endpoint', 'read later'),
  deliveriesWindowBytes: limit(512 * 1024, 'bytes', 'Bounds that window by size', 'read later'),
  deliveriesInFlightMax: limit(16, 'requests', 'Concurrent requests per endpoint', 'waits'),
  deliveriesInFlightHostMax: limit(
    32,
    'requests',
    'Concurrent requests to all endpoints of one host and port',
    'waits',
  ),
  deliveriesInFlightTotalMax: limit(128, 'requests', 'Sockets and bodies in memory', 'waits'),
  deliveryTurnMs: limit(
    5,
    'ms',
    'Notifications are rendered this long before other requests run',
    'the next turn',
  ),
  deliveriesAnnouncedAtOnce: limit(
    256,
    'deliveries',
    'Deliveries of one commit handed to their endpoints at once',
    'the next turn',
  ),
  deliverySettleMax: limit(
    256,
    'deliveries',
    'Deliveries settled by one work',
    'settled at once instead of after deliverySettleMs',
  ),
  deliverySettleMs: limit(
    1000,
    'ms',
    'Delays settling to save flash writes; a crash re-sends these deliveries',
    'settled',
  ),
  deliveryPoisonTries: limit(
    5,
    'tries',
    'Attempts answered with 4xx, which repeating hardly changes',
    'dead letter',
  ),
  deadLettersMax: limit(10_000, 'deliveries', 'Kept for inspection', 'oldest is dropped'),
  deliveryTargetsMax: limit(1000, 'URIs', 'Parsed endpoint URIs cached; 1 MB', 'the cache is cleared'),
  deliveryBytesMax: limit(2 * 1024 * 1024, 'bytes', 'A whole entity and its context', 'dead letter'),
  deliveryAnswerBytesMax: limit(64 * 1024, 'bytes', 'Responses are read and discarded', 'connection closed'),
  deliveryConnectMs: limit(3000, 'ms', 'An unreachable host', 'the endpoint is down'),
  deliveryTimeoutMs: limit(10_000, 'ms', 'An endpoint that does not respond', 'counts as failed'),
  deliveryTimeoutMsMax: limit(
    120_000,
    'ms',
    'Longest timeout that a subscription may request',
    'lowered to this',
  ),
  streamBufferBytes: limit(
    256 * 1024,
    'bytes',
    'Sent to a streaming consumer and not yet written to its socket',
    'waits on disk',
  ),
  streamMessageBytesMax: limit(4096, 'bytes', 'A confirmation over WebSocket', 'connection closed'),
  streamBeatMs: limit(15_000, 'ms', 'Keeps a silent stream open through NAT', 'a keep-alive is sent'),
  streamRetryMs: limit(
    2000,
    'ms',
    'Reconnection delay sent to consumers of Server-Sent Events',
    'they reconnect',
  ),
  mqttTargetsMax: limit(64, 'brokers', 'Connections kept for notifications', 'idle ones are closed'),
  mqttIdleMs: limit(30_000, 'ms', 'An unused connection for notifications', 'closed'),
  deliveryBackoffMsMax: limit(60_000, 'ms', 'Longest pause after a failed attempt', 'stays at this'),
  deliveryPauseMsMax: limit(3_600_000, 'ms', 'Longest Retry-After or cooldown obeyed', 'lowered to this'),
} as const satisfies Record<string, Limit>
