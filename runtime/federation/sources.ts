/**
 * How a context source is asked: with the headers its registration wants, our name in Via, in the time it is given,
 * in the form it wants, and not at all while it rests after a failure. Where a registration allows copies, what the
 * source told last stands for it as long as the registration says, and while it cannot be reached.
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
import { inForm } from './source-form.ts'

/** Whose request is passed on. */
export interface Requester {
  readonly registrations: RegistrationBroker
  readonly tenant: string
  /** Our own pseudonym in Via. */
  readonly alias: string
  /** Headers as they came, names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export type SourceAnswer =
  | {
      readonly status: number
      readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
      readonly text: string
      /** What its names are in, unless it brings a context itself. */
      readonly context: Context
      /** Of a copy that stands in for an answer: its age in seconds. */
      readonly age?: number
      /** It stands in because the source could not be reached. */
      readonly isLastKnown?: boolean
    }
  | { readonly failure: 'timeout' | 'unreachable' | 'resting'; readonly reason: string }

export interface Sources {
  send(requester: Requester, registration: Registration, request: SourceRequest): Promise<SourceAnswer>
}

/** What went wrong elsewhere, as NGSILD-Warning tells it. */
export interface Warning {
  readonly code: 110 | 111 | 199 | 299
  readonly agent: string
  readonly text: string
  /** Age in seconds of a copy that stands in. */
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
  /** The context behind an address that a registration names; a tenant may host it. */
  readonly resolve: (address: string, tenant: string) => Context | Promise<Context>
}

export function createSources({ peer, clock, resolve }: SourcesPorts): Sources {
  /** Monotonic ms until which a source is left alone. */
  const restsUntil = new Map<string, number>()
  const copies = createSourceCopies({ clock })

  /** Asks, takes down what came of it, and lets a source rest that failed. */
  async function exchange(requester: Requester, registration: Registration, outgoing: PeerRequest) {
    const { cooldown } = registration.management ?? {}
    const answer = await peer.exchange(outgoing)
    const isFailure = 'failure' in answer || answer.status >= 500
    requester.registrations.outcome(registration.id, !isFailure)
    if (isFailure && cooldown !== undefined) {
      if (restsUntil.size >= limits.registrationsMax.value) restsUntil.clear()
      restsUntil.set(keyOf(requester, registration), clock.monotonic() + cooldown)
    }
    return answer
  }

  function rests(key: string): boolean {
    const until = restsUntil.get(key)
    if (until === undefined) return false
    if (clock.monotonic() < until) return true
    restsUntil.delete(key)
    return false
  }

  return Object.freeze({
    async send(requester, registration, request) {
      const { id, endpoint, management = {} } = registration
      const wishes = sourceOptionsOf(registration, requester.headers)
      let formed: SourceRequest
      try {
        const { jsonldContext } = wishes
        const wished =
          jsonldContext === undefined ? undefined : await resolve(jsonldContext, requester.tenant)
        formed = inForm(request, wishes, wished)
      } catch (error) {
        return { failure: 'unreachable', reason: (error as Error).message }
      }
      const headers = headersFor(requester, registration, { ...formed.headers, ...wishes.headers })
      const key = keyOf(requester, registration)
      const { cacheDuration, localOnly } = management
      const isKept = cacheDuration !== undefined && isRead(request)
      // Whoever asks in another name, or for another tenant, is not told what was answered to this one.
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
      if (rests(key)) {
        const reason = 'it failed lately and is left alone for a while'
        return lastKnown() ?? { failure: 'resting', reason }
      }
      if (!isRead(request)) copies.outdate(key)
      const answer = await exchange(requester, registration, {
        method: formed.method,
        url: baseOf(endpoint) + (localOnly === true ? localised(formed.path) : formed.path),
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
        // What lists say of an entity that is gone is wrong.
        if (answer.status === 404) copies.outdate(copiesOf)
      }
      return result
    },
  } satisfies Sources)
}

/** The path of a retrieval of an entity with all its attributes. */
const wholeEntity = /^\/ngsi-ld\/v1\/entities\/([^/?]+)\?options=sysAttrs$/

/** Of a source, as one tenant registered it: another registration may come to have the id. */
function keyOf({ tenant, registrations }: Requester, { id }: Registration): string {
  return `${tenant} ${id} ${registrations.get(id)?.statistics.createdAt ?? 0} `
}

/** The path with local=true, whatever it said before. */
function localised(path: string): string {
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
