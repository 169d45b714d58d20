/**
 * Ceilings of HTTP listeners; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const httpLimits = {
  /** All HTTP listeners together, as far as file descriptors allow. Beyond it: closed at once. */
  httpConnectionsMax: limit(1000, 'connections'),
  /**
   * For databases, outgoing connections and files; at most half of all descriptors. Beyond it: clients share
   * the rest: a third for HTTP, two thirds for MQTT.
   */
  descriptorsReserved: limit(384, 'descriptors'),
  /**
   * Commas and opening brackets of one JSON body: parsed in 5 ms, in 40 ms if all names differ. Beyond it:
   * 400; a batch is parsed entity by entity.
   */
  bodyValuesMax: limit(50_000, 'values'),
  /** Values in the JSON body of a component, such as a pattern model of 2000 examples. Beyond it: 400. */
  componentValuesMax: limit(200_000, 'values'),
  /** Instances of one body of history; read in 40 ms. Beyond it: 400. */
  temporalBodyInstances: limit(10_000, 'instances'),
  /**
   * Entities of a large batch that are written together. Beyond it: the next slice follows when this one is
   * on disk.
   */
  batchSliceBytes: limit(128 * 1024, 'bytes'),
  /** Same as node:http. Beyond it: 431. */
  httpHeaderBytesMax: limit(16_384, 'bytes'),
  /** A client that sends headers slowly holds a connection. Beyond it: 408. */
  httpHeadersMs: limit(10_000, 'ms'),
  /** A client that sends a body slowly; 4 MB over a slow radio link. Beyond it: 408. */
  httpRequestMs: limit(60_000, 'ms'),
  /** Requests that arrive together are started this long before other work runs. Beyond it: the next turn. */
  httpTurnMs: limit(5, 'ms'),
  /** Pipelined requests of one connection. Beyond it: connection closed. */
  httpPipelinedMax: limit(64, 'requests'),
  /** Prepared queries cached by URL; about 1 kB each. Beyond it: oldest is evicted. */
  preparedQueriesMax: limit(256, 'texts'),
  /** Length of a cached one. Beyond it: parsed each time. */
  preparedQueryCharactersMax: limit(1024, 'characters'),
  /**
   * Stored entities, documents or values in one page; a larger single one is a page of its own. Beyond it: a
   * next link, or 206.
   */
  pageBytesMax: limit(2 * 1024 * 1024, 'characters'),
  /** Linked entities in one response. Beyond it: 403. */
  joinedBytesMax: limit(8 * 1024 * 1024, 'characters'),
  /**
   * Written to all clients and not read by them; memory of a small board. Beyond it: requests wait, then 503;
   * stalled clients are disconnected.
   */
  outflowBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /**
   * Unsent to one client without counting: the number of clients bounds the sum. Beyond it: counts against
   * the shared budget.
   */
  outflowSmallBytes: limit(16 * 1024, 'bytes'),
  /**
   * Large texts sent, received or compared since V8's last collection: two to three times as much memory.
   * Beyond it: while much is resident, young garbage is collected first: 1 to 3 ms.
   */
  uncollectedBytes: limit(4 * 1024 * 1024, 'bytes'),
  /** A client that reads nothing of its response. Beyond it: connection closed. */
  outflowStallMs: limit(60_000, 'ms'),
  /**
   * A client that reads nothing while the budget is exhausted and others wait. Beyond it: connection closed.
   */
  outflowPressureMs: limit(2000, 'ms'),
  /** A request waits until its response fits the budget. Beyond it: 503. */
  outflowWaitMs: limit(10_000, 'ms'),
  /** Idle connections. Beyond it: connection closed. */
  httpKeepAliveMs: limit(30_000, 'ms'),
} as const satisfies Record<string, Limit>
