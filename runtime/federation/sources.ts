/**
 * How a context source is asked: with the headers its registration wants, our name in Via, in the time it is given,
 * and not at all while it rests after a failure. What a source that allows copies has told last is kept, up to a
 * bound, and stands in for it while it cannot be reached.
 */
import type { Clock } from '#base/clock.ts'
import { limits } from '#base/limits.ts'
import type { RegistrationBroker } from '#broker/types.ts'
import type { Registration } from '#ngsi-ld/registration.ts'
import type { Peer, PeerAnswer } from './peer.ts'

/** Whose request is passed on. */
export interface Asker {
  readonly registrations: RegistrationBroker
  readonly tenant: string
  /** Our own pseudonym in Via. */
  readonly alias: string
  /** Headers as they came, names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export interface SourceRequest {
  readonly method: string
  /** From /ngsi-ld/v1 on, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export type SourceAnswer =
  | {
      readonly status: number
      readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
      readonly text: string
      /** Of a copy that stands in for a source that could not be reached: its age in seconds. */
      readonly age?: number
      /** The registrations' own path of the request, for links to further pages. */
    }
  | { readonly failure: 'timeout' | 'unreachable' | 'resting'; readonly reason: string }

export interface Sources {
  ask(asker: Asker, registration: Registration, request: SourceRequest): Promise<SourceAnswer>
}

/** What went wrong elsewhere, as NGSILD-Warning tells it. */
export interface Warning {
  readonly code: 110 | 111 | 199 | 299
  readonly agent: string
  readonly text: string
  /** Age in seconds of a copy that stands in. */
  readonly age?: number
}

/** The pseudonyms of a Via header [RFC 9110 7.6.3]. */
export function pseudonymsOf(via: string | readonly string[] | undefined): readonly string[] {
  const text = typeof via === 'string' ? via : (via ?? []).join(',')
  return text.split(',').flatMap((hop) => hop.trim().split(/\s+/)[1] ?? [])
}

/** The name of a source in warnings. */
export function agentOf({ contextSourceAlias, endpoint }: Registration): string {
  return contextSourceAlias ?? new URL(endpoint).host
}

const isRead = ({ method, path }: SourceRequest): boolean =>
  method === 'GET' || (method === 'POST' && /\/query(?:\?|$)/.test(path))

interface KeptCopy {
  readonly at: number
  readonly bytes: number
  readonly answer: {
    readonly status: number
    readonly headers: Record<string, string>
    readonly text: string
  }
}

export function createSources({ peer, clock }: { peer: Peer; clock: Clock }): Sources {
  /** Monotonic ms until which a source is left alone. */
  const restsUntil = new Map<string, number>()
  /** In order of use, the longest unused first. */
  const copies = new Map<string, KeptCopy>()
  let copiesBytes = 0

  function keep(key: string, { status, headers, text }: Exclude<PeerAnswer, { failure: unknown }>): void {
    drop(key)
    const bytes = key.length + text.length
    if (bytes > limits.sourceCopiesBytesMax.value) return
    const named = ['content-type', 'link', 'ngsild-results-count']
    const kept = named.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]]] : []))
    copies.set(key, {
      at: clock.monotonic(),
      bytes,
      answer: { status, headers: Object.fromEntries(kept) as Record<string, string>, text },
    })
    copiesBytes += bytes
    while (copiesBytes > limits.sourceCopiesBytesMax.value) drop(copies.keys().next().value!)
  }
  function drop(key: string): void {
    const known = copies.get(key)
    if (known === undefined) return
    copies.delete(key)
    copiesBytes -= known.bytes
  }
  function lastKnown(key: string): SourceAnswer | undefined {
    const known = copies.get(key)
    if (known === undefined) return undefined
    copies.delete(key)
    copies.set(key, known)
    return { ...known.answer, age: Math.floor((clock.monotonic() - known.at) / 1000) }
  }

  return Object.freeze({
    async ask(asker, registration, request) {
      const { id, management = {} } = registration
      const restKey = `${asker.tenant} ${id}`
      const isKept = management.cacheDuration !== undefined && isRead(request)
      const headers = headersFor(asker, registration, request)
      const copyKey = `${restKey} ${request.method} ${request.path} ${headers['link'] ?? ''} ${request.body ?? ''}`
      const failed = (failure: 'timeout' | 'unreachable' | 'resting', reason: string): SourceAnswer =>
        (isKept ? lastKnown(copyKey) : undefined) ?? { failure, reason }
      const until = restsUntil.get(restKey)
      if (until !== undefined && clock.monotonic() < until)
        return failed('resting', 'it failed lately and is left alone for a while')
      restsUntil.delete(restKey)
      const answer = await peer.exchange({
        method: request.method,
        url: registration.endpoint.replace(/\/+$/, '') + localised(request.path, management.localOnly),
        headers,
        body: request.body,
        timeoutMs: Math.min(
          management.timeout ?? limits.sourceTimeoutMs.value,
          limits.sourceTimeoutMsMax.value,
        ),
      })
      const isFailure = 'failure' in answer || answer.status >= 500
      asker.registrations.outcome(id, !isFailure)
      if (isFailure && management.cooldown !== undefined) {
        if (restsUntil.size >= limits.registrationsMax.value) restsUntil.clear()
        restsUntil.set(restKey, clock.monotonic() + management.cooldown)
      }
      if ('failure' in answer) return failed(answer.failure, answer.reason)
      if (answer.status >= 502 && answer.status <= 504)
        return (isKept ? lastKnown(copyKey) : undefined) ?? answer
      if (isKept && answer.status === 200) keep(copyKey, answer)
      return answer
    },
  } satisfies Sources)
}

function localised(path: string, localOnly: boolean | undefined): string {
  if (localOnly !== true || /[?&]local=/.test(path)) return path
  return `${path}${path.includes('?') ? '&' : '?'}local=true`
}

function headersFor(
  asker: Asker,
  registration: Registration,
  request: SourceRequest,
): Record<string, string> {
  const { via } = asker.headers
  const before = via === undefined ? '' : `${typeof via === 'string' ? via : via.join(', ')}, `
  const headers: Record<string, string> = { ...request.headers, via: `${before}1.1 ${asker.alias}` }
  if (registration.tenant !== undefined) headers['ngsild-tenant'] = registration.tenant
  for (const { key, value } of registration.contextSourceInfo ?? []) {
    const name = key.toLowerCase()
    const given = value === 'urn:ngsi-ld:request' ? asker.headers[name] : value
    if (typeof given === 'string') headers[name] = given
  }
  return headers
}

/** What an answer to a question makes the asker warn of. */
export function warningOf(registration: Registration, answer: SourceAnswer): Warning | undefined {
  const agent = agentOf(registration)
  if ('failure' in answer) {
    const code = answer.failure === 'resting' ? 199 : 111
    return { code, agent, text: `${registration.id}: ${answer.reason}` }
  }
  if (answer.age !== undefined) {
    const text = `${registration.id} cannot be reached; this is what it told ${answer.age} s ago`
    return { code: 110, agent, text, age: answer.age }
  }
  if (answer.status === 200 || answer.status === 206 || answer.status === 404) return undefined
  return { code: 199, agent, text: `${registration.id} answered ${answer.status}` }
}
