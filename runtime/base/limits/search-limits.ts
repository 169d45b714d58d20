/**
 * Ceilings of the search plugin; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const searchLimits = {
  searchDocumentBytes: limit(64 * 1024, 'bytes', 'A GraphQL document; that of the IDE has 3,000', 'rejected'),
  searchDocumentTokens: limit(
    4000,
    'tokens',
    'Validation time grows faster than the length of a document',
    'rejected',
  ),
  searchDepthMax: limit(12, 'levels', 'Each level may multiply the reads', 'rejected'),
  searchCostMax: limit(
    100_000,
    'objects',
    'Objects that a query may request, with every list at its limit',
    'rejected',
  ),
  searchValuesMax: limit(
    200_000,
    'values',
    'Fields of all objects that a query may request; rendered in about 0.5 s',
    'rejected',
  ),
  searchListCost: limit(10, 'objects', 'Assumed length of a nested list', 'a longer one costs more reads'),
  searchReadsMax: limit(400, 'requests', 'Requests to the broker for one operation', 'a GraphQL error'),
  searchWarningsMax: limit(
    20,
    'warnings',
    'Warnings in the extensions of one response',
    'the rest is omitted',
  ),
  searchEntitiesMax: limit(20_000, 'entities', 'Read for one operation; about 40 MB', 'a GraphQL error'),
  searchPageDefault: limit(
    50,
    'entities',
    'Same as the original broker, when limit is absent or 0',
    'offset',
  ),
  searchPageMax: limit(10_000, 'entities', 'Bounds one response', 'rejected'),
  searchPageEntities: limit(1000, 'entities', 'Largest page of a broker', 'the next request'),
  searchFirstPage: limit(
    100,
    'entities',
    'First page of an inner criterion, since few matches may suffice',
    'the next page',
  ),
  searchIdsPerRead: limit(
    100,
    'ids',
    'Ids in one request; URLs above 8 KB are not portable',
    'the next request',
  ),
  searchQueryCharacters: limit(
    5000,
    'characters',
    'Bounds the ids of one request by characters',
    'the next request',
  ),
  searchIdsMax: limit(1000, 'ids', 'Ids in one argument', 'rejected'),
  searchPartsMax: limit(
    50,
    'requests',
    'Requests for each of several links on one level with many matches',
    'a GraphQL error',
  ),
  searchTextCharacters: limit(64, 'characters', 'Length of a text search; it becomes a pattern', 'rejected'),
  searchDocumentsKept: limit(
    50,
    'documents',
    'Parsed and validated documents cached by text',
    'least recently used is evicted',
  ),
  searchKeptCharacters: limit(8192, 'characters', 'Length of a cached document', 'parsed each time'),
  searchOperationsMax: limit(32, 'operations', 'Concurrent operations; each holds entities', '503'),
  searchOperationMs: limit(30_000, 'ms', 'The client waits meanwhile', 'a GraphQL error'),
  searchSubscriptionsMax: limit(
    100,
    'subscriptions',
    'Each reads the entities that changed',
    'a GraphQL error',
  ),
  searchWaitingMax: limit(
    1000,
    'entities',
    'Changed and not yet sent to a client',
    'its subscription ends with an error',
  ),
  searchEventsHeld: limit(8, 'events', 'Events not yet read by an SSE client', 'the next one waits'),
  searchSocketsMax: limit(64, 'connections', 'WebSockets of GraphQL', 'closed with 1013'),
  searchSchemaFiles: limit(64, 'files', 'Files in the folder of schemas', 'the rest is ignored and logged'),
  searchSchemaBytes: limit(256 * 1024, 'bytes', 'One schema file', 'ignored and logged'),
  searchBuildMs: limit(60_000, 'ms', 'Building the page of the IDE on first use', '503'),
} as const satisfies Record<string, Limit>
