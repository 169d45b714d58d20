/**
 * Ceilings of the ranking plugin; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const rankingLimits = {
  /** Weights of one request; more cannot be interpreted. Beyond it: 400. */
  rankingTermsMax: limit(32, 'terms'),
  /** Sums of products must stay finite. Beyond it: 400. */
  rankingWeightMax: limit(1_000_000, 'the weight'),
  /** Each relationship in a path costs another request. Beyond it: 400. */
  rankingPathNamesMax: limit(8, 'names'),
  /** All are scored before the first result is known. Beyond it: 403. */
  rankingCandidatesMax: limit(10_000, 'entities'),
  /** Responses of the backend for all candidates; parsed, they take three times as much. Beyond it: 403. */
  rankingBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** The largest page that brokers commonly return. Beyond it: next page. */
  rankingPageEntities: limit(1000, 'entities'),
  /** Page of large entities, as text; it is parsed. Beyond it: next page. */
  rankingPageBytes: limit(256 * 1024, 'bytes'),
  /**
   * Candidates kept as they were read, by their size as text; of others, those of the answer are read twice.
   * Beyond it: not kept.
   */
  rankingHeldBytes: limit(512 * 1024, 'bytes'),
  /** A backend with small pages. Beyond it: 403. */
  rankingPagesMax: limit(200, 'pages'),
  /** Entities that one relationship of all candidates references. Beyond it: 403. */
  rankingLinkedMax: limit(10_000, 'entities'),
  /** URL with ids; some servers reject longer ones. Beyond it: next request. */
  rankingAddressBytes: limit(6000, 'bytes'),
  /**
   * Each may hold a page of the backend and 10,000 values per term. One at a time if the backend is in this
   * process. Beyond it: waits.
   */
  rankingAtOnce: limit(2, 'requests'),
  /** Clients that wait longer have given up. Beyond it: 503. */
  rankingWaitingMax: limit(64, 'requests'),
} as const satisfies Record<string, Limit>
