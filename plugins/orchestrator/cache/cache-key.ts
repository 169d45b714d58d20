/**
 * Which responses may be cached, and under which key: by broker, tenant, credentials, target and all headers
 * that a broker may heed. Pure.
 */
import { hash } from 'node:crypto'
import { partsOf } from '#ngsi-ld/values/request-target.ts'

export interface CachedRequest {
  readonly method: string
  /** Path and query as written. */
  readonly target: string
  readonly headers: Pick<Headers, 'get' | 'has'>
}

export interface CacheableRequest {
  readonly key: string
  readonly tenant: string
  /** Whether the client names a @context, which may change without a change of entities. */
  readonly hasContext: boolean
  readonly ifNoneMatch: string | null
}

/** Headers that choose a representation or rights. */
const choosing = [
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cookie',
  'link',
  'ngsild-tenant',
  'prefer',
  'x-auth-token',
] as const

/** Headers of requests that are never cached. */
const uncached = [
  'expect',
  'if-match',
  'if-modified-since',
  'if-unmodified-since',
  'ngsild-entitymap',
  'ngsild-snapshot',
  'range',
  'upgrade',
  'via',
] as const

const paths = /^\/ngsi-ld\/v1\/(?:entities|types|attributes)(?:\/[^/]+)?\/?$/

/**
 * The key of a GET without a body; undefined if its response may not be cached.
 *
 * @param broker the address of the broker.
 */
export function cacheableOf(
  { method, target, headers }: CachedRequest,
  broker: string,
): CacheableRequest | undefined {
  const [path, query] = partsOf(target)
  if (method !== 'GET' || !paths.test(path) || /entityMap/i.test(query)) return undefined
  if (uncached.some((name) => headers.has(name)) || hasBody(headers) || isFresh(headers)) return undefined
  // Another broker does not receive headers that Connection names, so they must not choose its response.
  if (connectionNames(headers).some(isKeyed)) return undefined
  const link = headers.get('link')
  const values = choosing.map((name) => headers.get(name))
  return {
    key: hash('sha256', JSON.stringify([broker, target, ...values])),
    tenant: headers.get('ngsild-tenant') ?? '',
    hasContext: link !== null,
    ifNoneMatch: headers.get('if-none-match'),
  }
}

const connectionNames = (headers: CachedRequest['headers']): readonly string[] =>
  (headers.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase())

const hasBody = (headers: CachedRequest['headers']): boolean =>
  headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0

/** Whether the client wants a response of the broker itself [RFC 9111 5.2.1]. */
const isFresh = (headers: CachedRequest['headers']): boolean =>
  headers.has('pragma') || /no-cache|no-store|max-age|min-fresh/i.test(headers.get('cache-control') ?? '')

/** Whether the key has a header, such as one in Vary. */
export const isKeyed = (name: string): boolean => (choosing as readonly string[]).includes(name)
