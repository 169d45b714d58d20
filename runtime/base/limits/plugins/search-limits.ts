/**
 * Ceilings of the search plugin; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const searchLimits = {
  /** A GraphQL document; that of the IDE has 3,000. Beyond it: rejected. */
  searchDocumentBytes: limit(64 * 1024, 'bytes'),
  /** Validation time grows faster than the length of a document. Beyond it: rejected. */
  searchDocumentTokens: limit(4000, 'tokens'),
  /** Each level may multiply the reads. Beyond it: rejected. */
  searchDepthMax: limit(12, 'levels'),
  /** Objects that a query may request, with every list at its limit. Beyond it: rejected. */
  searchCostMax: limit(100_000, 'objects'),
  /** Fields of all objects that a query may request; rendered in about 0.5 s. Beyond it: rejected. */
  searchValuesMax: limit(200_000, 'values'),
  /** Assumed length of a nested list. Beyond it: a longer one costs more reads. */
  searchListCost: limit(10, 'objects'),
  /** Requests to the broker for one operation. Beyond it: a GraphQL error. */
  searchReadsMax: limit(400, 'requests'),
  /** Warnings in the extensions of one response. Beyond it: the rest is omitted. */
  searchWarningsMax: limit(20, 'warnings'),
  /** Read for one operation; about 40 MB. Beyond it: a GraphQL error. */
  searchEntitiesMax: limit(20_000, 'entities'),
  /** Same as the original broker, when limit is absent or 0. Beyond it: offset. */
  searchPageDefault: limit(50, 'entities'),
  /** Bounds one response. Beyond it: rejected. */
  searchPageMax: limit(10_000, 'entities'),
  /** Largest page of a broker. Beyond it: the next request. */
  searchPageEntities: limit(1000, 'entities'),
  /** First page of an inner criterion, since few matches may suffice. Beyond it: the next page. */
  searchFirstPage: limit(100, 'entities'),
  /** Ids in one request; URLs above 8 KB are not portable. Beyond it: the next request. */
  searchIdsPerRead: limit(100, 'ids'),
  /** Bounds the ids of one request by characters. Beyond it: the next request. */
  searchQueryCharacters: limit(5000, 'characters'),
  /** Ids in one argument. Beyond it: rejected. */
  searchIdsMax: limit(1000, 'ids'),
  /** Requests for each of several links on one level with many matches. Beyond it: a GraphQL error. */
  searchPartsMax: limit(50, 'requests'),
  /** Length of a text search; it becomes a pattern. Beyond it: rejected. */
  searchTextCharacters: limit(64, 'characters'),
  /** Parsed and validated documents cached by text. Beyond it: least recently used is evicted. */
  searchDocumentsKept: limit(50, 'documents'),
  /** Length of a cached document. Beyond it: parsed each time. */
  searchKeptCharacters: limit(8192, 'characters'),
  /** Concurrent operations; each holds entities. Beyond it: 503. */
  searchOperationsMax: limit(32, 'operations'),
  /** The client waits meanwhile. Beyond it: a GraphQL error. */
  searchOperationMs: limit(30_000, 'ms'),
  /** Each reads the entities that changed. Beyond it: a GraphQL error. */
  searchSubscriptionsMax: limit(100, 'subscriptions'),
  /** Changed and not yet sent to a client. Beyond it: its subscription ends with an error. */
  searchWaitingMax: limit(1000, 'entities'),
  /** Events not yet read by an SSE client. Beyond it: the next one waits. */
  searchEventsHeld: limit(8, 'events'),
  /** WebSockets of GraphQL. Beyond it: closed with 1013. */
  searchSocketsMax: limit(64, 'connections'),
  /** Files in the folder of schemas. Beyond it: the rest is ignored and logged. */
  searchSchemaFiles: limit(64, 'files'),
  /** One schema file. Beyond it: ignored and logged. */
  searchSchemaBytes: limit(256 * 1024, 'bytes'),
} as const satisfies Record<string, Limit>
