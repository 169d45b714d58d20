/**
 * Ceilings of tunnels, registrations and copies of other brokers; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const downwardLimits = {
  downwardTimeoutMs: limit(20_000, 'ms', 'A small request over a slow link', 'tried again after a pause'),
  tunnelsMax: limit(1000, 'connections', 'Gateways with an open tunnel, about 20 KB each', '503'),
  tunnelNamesMax: limit(5000, 'names', 'Reserved names of gateways, about 120 bytes each', '503'),
  tunnelRequestsInFlight: limit(64, 'requests', 'Each direction of one tunnel', '503, or a failed source'),
  tunnelBufferBytesMax: limit(
    16 * 1024 * 1024,
    'bytes',
    'Queued for sending through one tunnel',
    '503, or a failed source',
  ),
  tunnelMessageBytesMax: limit(
    9 * 1024 * 1024,
    'bytes',
    'The largest body and its headers',
    'connection closed',
  ),
  tunnelBeatMs: limit(
    20_000,
    'ms',
    'The centre notices a dead tunnel after three times this',
    'connection closed',
  ),
  tunnelStableMs: limit(
    60_000,
    'ms',
    'A tunnel that lasted this long counts as stable',
    'retry pauses are reset',
  ),
  tunnelPauseMsMax: limit(
    60_000,
    'ms',
    'Longest pause between two attempts to open a tunnel',
    'stays at this',
  ),
  tunnelRefusalBytesMax: limit(16 * 1024, 'bytes', 'Response of a centre that refuses a tunnel', 'not read'),
  tunnelCloseMs: limit(
    1000,
    'ms',
    'A peer that does not complete the closing handshake',
    'connection closed',
  ),
  downwardCloseMs: limit(1000, 'ms', 'A request without a response when the gateway stops', 'abandoned'),
  copyPage: limit(200, 'entities', 'Every known broker returns this many in one page', 'the next page'),
  copiesMax: limit(
    10_000,
    'entities',
    'Copies of one setting; their ids are in memory',
    'the last good copies stay',
  ),
  copyPauseMs: limit(2000, 'ms', 'Pause after a stream ended', 'the next stream begins'),
  copyNotificationsWaitingMax: limit(64, 'notifications', 'Received and not yet on disk', 'not read'),
} as const satisfies Record<string, Limit>
