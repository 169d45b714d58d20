/**
 * The ceilings of what goes between this gateway and other brokers downward; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const downwardLimits = {
  downwardTimeoutMs: limit(20_000, 'ms', 'A small request over a slow link', 'tried again after a pause'),
  tunnelsMax: limit(1000, 'connections', 'Gateways that hold a tunnel open, about 20 KB each', '503'),
  tunnelNamesMax: limit(5000, 'names', 'Names of gateways that are taken, about 120 bytes each', '503'),
  tunnelRequestsInFlight: limit(64, 'requests', 'Each way through one tunnel', '503, or a failed source'),
  tunnelBufferBytesMax: limit(
    16 * 1024 * 1024,
    'bytes',
    'What waits to be sent through one tunnel',
    '503, or a failed source',
  ),
  tunnelMessageBytesMax: limit(
    9 * 1024 * 1024,
    'bytes',
    'A body of the largest size and its headers',
    'connection closed',
  ),
  tunnelBeatMs: limit(
    20_000,
    'ms',
    'How soon the centre notices a dead tunnel, three times at most',
    'connection ended',
  ),
  tunnelStableMs: limit(60_000, 'ms', 'A tunnel that lasted so long was a good one', 'pauses begin anew'),
  tunnelPauseMsMax: limit(60_000, 'ms', 'Between two tries to open a tunnel', 'stays there'),
  tunnelRefusalBytesMax: limit(16 * 1024, 'bytes', 'What a centre says when it refuses a tunnel', 'not read'),
  tunnelCloseMs: limit(1000, 'ms', 'Whoever does not say goodbye', 'connection ended'),
  downwardCloseMs: limit(1000, 'ms', 'A request that is not answered when the gateway stops', 'abandoned'),
  copyPage: limit(200, 'entities', 'What any broker gives in one page', 'the next page'),
  copiesMax: limit(10_000, 'entities', 'Of one setting; their ids live in memory', 'last good copies stay'),
  copyPauseMs: limit(2000, 'ms', 'A stream that ended', 'the next begins'),
  copyNotificationsWaitingMax: limit(64, 'notifications', 'Told and not yet on disk', 'not read'),
} as const satisfies Record<string, Limit>
