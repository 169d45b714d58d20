/**
 * The @context documents that clients refer to: built in, on disk, or fetched once and then cached. A cached
 * copy is used for as long as a newer one cannot be fetched, so that a site without Internet keeps working.
 * Expired copies are renewed in the background. The transport is a port.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { ClockAndLog } from '#base/process/instruments.ts'
import { GatewayError, isGatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Json } from '#contract/pipeline.ts'
import { readTerms } from '#ngsi-ld/context/context-terms.ts'
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

/** Fetches a complete document, or rejects with a GatewayError that contains the reason. */
export type FetchDocument = (request: DocumentRequest) => Promise<FetchedDocument>

export interface ContextLibraryPorts extends ClockAndLog {
  readonly records: { context(url: string): ContextRow | undefined; contexts(): readonly ContextFacts[] }
  readonly door: Pick<Door, 'commit'>
  /** Absent if fetching is disabled. */
  readonly fetchDocument: FetchDocument | undefined
  /** Called when a newer version replaced a document. */
  readonly onChange: (url: string) => void
}

export interface ContextLibrary {
  /** The document, if it is available locally. */
  find(url: string): Json | undefined
  /** Wall-clock ms after which a local document should be renewed. */
  freshUntil(url: string): number
  /** Starts to renew a document, unless that failed a short while ago. */
  renew(url: string): void
  /**
   * Fetches a document that is not available locally; concurrent callers share one request.
   *
   * @throws ngsi-ld.context-not-available, or ngsi-ld.bad-request-data if the document is not a valid
   * @context.
   */
  fetch(url: string): Promise<Json>
  /** The cached documents, least recently fetched first. */
  cached(): readonly CachedContext[]
  /**
   * Fetches a cached document again, whatever its age; if that fails, the copy stays unchanged [NGSI-LD
   * 5.13.5.4].
   *
   * @throws ngsi-ld.context-not-available, also if the document is not a valid @context.
   */
  reload(url: string): Promise<void>
  /** Removes a cached document. */
  forget(url: string): Promise<void>
}

export interface CachedContext {
  readonly url: string
  readonly fetched: number
  readonly expires: number
}

/** Facts about a cached document; `bytes` is the size of its text. */
interface CachedFacts {
  readonly bytes: number
  readonly fetched: number
  readonly expires: number
}

export function createContextLibrary(
  ports: ContextLibraryPorts,
  builtIn: ReadonlyMap<string, Json>,
): ContextLibrary {
  const { records, door, clock, log } = ports
  const cached = new Map<string, CachedFacts>()
  for (const { url, kind, fetched, expires, bytes } of records.contexts()) {
    if (kind === 'Cached')
      cached.set(url, { bytes, fetched, expires: expires ?? fetched + limits.contextAgeMs.value })
  }
  const fetching = new Map<string, Promise<Json>>()
  const failures = new Map<string, { readonly error: GatewayError; readonly until: number }>()

  const find = (url: string): Json | undefined => {
    const own = builtIn.get(pathOf(url))
    if (own !== undefined) return own
    const row = cached.has(url) ? records.context(url) : undefined
    return row === undefined ? undefined : (JSON.parse(row.body) as Json)
  }

  const store = async (url: string, text: string, expires: number): Promise<void> => {
    const evicted: string[] = []
    cached.delete(url)
    cached.set(url, { bytes: text.length, fetched: clock.now(), expires })
    let bytes = [...cached.values()].reduce((sum, one) => sum + one.bytes, 0)
    for (const [oldest, one] of cached) {
      if (cached.size <= limits.contextsCachedMax.value && bytes <= limits.contextsBytesMax.value) break
      cached.delete(oldest)
      bytes -= one.bytes
      evicted.push(oldest)
    }
    await door.commit((stage) => {
      for (const old of evicted) stage.write('context.delete', old)
      stage.write('context.put', url, 'Cached', clock.now(), expires, text)
    })
  }

  const get = async (url: string): Promise<Json> => {
    const { fetchDocument } = ports
    if (fetchDocument === undefined) throw notAvailable(url, 'fetching is disabled')
    if (fetching.size >= limits.contextFetchesMax.value)
      throw notAvailable(url, 'too many @contexts are being fetched; retry later')
    const { headers, body } = await fetchDocument({
      url,
      accept: 'application/ld+json, application/json;q=0.9, */*;q=0.1',
      timeoutMs: limits.contextFetchMs.value,
      bytesMax: limits.contextBytesMax.value,
      redirectsMax: limits.contextRedirectsMax.value,
    })
    const text = body.toString('utf8')
    const document = parseDocument(url, text)
    // Throws for definitions that no @context may contain. Documents it refers to are checked when it is
    // used.
    await nextTurn()
    readTerms(url, (other) => (other === url ? document : find(other)))
    const age = ageOf(headers)
    await store(url, text, clock.now() + age)
    log.info('context.fetched', { url, bytes: body.length, ageMs: age })
    return document
  }

  const fail = (url: string, thrown: unknown): GatewayError => {
    const error = isGatewayError(thrown, 'ngsi-ld.bad-request-data') ? thrown : notAvailable(url, thrown)
    if (failures.size >= limits.contextsCachedMax.value) failures.clear()
    failures.set(url, { error, until: clock.monotonic() + limits.contextFailureMs.value })
    log.warn('context.unavailable', { url, reason: error.message, kept: cached.has(url) })
    return error
  }

  const fetchOnce = (url: string): Promise<Json> => {
    const failure = failures.get(url)
    if (failure !== undefined && failure.until > clock.monotonic()) return Promise.reject(failure.error)
    return fetching.get(url) ?? start(url)
  }

  const start = (url: string): Promise<Json> => {
    const started = get(url)
      .catch((thrown: unknown) => Promise.reject(fail(url, thrown)))
      .finally(() => fetching.delete(url))
    fetching.set(url, started)
    return started
  }

  return Object.freeze({
    find,
    fetch: fetchOnce,
    cached: () => [...cached].map(([url, { fetched, expires }]) => ({ url, fetched, expires })),
    async reload(url) {
      await (fetching.get(url) ?? start(url)).catch((thrown: unknown) => {
        throw notAvailable(url, thrown)
      })
      ports.onChange(url)
    },
    async forget(url) {
      cached.delete(url)
      failures.delete(url)
      ports.onChange(url)
      await door.commit((stage) => stage.write('context.delete', url))
    },
    freshUntil: (url) => cached.get(url)?.expires ?? Number.POSITIVE_INFINITY,
    renew(url) {
      const before = cached.get(url)
      if (before === undefined || before.expires > clock.now() || fetching.has(url)) return
      fetchOnce(url).then(
        () => ports.onChange(url),
        () => cached.set(url, { ...before, expires: clock.now() + limits.contextAgeMsMin.value }),
      )
    },
  } satisfies ContextLibrary)
}

/** The path of a URL, or the text itself if it is not a URL. Built-in documents match at any host. */
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

/** How long a response may be cached, ms: Cache-Control, else Expires, else a day [RFC 9111 4.2.1]. */
function ageOf(headers: FetchedDocument['headers']): number {
  const control = String(headers['cache-control'] ?? '')
  const maxAge = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,10})/i.exec(control)?.[1]
  const dated = Date.parse(String(headers['expires'])) - Date.parse(String(headers['date']))
  const stated = /no-store|no-cache/i.test(control) ? 0 : maxAge === undefined ? dated : Number(maxAge) * 1000
  const age = Number.isFinite(stated) ? stated : limits.contextAgeMs.value
  // A response that forbids caching is still cached for the minimum age.
  return Math.min(limits.contextAgeMsMax.value, Math.max(limits.contextAgeMsMin.value, age))
}
