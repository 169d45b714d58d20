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
import { type SourceOptions, sourceOptionsOf } from '#ngsi-ld/federation/source-info.ts'
import { appendedVia } from '#ngsi-ld/federation/via.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'
import { tunnelled } from '#ngsi-ld/values/tunnel-uri.ts'
import type { Peer, PeerAnswer, PeerRequest } from './peer.ts'
import { createSourceCopies } from './source-copies.ts'
import { convertRequest, type SourceRequest } from './source-form.ts'

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

type Answered = Extract<PeerAnswer, { readonly status: number }>

interface CopyPlace {
  readonly source: string
  readonly store: RegistrationBroker['copies']
  /** Separates copies by request headers and tenant: they are never shown to other users. */
  readonly prefix: string
  readonly cacheDuration: string
}

export interface SourcesPorts {
  readonly peer: Peer
  readonly clock: Clock
  /** Resolves the context that a registration names; a tenant may host it. */
  readonly resolve: (address: string, tenant: string) => Context | Promise<Context>
}

export type Sources = ReturnType<typeof createSources>

export function createSources({ peer, clock, resolve }: SourcesPorts) {
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

  /** A request in the source's form. Rejects if the context that the registration names cannot be read. */
  async function form(
    request: SourceRequest,
    options: SourceOptions,
    tenant: string,
  ): Promise<SourceRequest> {
    const { jsonldContext } = options
    const context = jsonldContext === undefined ? undefined : await resolve(jsonldContext, tenant)
    return convertRequest(request, options, context)
  }

  /** The copy of the answer to a read request. */
  function copyOf({ method, path, body, contexts: [context] }: SourceRequest, place: CopyPlace) {
    const { source, store, prefix, cacheDuration } = place
    const key = `${prefix}${method} ${path} ${body ?? ''}`
    copies.load(store)
    return {
      fresh(): SourceAnswer | undefined {
        const found = copies.fresh(key, cacheDuration)
        return found && { ...found, context }
      },
      lastKnown(): SourceAnswer | undefined {
        const [, entity] = wholeEntity.exec(path) ?? []
        const found =
          copies.lastKnown(key) ?? (entity && copies.entity(prefix, decodeURIComponent(entity), context.key))
        return found ? { ...found, context, isLastKnown: true } : undefined
      },
      update(answer: Answered): void {
        if (answer.status === 200 || answer.status === 206)
          copies.keep(key, { source, store }, { ...answer, contextKey: context.key })
        else if (answer.status < 500) copies.drop(key)
        // After a 404, cached lists may still contain the deleted entity.
        if (answer.status === 404) copies.outdate(prefix)
      },
    }
  }

  return Object.freeze({
    async send(
      requester: Requester,
      registration: Registration,
      request: SourceRequest,
    ): Promise<SourceAnswer> {
      const { id, endpoint, management = {} } = registration
      const options = sourceOptionsOf(registration, requester.headers)
      let formed: SourceRequest
      try {
        formed = await form(request, options, requester.tenant)
      } catch (error) {
        return { failure: 'unreachable', reason: (error as Error).message }
      }
      const headers = headersFor(requester, registration, { ...formed.headers, ...options.headers })
      const key = keyOf(requester, registration)
      const { cacheDuration, localOnly } = management
      const { Via: _, ...named } = headers
      const copy =
        cacheDuration === undefined || !isRead(request)
          ? undefined
          : copyOf(formed, {
              source: id,
              store: requester.registrations.copies,
              prefix: `${key}${endpoint} ${hash('sha256', JSON.stringify(named))} `,
              cacheDuration,
            })
      const fresh = copy?.fresh()
      if (fresh !== undefined) return fresh
      if (isCoolingDown(key)) {
        const reason = 'it failed recently and is in its cooldown'
        return copy?.lastKnown() ?? { failure: 'resting', reason }
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
      if ('failure' in answer) return copy?.lastKnown() ?? answer
      const result = { ...answer, context: formed.contexts[0] }
      if (answer.status >= 502 && answer.status <= 504) return copy?.lastKnown() ?? result
      if (!isRead(request)) copies.outdate(key)
      copy?.update(answer)
      return result
    },
  })
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
  return {
    ...headers,
    ...(tenant === undefined ? {} : { 'ngsild-tenant': tenant }),
    Via: appendedVia(via, alias),
  }
}
