/**
 * The @context documents that users name: from the gateway itself, from disk, or fetched once and then kept. A kept
 * copy always stands in while a newer one cannot be had, so that a site without Internet goes on working; it is
 * renewed in the background when its age is over. How documents travel is a port.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Json } from '#contract/pipeline.ts'
import { compileContext } from '#ngsi-ld/context/context.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ContextFacts, ContextRow } from '#store/tables/records.ts'

export interface DocumentRequest {
  readonly url: string
  readonly accept: string
  /** For the whole exchange, redirects included. */
  readonly timeoutMs: number
  readonly bytesMax: number
  readonly redirectsMax: number
}

export interface FetchedDocument {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Gets a complete document, or rejects with a GatewayError that says why not. */
export type FetchDocument = (request: DocumentRequest) => Promise<FetchedDocument>

export interface ContextLibraryPorts {
  readonly records: { context(url: string): ContextRow | undefined; contexts(): readonly ContextFacts[] }
  readonly door: Pick<Door, 'commit'>
  /** Absent where fetching is switched off. */
  readonly fetchDocument: FetchDocument | undefined
  readonly clock: Clock
  readonly log: Log
  /** Told when a document was replaced by a newer one. */
  readonly onChange: (url: string) => void
}

export interface ContextLibrary {
  /** The document, when it is at hand. */
  find(url: string): Json | undefined
  /** Wall-clock ms after which a document at hand should be renewed. */
  freshUntil(url: string): number
  /** Starts to renew a document, unless that failed a short while ago. */
  renew(url: string): void
  /**
   * Gets a document that is not at hand; concurrent callers share one request.
   * @throws ngsi-ld.context-not-available, ngsi-ld.bad-request-data when what came is no context.
   */
  fetch(url: string): Promise<Json>
  /** What is kept, the longest unfetched first. */
  kept(): readonly KeptContext[]
  /**
   * Gets a kept document anew, whatever its age; it stays as it is when that fails [NGSI-LD 5.13.5.4].
   * @throws ngsi-ld.context-not-available, also when what came is no context.
   */
  reload(url: string): Promise<void>
  /** Lets go of a kept document. */
  forget(url: string): Promise<void>
}

export interface KeptContext {
  readonly url: string
  readonly fetched: number
  readonly expires: number
}

/** What a kept document is known by; bytes are those of its text. */
interface Kept {
  readonly bytes: number
  readonly fetched: number
  readonly expires: number
}

export function createContextLibrary(
  ports: ContextLibraryPorts,
  builtIn: ReadonlyMap<string, Json>,
): ContextLibrary {
  const { records, door, clock, log } = ports
  const kept = new Map<string, Kept>()
  for (const { url, kind, fetched, expires, bytes } of records.contexts()) {
    if (kind === 'Cached')
      kept.set(url, { bytes, fetched, expires: expires ?? fetched + limits.contextAgeMs.value })
  }
  const underWay = new Map<string, Promise<Json>>()
  const failures = new Map<string, { readonly error: GatewayError; readonly until: number }>()

  const find = (url: string): Json | undefined => {
    const own = builtIn.get(pathOf(url))
    if (own !== undefined) return own
    const row = kept.has(url) ? records.context(url) : undefined
    return row === undefined ? undefined : (JSON.parse(row.body) as Json)
  }

  const keep = async (url: string, text: string, expires: number): Promise<void> => {
    const leaving: string[] = []
    kept.delete(url)
    kept.set(url, { bytes: text.length, fetched: clock.now(), expires })
    let bytes = [...kept.values()].reduce((sum, one) => sum + one.bytes, 0)
    for (const [oldest, one] of kept) {
      if (kept.size <= limits.contextsCachedMax.value && bytes <= limits.contextsBytesMax.value) break
      kept.delete(oldest)
      bytes -= one.bytes
      leaving.push(oldest)
    }
    await door.commit((stage) => {
      for (const old of leaving) stage.write('context.delete', old)
      stage.write('context.put', url, 'Cached', clock.now(), expires, text)
    })
  }

  const get = async (url: string): Promise<Json> => {
    const { fetchDocument } = ports
    if (fetchDocument === undefined) throw notAvailable(url, 'fetching is switched off')
    if (underWay.size >= limits.contextFetchesMax.value) throw notAvailable(url, 'too many are being fetched')
    const { headers, body } = await fetchDocument({
      url,
      accept: 'application/ld+json, application/json;q=0.9, */*;q=0.1',
      timeoutMs: limits.contextFetchMs.value,
      bytesMax: limits.contextBytesMax.value,
      redirectsMax: limits.contextRedirectsMax.value,
    })
    const text = body.toString('utf8')
    const document = parseDocument(url, text)
    // Throws for definitions that no context may have; what it refers to is looked at when it is used.
    compileContext(url, (other) => (other === url ? document : find(other)))
    const age = ageOf(headers)
    await keep(url, text, clock.now() + age)
    log.info('context.fetched', { url, bytes: body.length, ageMs: age })
    return document
  }

  const fail = (url: string, thrown: unknown): GatewayError => {
    const error = isGatewayError(thrown, 'ngsi-ld.bad-request-data') ? thrown : notAvailable(url, thrown)
    if (failures.size >= limits.contextsCachedMax.value) failures.clear()
    failures.set(url, { error, until: clock.monotonic() + limits.contextFailureMs.value })
    log.warn('context.unavailable', { url, reason: error.message, kept: kept.has(url) })
    return error
  }

  const obtain = (url: string): Promise<Json> => {
    const failure = failures.get(url)
    if (failure !== undefined && failure.until > clock.monotonic()) return Promise.reject(failure.error)
    return underWay.get(url) ?? start(url)
  }

  const start = (url: string): Promise<Json> => {
    const started = get(url)
      .catch((thrown: unknown) => Promise.reject(fail(url, thrown)))
      .finally(() => underWay.delete(url))
    underWay.set(url, started)
    return started
  }

  return Object.freeze({
    find,
    fetch: obtain,
    kept: () => [...kept].map(([url, { fetched, expires }]) => ({ url, fetched, expires })),
    async reload(url) {
      await (underWay.get(url) ?? start(url)).catch((thrown: unknown) => {
        throw notAvailable(url, thrown)
      })
      ports.onChange(url)
    },
    async forget(url) {
      kept.delete(url)
      failures.delete(url)
      ports.onChange(url)
      await door.commit((stage) => stage.write('context.delete', url))
    },
    freshUntil: (url) => kept.get(url)?.expires ?? Number.POSITIVE_INFINITY,
    renew(url) {
      const before = kept.get(url)
      if (before === undefined || before.expires > clock.now() || underWay.has(url)) return
      obtain(url).then(
        () => ports.onChange(url),
        () => kept.set(url, { ...before, expires: clock.now() + limits.contextAgeMsMin.value }),
      )
    },
  } satisfies ContextLibrary)
}

/** Path of an address; the address itself when it is none. What the gateway serves is at every host the same. */
function pathOf(url: string): string {
  return URL.parse(url)?.pathname ?? url
}

function parseDocument(url: string, text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw badRequestData(`the document at ${url} is not JSON`, '@context')
  }
}

function notAvailable(url: string, reason: unknown): GatewayError {
  if (isGatewayError(reason, 'ngsi-ld.context-not-available')) return reason
  const text = reason instanceof Error ? reason.message : String(reason)
  return new GatewayError('ngsi-ld.context-not-available', `@context ${url}: ${text}`, { url }, reason)
}

/** How long an answer may be used, ms: Cache-Control, else Expires, else a day [RFC 9111 4.2.1]. */
function ageOf(headers: FetchedDocument['headers']): number {
  const control = String(headers['cache-control'] ?? '')
  const maxAge = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,10})/i.exec(control)?.[1]
  const dated = Date.parse(String(headers['expires'])) - Date.parse(String(headers['date']))
  const stated = /no-store|no-cache/i.test(control) ? 0 : maxAge === undefined ? dated : Number(maxAge) * 1000
  const age = Number.isFinite(stated) ? stated : limits.contextAgeMs.value
  // An answer that forbids keeping is kept for a while all the same.
  return Math.min(limits.contextAgeMsMax.value, Math.max(limits.contextAgeMsMin.value, age))
}
