/**
 * The ceilings of the search enabler; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const searchLimits = {
  searchDocumentBytes: limit(
    64 * 1024,
    'bytes',
    'A GraphQL document; the one of the IDE has 3,000',
    'refused',
  ),
  searchDocumentTokens: limit(4000, 'tokens', 'Checking a document grows faster than its length', 'refused'),
  searchDepthMax: limit(12, 'levels', 'Each may multiply what is read', 'refused'),
  searchCostMax: limit(100_000, 'objects', 'What a query may ask for, lists at their limits', 'refused'),
  searchValuesMax: limit(
    200_000,
    'values',
    'What a query may ask for, every field of every object; made in about 0.5 s',
    'refused',
  ),
  searchListCost: limit(10, 'objects', 'What a list within a list is taken to hold', 'more costs reads'),
  searchReadsMax: limit(400, 'requests', 'To the broker for one operation', 'a GraphQL error'),
  searchWarningsMax: limit(20, 'warnings', 'In the extensions of one answer', 'the rest is left out'),
  searchEntitiesMax: limit(20_000, 'entities', 'Read for one operation; about 40 MB', 'a GraphQL error'),
  searchPageDefault: limit(50, 'entities', 'As the original broker, where limit is left out or 0', 'offset'),
  searchPageMax: limit(10_000, 'entities', 'Bounds one answer', 'refused'),
  searchPageEntities: limit(1000, 'entities', 'Most that a broker answers at once', 'the next request'),
  searchFirstPage: limit(100, 'entities', 'Of an inner criterion, since few may suffice', 'the next page'),
  searchIdsPerRead: limit(
    100,
    'ids',
    'In one question; addresses above 8 KB are not portable',
    'the next request',
  ),
  searchQueryCharacters: limit(5000, 'characters', 'The same, in characters of ids', 'the next request'),
  searchIdsMax: limit(1000, 'ids', 'Named in one argument', 'refused'),
  searchPartsMax: limit(
    50,
    'requests',
    'Each of several links on one level that match much',
    'a GraphQL error',
  ),
  searchTextCharacters: limit(64, 'characters', 'Of a text search; it becomes a pattern', 'refused'),
  searchDocumentsKept: limit(50, 'documents', 'Parsed and checked, by text', 'least recently used leaves'),
  searchKeptCharacters: limit(8192, 'characters', 'Of a document that is kept parsed', 'parsed each time'),
  searchOperationsMax: limit(32, 'operations', 'Answered at a time; each holds entities', '503'),
  searchOperationMs: limit(30_000, 'ms', 'A client waits meanwhile', 'a GraphQL error'),
  searchSubscriptionsMax: limit(100, 'subscriptions', 'Each reads what changed', 'a GraphQL error'),
  searchWaitingMax: limit(
    1000,
    'entities',
    'Changed and not yet told to a client',
    'its subscription ends with an error',
  ),
  searchEventsHeld: limit(8, 'events', 'Made and not yet taken by a client by SSE', 'the next one waits'),
  searchSocketsMax: limit(64, 'connections', 'WebSockets of GraphQL', 'closed with 1013'),
  searchSchemaFiles: limit(64, 'files', 'Of the folder of schemas', 'the rest is left out, told'),
  searchSchemaBytes: limit(256 * 1024, 'bytes', 'Of one schema file', 'left out, told'),
  searchBuildMs: limit(60_000, 'ms', 'The page of the IDE, where it has not been built', '503'),
} as const satisfies Record<string, Limit>
