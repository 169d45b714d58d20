/**
 * Ceilings of the ranking plugin; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const rankingLimits = {
  rankingTermsMax: limit(32, 'terms', 'Weights of one request; more cannot be interpreted', '400'),
  rankingWeightMax: limit(1_000_000, 'the weight', 'Sums of products must stay finite', '400'),
  rankingPathNamesMax: limit(8, 'names', 'Each relationship in a path costs another request', '400'),
  rankingCandidatesMax: limit(10_000, 'entities', 'All are scored before the first result is known', '403'),
  rankingBytesMax: limit(32 * 1024 * 1024, 'bytes', 'Responses of the backend for all candidates', '403'),
  rankingPageEntities: limit(1000, 'entities', 'The largest page that brokers commonly return', 'next page'),
  rankingPagesMax: limit(200, 'pages', 'A backend with small pages', '403'),
  rankingLinkedMax: limit(
    10_000,
    'entities',
    'Entities that one relationship of all candidates references',
    '403',
  ),
  rankingAddressBytes: limit(6000, 'bytes', 'URL with ids; some servers reject longer ones', 'next request'),
  rankingAtOnce: limit(8, 'requests', 'Each may hold all its candidates in memory', 'waits'),
  rankingWaitingMax: limit(64, 'requests', 'Clients that wait longer have given up', '503'),
} as const satisfies Record<string, Limit>
