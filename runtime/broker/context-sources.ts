/**
 * What a tenant knows of context sources: registrations and those who subscribe to them, wired to each other, with
 * the clock that takes expired ones away and tells the periodic ones.
 */
import type { Clock } from '#base/clock.ts'
import type { Log } from '#base/log.ts'
import type { ContextSources } from '#store/context-sources.ts'
import type { Door } from './door.ts'
import type { EntityQuery, QueryPage } from './entity-query.ts'
import type { Matcher } from './matcher.ts'
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
