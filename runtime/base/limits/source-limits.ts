/**
 * Ceilings of context sources and of entity maps; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const sourceLimits = {
  registrationsMax: limit(1000, 'registrations', 'Per tenant; each distributed request checks all', '403'),
  sourceSubscriptionsMax: limit(1000, 'subscriptions', 'Per tenant; each change checks all', '403'),
  entityMapsMax: limit(100, 'entity maps', 'Held in memory', 'the oldest is deleted'),
  entityMapIdsMax: limit(10_000, 'entities', 'Entities of one entity map', '403'),
  entityMapsIdsMax: limit(
    100_000,
    'entities',
    'Entities of all entity maps; about 15 MB',
    'the oldest is deleted',
  ),
  entityMapLifetimeMs: limit(300_000, 'ms', 'Applies when a client requests none', 'the map is deleted'),
  entityMapLifetimeMsMax: limit(86_400_000, 'ms', 'Held in memory', 'lowered to this'),
  sourceSocketsMax: limit(16, 'connections', 'To one context source', 'waits'),
  sourceTimeoutMs: limit(5000, 'ms', 'The client waits meanwhile', 'the source counts as failed'),
  sourceTimeoutMsMax: limit(
    60_000,
    'ms',
    'Longest timeout that a registration may request',
    'lowered to this',
  ),
  sourceAnswerBytesMax: limit(8 * 1024 * 1024, 'bytes', 'Held in memory', 'the source counts as failed'),
  sourceItemsAtOnce: limit(
    4,
    'requests',
    'Concurrent requests for the items of a batch, to a source without batches',
    'waits',
  ),
  sourceEntitiesMax: limit(1000, 'entities', 'Entities of one source for one query', 'a warning'),
  linkedCandidatesMax: limit(
    10_000,
    'entities',
    'Evaluated one by one where q follows relationships to entities of other brokers',
    '403',
  ),
  sourceWarningsMax: limit(
    16,
    'warnings',
    'Warnings forwarded from one response of a source',
    'the rest is omitted',
  ),
  warningsBytesMax: limit(
    8 * 1024,
    'bytes',
    'Clients accept headers of 16 kB',
    'the last one counts the omitted ones',
  ),
  sourceIdsMax: limit(100, 'ids', 'Ids in one URL when entities are completed', 'the next request'),
  passedSubscriptionsMax: limit(
    10_000,
    'subscriptions',
    'Subscriptions created at sources, held in memory',
    'a log event',
  ),
  passedOnRetryMs: limit(15_000, 'ms', 'An unreachable source', 'tried again'),
  passedOnLeavingMs: limit(
    7 * 86_400_000,
    'ms',
    'A source that never becomes reachable',
    'left there, a log event',
  ),
  passedOnAtOnce: limit(
    16,
    'requests',
    'Concurrent requests that create and delete subscriptions at sources',
    'waits',
  ),
  sourceInstancesMax: limit(
    100_000,
    'instances',
    'Instances of one source for one temporal query',
    '206 or 403',
  ),
  sourceCopiesBytesMax: limit(
    4 * 1024 * 1024,
    'bytes',
    'Last responses of all sources',
    'least used are evicted',
  ),
} as const satisfies Record<string, Limit>
