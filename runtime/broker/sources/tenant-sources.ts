/**
 * What a tenant knows of context sources: registrations and those who subscribe to them, wired to each other, with
 * the clock that takes expired ones away and tells the periodic ones.
 */

import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import type { ContextSources } from '#store/tables/source-rows.ts'
import { createRegistrations } from './registrations.ts'
import { createSourceSubscribe } from './source-subscribe.ts'

/** How often what is periodic or expires of context sources is looked at, ms. */
const sourcesEveryMs = 1000

export interface ContextSourceParts {
  readonly rows: ContextSources
  readonly door: Door
  readonly clock: Clock
  readonly log: Log
  readonly matcher: Matcher
  readonly query: (query: EntityQuery) => QueryPage
}

/** Registrations and those who subscribe to them, which each know the other. */
export function openContextSources(parts: ContextSourceParts, onEndpointChange: (endpoint: string) => void) {
  const subscribe = createSourceSubscribe({
    ...parts,
    owe: parts.matcher.owe,
    registrations: (stage) => registrations.seenBy(stage),
    onEndpointChange,
  })
  const registrations = createRegistrations({ ...parts, onChange: subscribe.changed })
  const timer = setInterval(() => {
    registrations.sweep()
    subscribe.sweep()
  }, sourcesEveryMs).unref()
  return {
    registrations,
    subscribe,
    /** Before the door closes, because counters and copies are written last. */
    stop(): void {
      clearInterval(timer)
      registrations.settle()
    },
  }
}
