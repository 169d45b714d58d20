/**
 * Ceilings of all plugins; part of the table in limits.ts.
 */

import { type Limit, limit } from '#base/limits/limit.ts'
import { clientLimits } from './client-limits.ts'
import { faultsLimits } from './faults-limits.ts'
import { indexingLimits } from './indexing-limits.ts'
import { noticesLimits } from './notices-limits.ts'
import { orchestratorLimits } from './orchestrator-limits.ts'
import { patternsLimits } from './patterns-limits.ts'
import { qualityLimits } from './quality-limits.ts'
import { rankingLimits } from './ranking-limits.ts'
import { searchLimits } from './search-limits.ts'
import { virtualLimits } from './virtual-limits.ts'

export const pluginLimits = {
  /** Page cache of the file of a plugin. Beyond it: read again. */
  pluginCacheKib: limit(512, 'KiB'),
  /**
   * A larger WAL of its file saves writes; 4 MB of disk. Beyond it: checkpoint; beyond twice as many, long
   * works wait.
   */
  pluginWalPages: limit(1000, 'pages'),
  /** A file that holds commits writes each page at most this often. Beyond it: commit. */
  pluginHoldMs: limit(10_000, 'ms'),
  /** Covers writes outside transactions. Beyond it: the next check. */
  pluginWalCheckMs: limit(10_000, 'ms'),
  /** Pause after the disk rejected a checkpoint. Beyond it: the next attempt. */
  pluginWalRetryMs: limit(10_000, 'ms'),
  /** A request of a plugin to a broker. Beyond it: a timeout error. */
  pluginRequestMs: limit(30_000, 'ms'),
  /** Subscriptions of components, per tenant, besides those of clients. Beyond it: 403. */
  followersMax: limit(1000, 'subscriptions'),
  /** Log rows that a follower processes at once. Beyond it: the next batch. */
  pluginBatchRows: limit(256, 'log rows'),
  /** Log rows in memory that a slower follower still wants. Beyond it: read from disk again. */
  pluginRowsKept: limit(512, 'log rows'),
  /** Size of these rows in the log. Beyond it: read from disk again. */
  pluginRowBytesKept: limit(524_288, 'B'),
  /** Time of reading log rows for a follower without yielding. Beyond it: the next batch. */
  pluginBatchMs: limit(1.5, 'ms'),
  /** Entities read without yielding. Beyond it: the next batch. */
  pluginBatchEntities: limit(64, 'entities'),
  /** Observations passed to a plugin at once; one commit is passed whole. Beyond it: the next slice. */
  pluginSliceObservations: limit(1000, 'observations'),
  /** Streams whose entity and attribute a follower caches. Beyond it: read again. */
  pluginStreamsKept: limit(20_000, 'streams'),
  /** Pause between two batches, so that changes are batched. Beyond it: the next batch. */
  pluginRestMs: limit(20, 'ms'),
  /** Attempts at a batch that throws, over about a minute. Beyond it: the plugin is disabled. */
  pluginAttemptsMax: limit(10, 'attempts'),
  /** Longest pause between two attempts; pauses double up to this. Beyond it: the next attempt. */
  pluginRetryMs: limit(10_000, 'ms'),
  /** Requests in progress while a plugin stops. Beyond it: ended without a response. */
  pluginDrainMs: limit(2000, 'ms'),
  /** Startup of a plugin. Beyond it: logged; startup continues. */
  pluginStartMs: limit(30_000, 'ms'),
  /** A request to a plugin that is starting. Beyond it: 503. */
  pluginWaitMs: limit(5000, 'ms'),
  /**
   * A WebSocket message to a plugin, such as a GraphQL document of 64 KB with variables. Beyond it:
   * connection closed.
   */
  componentMessageBytesMax: limit(256 * 1024, 'bytes'),
  /** A token is replaced this long before it expires. Beyond it: the next token. */
  identitySlackMs: limit(30_000, 'ms'),
  /** Schedules have minute resolution. Beyond it: the next check. */
  pluginTimetableMs: limit(15_000, 'ms'),
  /** Building a web page on first use, in a checkout. Beyond it: 503. */
  pageBuildMs: limit(60_000, 'ms'),
  ...clientLimits,
  ...indexingLimits,
  ...orchestratorLimits,
  ...noticesLimits,
  ...patternsLimits,
  ...faultsLimits,
  ...qualityLimits,
  ...rankingLimits,
  ...searchLimits,
  ...virtualLimits,
  /** Streams that a stream is compared with, the nearest of its label. Beyond it: left out. */
  pluginNeighboursMax: limit(8, 'streams'),
  /** Streams of a label looked at to find the nearest. Beyond it: left out. */
  pluginNeighbourScan: limit(1_000, 'streams'),
  /** Log lines of a plugin in memory, for its page. Beyond it: the oldest is dropped. */
  pluginLogLines: limit(500, 'lines'),
  /** Facts of such a line. Beyond it: cut. */
  pluginLogLineCharacters: limit(1000, 'characters'),
} as const satisfies Record<string, Limit>
