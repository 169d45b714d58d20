/**
 * Ceilings of the orchestrator, and of forwarding to other brokers; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const orchestratorLimits = {
  /** Requests in progress at one broker to which requests are forwarded. Beyond it: 503. */
  forwardedMax: limit(256, 'requests'),
  /** Idle connections to one such broker. Beyond it: closed. */
  forwardedIdleSockets: limit(32, 'connections'),
  /** Silence within the body of a response, event streams excepted. Beyond it: the response is cut off. */
  forwardedSilenceMs: limit(60_000, 'ms'),
  /** Clients of the orchestrator. Beyond it: the least recently active one is dropped. */
  orchestratorClientsMax: limit(500, 'clients'),
  /** Methods and resources of one client. Beyond it: the least recently repeated is dropped. */
  orchestratorUsesMax: limit(50, 'uses'),
  /** Name of a client. Beyond it: its digest. */
  orchestratorClientCharacters: limit(256, 'characters'),
  /** Name of a used resource. Beyond it: cut. */
  orchestratorResourceCharacters: limit(256, 'characters'),
  /** Clients in one response. Beyond it: 400. */
  orchestratorClientsPage: limit(100, 'clients'),
  /** Clients written in one transaction. Beyond it: the next transaction. */
  orchestratorSavedClients: limit(20, 'clients'),
  /** Counts of clients in memory only; saves flash writes. Beyond it: written. */
  orchestratorSaveMs: limit(10_000, 'ms'),
  /** Cached responses in memory. Beyond it: the least recently used is evicted. */
  orchestratorCacheBytes: limit(8 * 1024 * 1024, 'bytes'),
  /** One cached response. Beyond it: not cached. */
  orchestratorCachedBytes: limit(1024 * 1024, 'bytes'),
  /** Age of a cached response of this gateway, although nothing changed. Beyond it: read again. */
  orchestratorCacheMs: limit(60_000, 'ms'),
  /** Age of a cached response to a request that names a context. Beyond it: read again. */
  orchestratorContextMs: limit(5_000, 'ms'),
  /** How long a broker's consent to the credentials of a client counts. Beyond it: it is asked again. */
  orchestratorRightsMs: limit(60_000, 'ms'),
  /** Credentials whose consent is known. Beyond it: the oldest is dropped. */
  orchestratorRightsMax: limit(1000, 'credentials'),
  /** A body to which the platform context is added. Beyond it: forwarded as it is. */
  orchestratorContextBytes: limit(64 * 1024, 'bytes'),
  /** Tenants whose last write is known. Beyond it: cached responses of the others are not used. */
  orchestratorWritersMax: limit(1000, 'tenants'),
  /** Commands that wait for an answer of Redis. Beyond it: no copy. */
  redisCommandsMax: limit(1000, 'commands'),
  /** A read in Redis. Beyond it: the broker is read. */
  redisReadMs: limit(100, 'ms'),
  /** Connecting to Redis. Beyond it: the next attempt. */
  redisConnectMs: limit(5_000, 'ms'),
  /** Longest pause between two attempts to connect; pauses double up to this. Beyond it: the next attempt. */
  redisRetryMs: limit(10_000, 'ms'),
} as const satisfies Record<string, Limit>
