/**
 * Ceilings of HTTP listeners; part of the table in limits.ts.
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
    'For databases, outgoing connections and files; at most half of all descriptors',
    'clients share the rest: a third for HTTP, two thirds for MQTT',
  ),
  bodyValuesMax: limit(
    50_000,
    'values',
    'Commas and opening brackets of one JSON body: parsed in 5 ms, in 40 ms if all names differ',
    '400; a batch is parsed entity by entity',
  ),
  temporalBodyInstances: limit(10_000, 'instances', 'Instances of one body of history; read in 40 ms', '400'),
  batchSliceBytes: limit(
    4 * 1024 * 1024,
    'bytes',
    'Entities of a large batch that are written together',
    'the next slice follows when this one is on disk',
  ),
  httpHeaderBytesMax: limit(16_384, 'bytes', 'Same as node:http', '431'),
  httpHeadersMs: limit(10_000, 'ms', 'A client that sends headers slowly holds a connection', '408'),
  httpRequestMs: limit(60_000, 'ms', 'A client that sends a body slowly; 4 MB over a slow radio link', '408'),
  httpTurnMs: limit(
    5,
    'ms',
    'Requests that arrive together are started this long before other work runs',
    'the next turn',
  ),
  httpPipelinedMax: limit(64, 'requests', 'Pipelined requests of one connection', 'connection closed'),
  preparedQueriesMax: limit(
    256,
    'texts',
    'Prepared queries cached by URL; about 1 kB each',
    'oldest is evicted',
  ),
  preparedQueryCharactersMax: limit(1024, 'characters', 'Length of a cached one', 'parsed each time'),
  pageBytesMax: limit(
    2 * 1024 * 1024,
    'characters',
    'Stored entities, documents or values in one page; a larger single one is a page of its own',
    'a next link, or 206',
  ),
  joinedBytesMax: limit(8 * 1024 * 1024, 'characters', 'Linked entities in one response', '403'),
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
    'counts against the shared budget',
  ),
  uncollectedBytes: limit(
    4 * 1024 * 1024,
    'bytes',
    'Large texts sent, received or compared since the last collection: two to three times as much memory',
    'young garbage is collected first: 1 to 3 ms',
  ),
  outflowStallMs: limit(60_000, 'ms', 'A client that reads nothing of its response', 'connection closed'),
  outflowPressureMs: limit(
    2000,
    'ms',
    'A client that reads nothing while the budget is exhausted and others wait',
    'connection closed',
  ),
  outflowWaitMs: limit(10_000, 'ms', 'A request waits until its response fits the budget', '503'),
  httpKeepAliveMs: limit(30_000, 'ms', 'Idle connections', 'connection closed'),
} as const satisfies Record<string, Limit>
