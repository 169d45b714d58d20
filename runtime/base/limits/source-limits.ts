/**
 * The ceilings of context sources: registrations, what is asked of sources and passed on to them, and entity maps; part of the
 * table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const sourceLimits = {
  registrationsMax: limit(1000, 'registrations', 'Per tenant; each distributed request asks all', '403'),
  sourceSubscriptionsMax: limit(1000, 'subscriptions', 'Per tenant; each change asks all', '403'),
  entityMapsMax: limit(100, 'entity maps', 'Held in memory', 'the oldest is forgotten'),
  entityMapIdsMax: limit(10_000, 'entities', 'Of one entity map', '403'),
  entityMapsIdsMax: limit(100_000, 'entities', 'Of all entity maps; about 15 MB', 'the oldest is forgotten'),
  entityMapLifetimeMs: limit(300_000, 'ms', 'Where a client names none', 'the map is forgotten'),
  entityMapLifetimeMsMax: limit(86_400_000, 'ms', 'Held in memory', 'this one is taken'),
  sourceSocketsMax: limit(16, 'connections', 'To one context source', 'waits its turn'),
  sourceTimeoutMs: limit(5000, 'ms', 'A client waits meanwhile', 'the source counts as failed'),
  sourceTimeoutMsMax: limit(60_000, 'ms', 'What a registration may ask for at most', 'this one is taken'),
  sourceAnswerBytesMax: limit(8 * 1024 * 1024, 'bytes', 'Held in memory', 'the source counts as failed'),
  sourceItemsAtOnce: limit(4, 'requests', 'Items of a batch for a source without batches', 'waits'),
  sourceEntitiesMax: limit(1000, 'entities', 'Of one source, for one query', 'a warning'),
  linkedCandidatesMax: limit(
    10_000,
    'entities',
    'Judged one by one where q leads to what others may hold',
    '403',
  ),
  sourceWarningsMax: limit(16, 'warnings', 'Passed on from one answer of a source', 'the rest is left out'),
  warningsBytesMax: limit(8 * 1024, 'bytes', 'Clients take headers of 16 kB', 'the last says how many more'),
  sourceIdsMax: limit(100, 'ids', 'In one address, when entities are completed', 'the next request'),
  passedSubscriptionsMax: limit(10_000, 'subscriptions', 'Made at sources, held in memory', 'a log event'),
  passedOnRetryMs: limit(15_000, 'ms', 'A source that is away', 'tried again'),
  passedOnLeavingMs: limit(7 * 86_400_000, 'ms', 'A source that is away for ever', 'left there, a log event'),
  passedOnAtOnce: limit(16, 'requests', 'To make and unmake subscriptions at sources', 'it waits'),
  sourceInstancesMax: limit(100_000, 'instances', 'Of one source, for one query of histories', '206 or 403'),
  sourceCopiesBytesMax: limit(4 * 1024 * 1024, 'bytes', 'Last answers of all sources', 'least used leave'),
} as const satisfies Record<string, Limit>
