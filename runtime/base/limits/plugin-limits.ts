/**
 * The ceilings of plugins, whatever they do; part of the table in limits.ts.
 */
import { indexingLimits } from './indexing-limits.ts'
import { type Limit, limit } from './limit.ts'
import { rankingLimits } from './ranking-limits.ts'
import { searchLimits } from './search-limits.ts'

export const pluginLimits = {
  pluginCacheKib: limit(2048, 'KiB', 'Pages of its file that a plugin keeps in memory', 'read again'),
  pluginWalPages: limit(
    1000,
    'pages',
    'A longer log of its file saves writes; 4 MB of disk',
    'copied back; beyond twice as many long works wait',
  ),
  pluginWalCheckMs: limit(10_000, 'ms', 'For what is written without a transaction', 'the next look'),
  pluginWalRetryMs: limit(10_000, 'ms', 'After a disk refused to take such a log', 'the next attempt'),
  pluginRequestMs: limit(30_000, 'ms', 'What a plugin asks of a broker', 'told as a timeout'),
  followersMax: limit(1000, 'subscriptions', 'Of components, per tenant, beside those of clients', '403'),
  pluginBatchRows: limit(256, 'log rows', 'What a follower takes at once', 'the next batch'),
  pluginBatchMs: limit(1.5, 'ms', 'Of reading log rows for a follower, in one piece', 'the next batch'),
  pluginBatchEntities: limit(64, 'entities', 'Read without a pause', 'the next batch'),
  pluginStreamsKept: limit(20_000, 'streams', 'Whose entity and attribute a follower knows', 'read again'),
  pluginRestMs: limit(20, 'ms', 'Between two batches, so that changes come together', 'the next batch'),
  pluginAttemptsMax: limit(10, 'attempts', 'Of a batch that throws, over about a minute', 'quarantined'),
  pluginRetryMs: limit(10_000, 'ms', 'Between two attempts, doubling up to this', 'the next attempt'),
  pluginDrainMs: limit(2000, 'ms', 'What a plugin that ends still works on', 'ended without an answer'),
  pluginStartMs: limit(30_000, 'ms', 'What a plugin takes to start', 'told, and waited for'),
  pluginWaitMs: limit(5000, 'ms', 'A request for a plugin that starts', '503'),
  identitySlackMs: limit(30_000, 'ms', 'A token is not used to its last moment', 'the next token'),
  pluginTimetableMs: limit(15_000, 'ms', 'A timetable goes by the minute', 'the next look'),
  ...indexingLimits,
  ...rankingLimits,
  ...searchLimits,
} as const satisfies Record<string, Limit>
