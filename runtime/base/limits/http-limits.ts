/**
 * The ceilings of HTTP listeners; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const httpLimits = {
  httpConnectionsMax: limit(
    1000,
    'connections',
    'All HTTP listeners together, as far as file descriptors allow',
    'closed at once',
  ),
  descriptorsReserved: limit(
    384,
    'descriptors',
    'For databases, outgoing connections and files; half of all where there are fewer than twice as many',
    'clients share what remains: a third for HTTP, two thirds for MQTT',
  ),
  bodyValuesMax: limit(
    50_000,
    'values',
    'Commas and opening brackets of one JSON body: parsed in 5 ms, in 40 ms where each is of another name',
    '400; a batch is parsed entity by entity',
  ),
  temporalBodyInstances: limit(10_000, 'instances', 'Of one body of history; read in 40 ms', '400'),
  batchSliceBytes: limit(
    4 * 1024 * 1024,
    'bytes',
    'Entities of a large batch that are written together',
    'the next ones follow when these are on disk',
  ),
  httpHeaderBytesMax: limit(16_384, 'bytes', 'As node:http', '431'),
  httpHeadersMs: limit(10_000, 'ms', 'A client that sends headers slowly holds a connection', '408'),
  httpRequestMs: limit(60_000, 'ms', 'The same for a whole request; 4 MB over a slow radio link', '408'),
  httpTurnMs: limit(
    5,
    'ms',
    'Requests that arrive together are started so long before others pass',
    'the next turn',
  ),
  httpPipelinedMax: limit(
    64,
    'requests',
    'Sent on one connection before it is their turn',
    'connection closed',
  ),
  preparedQueriesMax: limit(
    256,
    'texts',
    'Queries of URLs that are read once; about 1 kB each',
    'oldest leaves',
  ),
  preparedQueryCharactersMax: limit(1024, 'characters', 'Of one of them', 'read each time'),
  pageBytesMax: limit(
    2 * 1024 * 1024,
    'characters',
    'Stored entities, documents or values in one page; a larger single one is a page of its own',
    'a next link, or 206',
  ),
  joinedBytesMax: limit(8 * 1024 * 1024, 'characters', 'Linked entities in one answer', '403'),
  outflowBytesMax: limit(
    16 * 1024 * 1024,
    'bytes',
    'Written to all clients and not read by them; memory of a small board',
    'requests wait, then 503; stalled clients are disconnected',
  ),
  outflowSmallBytes: limit(
    16 * 1024,
    'bytes',
    'Unsent to one client without counting: the number of clients bounds the sum',
    'counts against the budget of all',
  ),
  uncollectedBytes: limit(
    4 * 1024 * 1024,
    'bytes',
    'Large texts that were answered, received or compared since garbage was collected: two to three times as much memory',
    'young garbage is collected before the next one: 1 to 3 ms',
  ),
  outflowStallMs: limit(60_000, 'ms', 'A client that reads nothing of its answer', 'connection closed'),
  outflowPressureMs: limit(
    2000,
    'ms',
    'The same while the budget is exhausted and others wait',
    'connection closed',
  ),
  outflowWaitMs: limit(10_000, 'ms', 'A request waits for room for its answer', '503'),
  httpKeepAliveMs: limit(30_000, 'ms', 'Idle connections', 'connection closed'),
} as const satisfies Record<string, Limit>
