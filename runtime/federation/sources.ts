/**
 * Sends requests to context sources: with the headers that the registration requires, this gateway in Via, a
 * time limit, and in the source's form. A failed source is not called during its cooldown. If a registration
 * allows caching, its last answer is used while it is fresh, and while the source is unreachable.
 */

import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { RegistrationBroker } from '#broker/sources/source-requests.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { baseOf, type Registration } from '#ngsi-ld/federation/registration.ts'
import { sourceOptionsOf } from '#ngsi-ld/federation/source-info.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import type { Peer, PeerRequest } from './peer.ts'
import { createSourceCopies } from './source-copies.ts'
import type { SourceRequest } from './source-form.ts'
import { convertRequest } from './source-form.ts'

/** The client's request that is forwarded. */
export interface Requester {
  readonly registrations: RegistrationBroker
  readonly tenant: string
  /** The pseudonym of this gateway in Via. */
  readonly alias: string
  /** Headers as received, names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export type SourceAnswer =
  | {
      readonly status: number
      readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
      readonly text: string
      /** The context of its names, unless the answer has its own. */
      readonly context: Context
      /** Age in seconds, if it is a cached copy. */
      readonly age?: number
      /** The copy is used because the source is unreachable. */
      readonly isLastKnown?: boolean
    }
  | { readonly failure: 'timeout' | 'unreachable' | 'resting'; readonly reason: string }

export interface Sources {
  send(requester: Requester, registration: Registration, request: SourceRequest): Promise<SourceAnswer>
}

/** A problem at a source, as sent in NGSILD-Warning. */
export interface Warning {
  readonly code: 110 | 111 | 199 | 299
  readonly agent: string
  readonly text: string
  /** Age in seconds of a cached copy. */
  readonly age?: number
}

/** The name of a source in warnings. */
export function agentOf({ contextSourceAlias, endpoint }: Registration): string {
  return contextSourceAlias ?? tunnelled(endpoint)?.alias ?? new URL(endpoint).host
}

const isRead = ({ method, path }: SourceRequest): boolean =>
  method === 'GET' || (method === 'POST' && /\/query(?:\?|$)/.test(path))

export interface SourcesPorts {
  readonly peer: Peer
  readonly clock: Clock
  /** Resolves the context that a registration names; a tenant may host it. */
  readonly resolve: (address: string, tenant: string) => Context | Promise<Context>
}

export function createSources({ peer, clock, resolve }: SourcesPorts): Sources {
  /** End of each source's cooldown, monotonic ms. */
  const cooldowns = new Map<string, number>()
  const copies = createSourceCopies({ clock })

  /** Sends a request, records its outcome, and starts the cooldown of a failed source. */
  async function exchange(requester: Requester, registration: Registration, outgoing: PeerRequest) {
    const { cooldown } = registration.management ?? {}
    const answer = await peer.exchange(outgoing)
    const isFailure = 'failure' in answer || answer.status >= 500
    requester.registrations.outcome(registration.id, !isFailure)
    if (isFailure && cooldown !== undefined) {
      if (cooldowns.size >= limits.registrationsMax.value) cooldowns.clear()
      cooldowns.set(keyOf(requester, registration), clock.monotonic() + cooldown)
    }
    return answer
  }

  function isCoolingDown(key: string): boolean {
    const until = cooldowns.get(key)
    if (until === undefined) return false
    if (clock.monotonic() < until) return true
    cooldowns.delete(key)
    return false
  }

  return Object.freeze({
    async send(requester, registration, request) {
      const { id, endpoint, management = {} } = registration
      const options = sourceOptionsOf(registration, requester.headers)
      let formed: SourceRequest
      try {
        const { jsonldContext } = options
        const wantedContext =
          jsonldContext === undefined ? undefined : await resolve(jsonldContext, requester.tenant)
        formed = convertRequest(request, options, wantedContext)
      } catch (error) {
        return { failure: 'unreachable', reason: (error as Error).message }
      }
      const headers = headersFor(requester, registration, { ...formed.headers, ...options.headers })
      const key = keyOf(requester, registration)
      const { cacheDuration, localOnly } = management
      const isKept = cacheDuration !== undefined && isRead(request)
      // Copies are separated by request headers and tenant: they are never shown to other users.
      const { Via: _, ...named } = headers
      const copiesOf = `${key}${endpoint} ${hash('sha256', JSON.stringify(named))} `
      const copyKey = `${copiesOf}${formed.method} ${formed.path} ${formed.body ?? ''}`
      const store = requester.registrations.copies
      const [context] = formed.contexts
      if (isKept) copies.load(store)
      const fresh = isKept ? copies.fresh(copyKey, cacheDuration) : undefined
      if (fresh !== undefined) return { ...fresh, context }
      const lastKnown = (): SourceAnswer | undefined => {
        if (!isKept) return undefined
        const [, entity] = wholeEntity.exec(formed.path) ?? []
        const known =
          copies.lastKnown(copyKey) ??
          (entity && copies.entity(copiesOf, decodeURIComponent(entity), context.key))
        return known ? { ...known, context, isLastKnown: true } : undefined
      }
      if (isCoolingDown(key)) {
        const reason = 'it failed recently and is in its cooldown'
        return lastKnown() ?? { failure: 'resting', reason }
      }
      if (!isRead(request)) copies.outdate(key)
      const answer = await exchange(requester, registration, {
        method: formed.method,
        url: baseOf(endpoint) + (localOnly === true ? localized(formed.path) : formed.path),
        headers,
        body: formed.body,
        timeoutMs: Math.min(
          management.timeout ?? limits.sourceTimeoutMs.value,
          limits.sourceTimeoutMsMax.value,
        ),
      })
      if ('failure' in answer) return lastKnown() ?? answer
      const result = { ...answer, context }
      if (answer.status >= 502 && answer.status <= 504) return lastKnown() ?? result
      if (!isRead(request)) copies.outdate(key)
      if (isKept) {
        if (answer.status === 200 || answer.status === 206)
          copies.keep(copyKey, { source: id, store }, { ...answer, contextKey: context.key })
        else if (answer.status < 500) copies.drop(copyKey)
        // After a 404, cached lists may still contain the deleted entity.
        if (answer.status === 404) copies.outdate(copiesOf)
      }
      return result
    },
  } satisfies Sources)
}

/** The path of the retrieval of a whole entity. */
const wholeEntity = /^\/ngsi-ld\/v1\/entities\/([^/?]+)\?options=sysAttrs$/

/** The key of a tenant's registration; it includes the creation time, since an id may be reused. */
function keyOf({ tenant, registrations }: Requester, { id }: Registration): string {
  return `${tenant} ${id} ${registrations.get(id)?.statistics.createdAt ?? 0} `
}

/** Sets local=true in a path. */
function localized(path: string): string {
  const [place, parameters] = partsOf(path)
  const others = parameters.split('&').filter((pair) => pair !== '' && !pair.startsWith('local='))
  return `${place}?${[...others, 'local=true'].join('&')}`
}

function headersFor(
  { headers: { via }, alias }: Requester,
  { tenant }: Registration,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const before = via === undefined ? '' : `${typeof via === 'string' ? via : via.join(', ')}, `
  return {
    ...headers,
    ...(tenant === undefined ? {} : { 'ngsild-tenant': tenant }),
    Via: `${before}HTTP/1.1 ${alias}`,
  }
}
