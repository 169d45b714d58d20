/**
 * Ceilings of context sources and of entity maps; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const sourceLimits = {
  /** Per tenant; each distributed request checks all. Beyond it: 403. */
  registrationsMax: limit(1000, 'registrations'),
  /** Per tenant; each change checks all. Beyond it: 403. */
  sourceSubscriptionsMax: limit(1000, 'subscriptions'),
  /** Held in memory. Beyond it: the oldest is deleted. */
  entityMapsMax: limit(100, 'entity maps'),
  /** Entities of one entity map. Beyond it: 403. */
  entityMapIdsMax: limit(10_000, 'entities'),
  /** Entities of all entity maps; about 15 MB. Beyond it: the oldest is deleted. */
  entityMapsIdsMax: limit(100_000, 'entities'),
  /** Applies when a client requests none. Beyond it: the map is deleted. */
  entityMapLifetimeMs: limit(300_000, 'ms'),
  /** Held in memory. Beyond it: lowered to this. */
  entityMapLifetimeMsMax: limit(86_400_000, 'ms'),
  /** To one context source. Beyond it: waits. */
  sourceSocketsMax: limit(16, 'connections'),
  /** The client waits meanwhile. Beyond it: the source counts as failed. */
  sourceTimeoutMs: limit(5000, 'ms'),
  /** Longest timeout that a registration may request. Beyond it: lowered to this. */
  sourceTimeoutMsMax: limit(60_000, 'ms'),
  /** Held in memory. Beyond it: the source counts as failed. */
  sourceAnswerBytesMax: limit(8 * 1024 * 1024, 'bytes'),
  /** Concurrent requests for the items of a batch, to a source without batches. Beyond it: waits. */
  sourceItemsAtOnce: limit(4, 'requests'),
  /** Entities of one source for one query. Beyond it: a warning. */
  sourceEntitiesMax: limit(1000, 'entities'),
  /** Evaluated one by one where q follows relationships to entities of other brokers. Beyond it: 403. */
  linkedCandidatesMax: limit(10_000, 'entities'),
  /** Warnings forwarded from one response of a source. Beyond it: the rest is omitted. */
  sourceWarningsMax: limit(16, 'warnings'),
  /** Clients accept headers of 16 kB. Beyond it: the last one counts the omitted ones. */
  warningsBytesMax: limit(8 * 1024, 'bytes'),
  /** Ids in one URL when entities are completed. Beyond it: the next request. */
  sourceIdsMax: limit(100, 'ids'),
  /** Subscriptions created at sources, held in memory. Beyond it: a log event. */
  forwardedSubscriptionsMax: limit(10_000, 'subscriptions'),
  /** An unreachable source. Beyond it: tried again. */
  forwardingRetryMs: limit(15_000, 'ms'),
  /** A source that never becomes reachable. Beyond it: left there, a log event. */
  forwardingLeavingMs: limit(7 * 86_400_000, 'ms'),
  /** Concurrent requests that create and delete subscriptions at sources. Beyond it: waits. */
  forwardingAtOnce: limit(16, 'requests'),
  /** Instances of one source for one temporal query. Beyond it: 206 or 403. */
  sourceInstancesMax: limit(100_000, 'instances'),
  /** Last responses of all sources. Beyond it: least used are evicted. */
  sourceCopiesBytesMax: limit(4 * 1024 * 1024, 'bytes'),
} as const satisfies Record<string, Limit>
