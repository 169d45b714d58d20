/**
 * Caches responses to GET. Those of this gateway are valid while the number of its last change is the same.
 * Those of another broker are valid for a short time, or until a client writes through the proxy, whichever
 * comes first. This file sets that time and records the writes; `stored-response.ts` decides what may be
 * stored and whether it is still valid. Each response is stored in memory, and as a copy in Redis if there is
 * one.
 */
import { randomUUID } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { ForwardPort, ProxiedRequest, Reply } from '#contract'
import { type CacheableRequest, type CachedRequest, cacheableOf } from './cache-key.ts'
import type { MemoryStore } from './memory-store.ts'
import type { RedisCopies } from './redis-copies.ts'
import {
  isStorable,
  isValid,
  packed,
  type StoredResponse,
  sentAgain,
  statedAge,
  storedHeaders,
  tagOf,
  unpacked,
} from './stored-response.ts'

export interface ResponseCachePorts {
  readonly broker: ForwardPort
  readonly memory: MemoryStore
  /** Undefined if there is no Redis. */
  readonly copies: Pick<RedisCopies, 'response' | 'putResponse'> | undefined
  readonly now: () => number
}

export interface ResponseCacheSettings {
  /** How long responses of another broker are used, ms; 0 caches none. */
  readonly remoteMs: number
}

export type ResponseCache = ReturnType<typeof createResponseCache>

export function createResponseCache(
  { broker, memory, copies, now }: ResponseCachePorts,
  { remoteMs }: ResponseCacheSettings,
) {
  const instance = randomUUID()
  /** When a client last wrote through the proxy, by tenant. */
  const lastWrites = new Map<string, number>()
  /** Applies to tenants that are not in the map. */
  let lastWriteElsewhere = Number.NEGATIVE_INFINITY
  const counts = { hits: 0, misses: 0 }

  const lastWriteOf = (tenant: string): number => lastWrites.get(tenant) ?? lastWriteElsewhere

  function isUsable(stored: StoredResponse, tenant: string): boolean {
    const state = { validity: broker.validity?.(tenant), lastWrite: lastWriteOf(tenant), instance }
    return isValid(stored, now(), state)
  }

  function inMemory({ key, tenant }: CacheableRequest): StoredResponse | undefined {
    const stored = memory.get(key)
    if (stored === undefined || isUsable(stored, tenant)) return stored
    memory.remove(key)
    return undefined
  }

  async function copied({ key, tenant }: CacheableRequest): Promise<StoredResponse | undefined> {
    const copy = await copies?.response(tenant, key)
    const stored = copy && unpacked(copy)
    if (stored === undefined || !isUsable(stored, tenant)) return undefined
    memory.set(key, stored)
    return stored
  }

  function hit(stored: StoredResponse, { ifNoneMatch }: CacheableRequest): Reply {
    counts.hits++
    return sentAgain(stored, { ifNoneMatch, now: now(), isHit: true })
  }

  /** The time until which a new response may be used; undefined if it may not be stored. */
  function untilOf(response: Response, { tenant, hasContext }: CacheableRequest, requestedAt: number) {
    if (!isStorable(response)) return undefined
    if (broker.validity === undefined) {
      const ms = Math.min(remoteMs, statedAge(response.headers) ?? remoteMs)
      return ms > 0 ? { until: requestedAt + ms, change: undefined } : undefined
    }
    const validity = broker.validity(tenant)
    if (validity === undefined) return undefined
    const ms = hasContext ? limits.orchestratorContextMs.value : limits.orchestratorCacheMs.value
    return { until: Math.min(requestedAt + ms, validity.until), change: validity.change }
  }

  async function fetched(forwarded: ProxiedRequest, wanted: CacheableRequest): Promise<Response> {
    const { tenant, key, ifNoneMatch } = wanted
    const requestedAt = now()
    const before = broker.validity?.(tenant)
    const response = await broker.forward(forwarded)
    const until = untilOf(response, wanted, requestedAt)
    if (until === undefined) return response
    // A change during the read may be in a part of the response.
    if (before?.change !== until.change) return response
    const read = await readUpTo(response, limits.orchestratorCachedBytes.value).catch(cutOff)
    if (read instanceof Response) return read
    const { headers } = response
    const etag = tagOf(headers, read)
    const stored: StoredResponse = {
      headers: storedHeaders(headers, etag),
      body: read,
      requestedAt,
      ...until,
      instance,
      etag,
    }
    if (lastWriteOf(tenant) < requestedAt) {
      memory.set(key, stored)
      copies?.putResponse(tenant, key, packed(stored), until.until - requestedAt)
    }
    return responseOf(sentAgain(stored, { ifNoneMatch, now: requestedAt, isHit: false }))
  }

  return Object.freeze({
    /** Responds from memory; undefined if `respond` has to respond. */
    direct(request: CachedRequest): Reply | undefined {
      const wanted = cacheableOf(request, broker.address)
      const stored = wanted && inMemory(wanted)
      return stored && hit(stored, wanted)
    },
    /** Responds from the cache, or forwards the request. */
    async respond(forwarded: ProxiedRequest, request: CachedRequest): Promise<Response> {
      const wanted = cacheableOf(request, broker.address)
      const isOff = broker.validity === undefined && remoteMs === 0
      if (wanted === undefined || isOff) return broker.forward(forwarded)
      const stored = inMemory(wanted) ?? (await copied(wanted))
      if (stored !== undefined) return responseOf(hit(stored, wanted))
      counts.misses++
      return fetched(forwarded, wanted)
    },
    /** To be called before and after a write of a client: earlier responses of the tenant become invalid. */
    noteWrite(tenant: string): void {
      if (broker.validity !== undefined) return
      lastWrites.delete(tenant)
      lastWrites.set(tenant, now())
      if (lastWrites.size <= limits.orchestratorWritersMax.value) return
      lastWriteElsewhere = now()
      lastWrites.clear()
    },
    status: () => ({ ...counts, ...memory.status() }),
  })
}

const responseOf = ({ status, headers, body }: Reply): Response => new Response(body, { status, headers })

const cutOff = (error: unknown): never => {
  throw new GatewayError('peer.unavailable', `the response was cut off: ${(error as Error).message}`)
}

/** The body if it has at most this many bytes; else a response with the same content. */
async function readUpTo(response: Response, most: number): Promise<Buffer | Response> {
  const { body, status, headers } = response
  if (Number(headers.get('content-length') ?? 0) > most) return response
  if (body === null) return Buffer.alloc(0)
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const chunk = part.value as Uint8Array
    chunks.push(chunk)
    size += chunk.length
    if (size > most) return new Response(continued(chunks, reader), { status, headers })
  }
  return Buffer.concat(chunks)
}

/** A stream of what was read, and of the rest. */
function continued(
  chunks: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
    },
    async pull(controller) {
      const part = await reader.read()
      if (part.done) controller.close()
      else controller.enqueue(part.value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
