/**
 * The ceilings of HTTP listeners; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const httpLimits = {
  httpConnectionsMax: limit(1000, 'connections', 'File descriptors', 'refused'),
  httpHeaderBytesMax: limit(16_384, 'bytes', 'As node:http', '431'),
  httpHeadersMs: limit(10_000, 'ms', 'A client that sends headers slowly holds a connection', '408'),
  httpRequestMs: limit(60_000, 'ms', 'The same for a whole request; 8 MB over a slow radio link', '408'),
  httpPipelinedMax: limit(
    64,
    'requests',
    'Sent on one connection before it is their turn',
    'connection closed',
  ),
  wishesKeptMax: limit(256, 'texts', 'Queries of URLs that are read once; about 1 kB each', 'oldest leaves'),
  wishCharactersMax: limit(1024, 'characters', 'Of one of them', 'read each time'),
  httpKeepAliveMs: limit(30_000, 'ms', 'Idle connections', 'connection closed'),
} as const satisfies Record<string, Limit>
