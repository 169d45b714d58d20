/**
 * Ceilings of tunnels, registrations and copies of other brokers; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const downwardLimits = {
  /** A small request over a slow link. Beyond it: tried again after a pause. */
  downwardTimeoutMs: limit(20_000, 'ms'),
  /** Gateways with an open tunnel, about 20 KB each. Beyond it: 503. */
  tunnelsMax: limit(1000, 'connections'),
  /** Reserved names of gateways, about 120 bytes each. Beyond it: 503. */
  tunnelNamesMax: limit(5000, 'names'),
  /** Each direction of one tunnel. Beyond it: 503, or a failed source. */
  tunnelRequestsInFlight: limit(64, 'requests'),
  /** Queued for sending through one tunnel. Beyond it: 503, or a failed source. */
  tunnelBufferBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** The largest body and its headers. Beyond it: connection closed. */
  tunnelMessageBytesMax: limit(9 * 1024 * 1024, 'bytes'),
  /** The centre notices a dead tunnel after three times this. Beyond it: connection closed. */
  tunnelBeatMs: limit(20_000, 'ms'),
  /** A tunnel that lasted this long counts as stable. Beyond it: retry pauses are reset. */
  tunnelStableMs: limit(60_000, 'ms'),
  /** Longest pause between two attempts to open a tunnel. Beyond it: stays at this. */
  tunnelPauseMsMax: limit(60_000, 'ms'),
  /** Response of a centre that refuses a tunnel. Beyond it: not read. */
  tunnelRefusalBytesMax: limit(16 * 1024, 'bytes'),
  /** A peer that does not complete the closing handshake. Beyond it: connection closed. */
  tunnelCloseMs: limit(1000, 'ms'),
  /** A request without a response when the gateway stops. Beyond it: abandoned. */
  downwardCloseMs: limit(1000, 'ms'),
  /** Every known broker returns this many in one page. Beyond it: the next page. */
  copyPage: limit(200, 'entities'),
  /** Copies of one setting; their ids are in memory. Beyond it: the last good copies stay. */
  copiesMax: limit(10_000, 'entities'),
  /** Pause after a stream ended. Beyond it: the next stream begins. */
  copyPauseMs: limit(2000, 'ms'),
  /** Received and not yet on disk. Beyond it: not read. */
  copyNotificationsWaitingMax: limit(64, 'notifications'),
} as const satisfies Record<string, Limit>
