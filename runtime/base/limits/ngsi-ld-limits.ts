/**
 * Ceilings of the NGSI-LD API: entities, queries, temporal data, batches, contexts, snapshots, subscriptions;
 * part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const ngsiLdLimits = {
  /** One row, one response. Beyond it: 413. */
  entityBytesMax: limit(1024 * 1024, 'bytes'),
  /** Recursion must fit the stack. Beyond it: 400. */
  jsonDepthMax: limit(64, 'levels'),
  /** One document is parsed per write. Beyond it: 400. */
  attributesPerEntityMax: limit(1000, 'attributes'),
  /** Instances are searched linearly. Beyond it: 400. */
  instancesPerAttributeMax: limit(256, 'instances'),
  /** Longer URLs are not portable. Beyond it: 403. */
  queryCharactersMax: limit(8192, 'characters'),
  /** Bounds evaluation. Beyond it: 403. */
  queryTermsMax: limit(128, 'terms'),
  /** Bounds pattern compilation. Beyond it: 403. */
  patternCharactersMax: limit(512, 'characters'),
  /** Bounds the cost of one character of a text. Beyond it: 403. */
  patternStatesMax: limit(512, 'states'),
  /** Compiled patterns cached by source. Beyond it: compiled again, 0.1 ms each. */
  patternsCompiledMax: limit(256, 'patterns'),
  /** Memory of one compiled pattern during matching. Beyond it: matching is slower. */
  patternMemoryBytes: limit(65_536, 'bytes'),
  /**
   * Pattern states times characters of the texts of one entity: 17 ms at worst. Beyond it: 403 for a query; a
   * subscription does not match, and a metric counts it.
   */
  patternEntitySteps: limit(1_000_000, 'steps'),
  /** Pattern steps of one query: 0.3 s, 3 s at worst. Beyond it: 403. */
  patternQuerySteps: limit(200_000_000, 'steps'),
  /** Entities are compared this long before other requests run. Beyond it: the next turn. */
  queryTurnMs: limit(10, 'ms'),
  /** Filters times entities in one SQL statement: 4 ms. Beyond it: another statement. */
  queryFiltersAtOnce: limit(10_000, 'checks'),
  /** Nested parentheses of a query; recursion must fit the stack. Beyond it: 403. */
  queryNestingMax: limit(32, 'levels'),
  /** Each level multiplies the entities that are read. Beyond it: 403. */
  joinLevelsMax: limit(10, 'levels'),
  /** Linked entities in one response. Beyond it: 403. */
  joinedEntitiesMax: limit(10_000, 'entities'),
  /** All matches are sorted by keys of the index. Beyond it: 403. */
  orderedEntitiesMax: limit(100_000, 'entities'),
  /** Documents read for sorting when the index has no keys. Beyond it: 403. */
  orderedDocumentsMax: limit(10_000, 'entities'),
  /** Bounds the reference geometry of a geo-query. Beyond it: 403. */
  geometryPositionsMax: limit(1000, 'positions'),
  /** An index that yields more is not selective. Beyond it: entities are scanned in order. */
  driverRowsMax: limit(2000, 'rows'),
  /** Evaluating one entity costs about 5 microseconds. Beyond it: sets are intersected in SQL. */
  walkedEntitiesMax: limit(1000, 'entities'),
  /** Prepared statements of one tenant, about 10 kB each. Beyond it: oldest is evicted. */
  statementsCachedMax: limit(200, 'statements'),
  /** Same as the original broker. Beyond it: a next link. */
  pageDefault: limit(50, 'entities'),
  /** Bounds one response. Beyond it: 403. */
  pageMax: limit(1000, 'entities'),
  /** Bounds one response. Beyond it: 206 with Content-Range. */
  temporalInstancesMax: limit(5_000, 'instances'),
  /** Values of one attribute that a filter of a temporal query evaluates. Beyond it: 403. */
  temporalFilterInstancesMax: limit(100_000, 'instances'),
  /** Instances of one attribute with the same time; partial responses never split a time. Beyond it: 403. */
  temporalInstantMax: limit(100_000, 'instances'),
  /** Periods of one attribute in one response. Beyond it: 403. */
  aggregatePeriodsMax: limit(10_000, 'periods'),
  /** History is aggregated this long before other requests run. Beyond it: the next turn. */
  aggregateTurnMs: limit(5, 'ms'),
  /** Decoded chunks cached for aggregates, per tenant. Beyond it: the oldest is evicted. */
  decodedChunksBytes: limit(2 * 1024 * 1024, 'bytes'),
  /** Per-period sums of chunks cached for aggregates, per tenant; 2 MB. Beyond it: the oldest is evicted. */
  chunkRunsMax: limit(4096, 'chunks'),
  /** Corrected instances of one entity; they are read with its history. Beyond it: 403. */
  historyEditsMax: limit(10_000, 'instances'),
  /** Bounds one request. Beyond it: 413. */
  batchEntitiesMax: limit(10_000, 'entities'),
  /** One batch in memory, as received. Beyond it: 413. */
  batchBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** One part of a large batch for one context source. Beyond it: the next part. */
  batchPartCharacters: limit(1024 * 1024, 'characters'),
  /** Concurrent batches larger than other bodies may be. Beyond it: 503. */
  largeBatchesMax: limit(2, 'batches'),
  /** One request in memory. Beyond it: 413. */
  bodyBytesMax: limit(4 * 1024 * 1024, 'bytes'),
  /** All bodies that are being received or processed. Beyond it: 503. */
  bodiesBytesMax: limit(32 * 1024 * 1024, 'bytes'),
  /** Largest public context is 300 kB. Beyond it: 504. */
  contextBytesMax: limit(1024 * 1024, 'bytes'),
  /** Cached documents, and contexts compiled from them. Beyond it: least recently used is evicted. */
  contextsCachedMax: limit(200, 'contexts'),
  /** Compiled contexts in memory; the last one is always kept. Beyond it: least recently used is evicted. */
  contextsCompiledBytesMax: limit(6 * 1024 * 1024, 'bytes'),
  /** An id has to fit in the first line of a request. Beyond it: 400. */
  uriCharactersMax: limit(8192, 'characters'),
  /** Attributes, types and combinations of them, in memory; twice as many for removals. Beyond it: 403. */
  namesMax: limit(200_000, 'names'),
  /** Characters of all names together. Beyond it: 403. */
  namesCharactersMax: limit(8 * 1024 * 1024, 'characters'),
  /** IRIs of ontologies stay below 200. Beyond it: 400. */
  nameCharactersMax: limit(512, 'characters'),
  /** Nesting of contexts that reference contexts. Beyond it: 400. */
  contextDepthMax: limit(8, 'documents'),
  /** Documents read for one @context. Beyond it: 400. */
  contextDocumentsMax: limit(64, 'documents'),
  /** The largest public context has 3,000; read in 40 ms. Beyond it: 400. */
  contextTermsMax: limit(10_000, 'terms'),
  /** Resolved names cached per context and direction. Beyond it: the cache is cleared. */
  contextNamesKeptMax: limit(512, 'names'),
  /** Same rule as browsers, but fewer. Beyond it: 504. */
  contextRedirectsMax: limit(5, 'redirects'),
  /** Limits requests for an unavailable context. Beyond it: requested again. */
  contextFailureMs: limit(5000, 'ms'),
  /**
   * Lifetime of a context whose response states none. Beyond it: fetched again; the old copy is used
   * meanwhile.
   */
  contextAgeMs: limit(86_400_000, 'ms'),
  /** A request must not wait for a fetch at each use. Beyond it: raised to this. */
  contextAgeMsMin: limit(60_000, 'ms'),
  /** Longest lifetime accepted from a server. Beyond it: lowered to this. */
  contextAgeMsMax: limit(30 * 86_400_000, 'ms'),
  /** Contexts cached on disk. Beyond it: the one fetched longest ago is deleted. */
  contextsBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** One or two database files each. Beyond it: lowest priority is deleted, or 403. */
  snapshotsMax: limit(16, 'snapshots'),
  /** Copied while the request waits. Beyond it: 403. */
  snapshotEntitiesMax: limit(10_000, 'entities'),
  /** History instances in one snapshot, about 50 MB. Beyond it: 403. */
  snapshotInstancesMax: limit(100_000, 'instances'),
  /** Memory of one snapshot while it is created. Beyond it: 403. */
  snapshotBytesMax: limit(64 * 1024 * 1024, 'bytes'),
  /** Files of all snapshots. Beyond it: lowest priority is deleted, or 403. */
  snapshotsBytesMax: limit(512 * 1024 * 1024, 'bytes'),
  /** The client waits meanwhile. Beyond it: creation continues after the response. */
  snapshotWaitMs: limit(2000, 'ms'),
  /** Attempts to notify the endpoint of a snapshot. Beyond it: logged. */
  snapshotTriesMax: limit(5, 'tries'),
  /** Hosted contexts per tenant, on disk. Beyond it: 403. */
  contextsHostedMax: limit(1000, 'contexts'),
  /**
   * Hosted contexts that the broker created to reference them in responses. Beyond it: least used is deleted.
   */
  contextsImplicitMax: limit(500, 'contexts'),
  /** Bounds them by size. Beyond it: least used is deleted. */
  contextsImplicitBytesMax: limit(8 * 1024 * 1024, 'bytes'),
  /** Concurrent fetches from all servers. Beyond it: 504. */
  contextFetchesMax: limit(64, 'requests'),
  /** A request waits for the fetch. Beyond it: 504. */
  contextFetchMs: limit(5000, 'ms'),
  /** Held in memory, with its index entries. Beyond it: 413. */
  subscriptionBytesMax: limit(65_536, 'bytes'),
  /** Per tenant; the matcher is indexed. Beyond it: 403. */
  subscriptionsMax: limit(10_000, 'subscriptions'),
  /** Matching candidates cached; 10 MB. Beyond it: computed again. */
  candidatesRememberedMax: limit(50_000, 'subscriptions'),
  /** Entities read for a periodic notification. Beyond it: the rest is omitted. */
  periodEntitiesMax: limit(10_000, 'entities'),
  /** Entities in one notification. Beyond it: the next notification. */
  notificationBytes: limit(128 * 1024, 'bytes'),
  /** Rendered entities cached for further subscriptions. Beyond it: rendered again. */
  notificationItemsBytes: limit(512 * 1024, 'bytes'),
  /** Entities per subscription and throttling window. Beyond it: only counted. */
  throttledEntitiesMax: limit(1000, 'entities'),
  /** A notification that the disk rejected at the end of a throttling window. Beyond it: retried. */
  throttledRetryMs: limit(5000, 'ms'),
  /** Entities of one batch in one notification. Beyond it: the next notification. */
  notificationEntitiesMax: limit(256, 'entities'),
  /** One database file and cache each. Beyond it: 403. */
  tenantsMax: limit(64, 'tenants'),
} as const satisfies Record<string, Limit>
