/**
 * Hostile cases: every kind of request with the largest input that the limits allow. A case that is refused counts as
 * well as one that is answered; only the event loop decides.
 */
import type { StallCase } from './campaign.ts'
import { contexts, history, packets, plugins, subscriptions } from './other-cases.ts'
import { openings, packetsOfFive } from './packet-cases.ts'
import { patterns } from './pattern-cases.ts'
import { queries } from './query-cases.ts'
import { routes } from './route-cases.ts'
import { shapes } from './write-cases.ts'

export const stallCases: readonly StallCase[] = [
  ...patterns,
  ...shapes,
  ...queries,
  ...contexts,
  ...history,
  ...packets,
  ...packetsOfFive,
  ...openings,
  ...plugins,
  ...subscriptions,
  ...routes,
]
