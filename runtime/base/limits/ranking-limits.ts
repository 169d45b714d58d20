/**
 * The ceilings of the ranking plugin; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const rankingLimits = {
  rankingTermsMax: limit(32, 'terms', 'Weights of one request; more say nothing to a person', '400'),
  rankingWeightMax: limit(1_000_000, 'the weight', 'Sums of products stay finite', '400'),
  rankingPathNamesMax: limit(8, 'names', 'Each relationship in a path is another request', '400'),
  rankingCandidatesMax: limit(10_000, 'entities', 'All are scored before the first one is known', '403'),
  rankingBytesMax: limit(32 * 1024 * 1024, 'bytes', 'What the backend tells of all candidates', '403'),
  rankingPageEntities: limit(1000, 'entities', 'The largest page that brokers commonly give', 'next page'),
  rankingPagesMax: limit(200, 'pages', 'A backend that gives few entities at a time', '403'),
  rankingLinkedMax: limit(10_000, 'entities', 'That one relationship of all candidates leads to', '403'),
  rankingAddressBytes: limit(
    6000,
    'bytes',
    'Of an address with ids; longer ones are refused by some',
    'next request',
  ),
  rankingAtOnce: limit(8, 'requests', 'Each may hold all its candidates in memory', 'wait'),
  rankingWaitingMax: limit(64, 'requests', 'Who waits longer has given up', '503'),
} as const satisfies Record<string, Limit>
