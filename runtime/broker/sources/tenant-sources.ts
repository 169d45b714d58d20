/**
 * Connects the registrations of context sources of a tenant to the subscriptions to them. A timer deletes
 * expired ones and sends periodic notifications.
 */

import type { ClockAndLog } from '#base/process/instruments.ts'
import type { Door } from '#broker/commit/door.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { Matcher } from '#broker/subscriptions/matcher.ts'
import type { ContextSources } from '#store/tables/source-rows.ts'
import { createRegistrations } from './registrations.ts'
import { createSourceSubscribe } from './source-subscribe.ts'

/** Interval of the sweep for periodic notifications and expiry, ms. */
const sourcesEveryMs = 1000

export interface ContextSourceParts extends ClockAndLog {
  readonly rows: ContextSources
  readonly door: Door
  readonly matcher: Matcher
  readonly query: (query: EntityQuery) => QueryPage
}

/** Opens registrations and the subscriptions to them; they refer to each other. */
export function openContextSources(parts: ContextSourceParts, onEndpointChange: (endpoint: string) => void) {
  const subscribe = createSourceSubscribe({
    ...parts,
    deliver: parts.matcher.deliver,
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
    /** Call before the door closes, because counters and copies are written last. */
    stop(): void {
      clearInterval(timer)
      registrations.settle()
    },
  }
}
