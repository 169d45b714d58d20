/**
 * Ceilings of all plugins; part of the table in limits.ts.
 */
import { indexingLimits } from './indexing-limits.ts'
import { type Limit, limit } from './limit.ts'
import { rankingLimits } from './ranking-limits.ts'
import { searchLimits } from './search-limits.ts'

export const pluginLimits = {
  pluginCacheKib: limit(2048, 'KiB', 'Page cache of the file of a plugin', 'read again'),
  pluginWalPages: limit(
    1000,
    'pages',
    'A larger WAL of its file saves writes; 4 MB of disk',
    'checkpoint; beyond twice as many, long works wait',
  ),
  pluginWalCheckMs: limit(10_000, 'ms', 'Covers writes outside transactions', 'the next check'),
  pluginWalRetryMs: limit(10_000, 'ms', 'Pause after the disk rejected a checkpoint', 'the next attempt'),
  pluginRequestMs: limit(30_000, 'ms', 'A request of a plugin to a broker', 'a timeout error'),
  followersMax: limit(
    1000,
    'subscriptions',
    'Subscriptions of components, per tenant, besides those of clients',
    '403',
  ),
  pluginBatchRows: limit(256, 'log rows', 'Log rows that a follower processes at once', 'the next batch'),
  pluginBatchMs: limit(
    1.5,
    'ms',
    'Time of reading log rows for a follower without yielding',
    'the next batch',
  ),
  pluginBatchEntities: limit(64, 'entities', 'Entities read without yielding', 'the next batch'),
  pluginSliceObservations: limit(
    1000,
    'observations',
    'Observations passed to a plugin at once; one commit is passed whole',
    'the next slice',
  ),
  pluginStreamsKept: limit(
    20_000,
    'streams',
    'Streams whose entity and attribute a follower caches',
    'read again',
  ),
  pluginRestMs: limit(20, 'ms', 'Pause between two batches, so that changes are batched', 'the next batch'),
  pluginAttemptsMax: limit(
    10,
    'attempts',
    'Attempts at a batch that throws, over about a minute',
    'quarantined',
  ),
  pluginRetryMs: limit(
    10_000,
    'ms',
    'Longest pause between two attempts; pauses double up to this',
    'the next attempt',
  ),
  pluginDrainMs: limit(2000, 'ms', 'Requests in progress while a plugin stops', 'ended without a response'),
  pluginStartMs: limit(30_000, 'ms', 'Startup of a plugin', 'logged; startup continues'),
  pluginWaitMs: limit(5000, 'ms', 'A request to a plugin that is starting', '503'),
  identitySlackMs: limit(30_000, 'ms', 'A token is replaced this long before it expires', 'the next token'),
  pluginTimetableMs: limit(15_000, 'ms', 'Schedules have minute resolution', 'the next check'),
  ...indexingLimits,
  ...rankingLimits,
  ...searchLimits,
} as const satisfies Record<string, Limit>
