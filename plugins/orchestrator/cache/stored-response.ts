/**
 * A response in the cache: what makes one storable, whether it is still valid, and how it is sent again.
 * `response-cache.ts` sets the time until which it may be used, and the last write of a client. Pure.
 */
import { hash } from 'node:crypto'
import type { ChangeValidity, Reply } from '#contract'
import { isObject } from '#ngsi-ld/values/json.ts'
import { isKeyed } from './cache-key.ts'

export interface StoredResponse {
  /** Names in lower case, with the entity tag and without the length. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** When the request was sent to the broker, wall clock ms. */
  readonly requestedAt: number
  /** Valid before this time, wall clock ms. */
  readonly until: number
  /** Valid while this is the number of the last change; undefined if only time counts. */
  readonly change: number | undefined
  /** The process that stored it; only this one knows its change numbers. */
  readonly instance: string
  readonly etag: string
}

/** Whether a response may be stored [RFC 9111 3]. */
export function isStorable({ status, headers }: Pick<Response, 'status' | 'headers'>): boolean {
  if (status !== 200 || headers.has('set-cookie') || headers.has('ngsild-warning')) return false
  if (!/^application\/(?:[\w.-]+\+)?json\b/.test(headers.get('content-type') ?? '')) return false
  if (/no-store|no-cache|private/i.test(headers.get('cache-control') ?? '')) return false
  const vary = headers.get('vary') ?? ''
  return vary.split(',').every((name) => name.trim() === '' || isKeyed(name.trim().toLowerCase()))
}

/** The time (ms) for which a broker allows to use its response; undefined if it states none. */
export function statedAge(headers: Headers): number | undefined {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers.get('cache-control') ?? '')?.[1]
  return seconds === undefined
    ? undefined
    : Math.max(0, Number(seconds) - Number(headers.get('age') ?? 0)) * 1000
}

/** The entity tag of a response: that of the broker, else one of its content. */
export const tagOf = (headers: Headers, body: Buffer): string =>
  headers.get('etag') ?? `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"`

/** Whether a stored response may be used. @param lastWrite time of the last write of its tenant, ms. */
export function isValid(
  stored: StoredResponse,
  now: number,
  {
    validity,
    lastWrite,
    instance,
  }: { validity: ChangeValidity | undefined; lastWrite: number; instance: string },
): boolean {
  if (now >= stored.until || stored.requestedAt > now || stored.requestedAt <= lastWrite) return false
  if (stored.change === undefined) return validity === undefined
  return stored.instance === instance && validity?.change === stored.change && now < validity.until
}

/** Headers of a response as they are stored. */
export function storedHeaders(headers: Headers, etag: string): StoredResponse['headers'] {
  const { 'content-length': _, ...kept } = Object.fromEntries(headers)
  return { ...kept, etag }
}

/** The response to a client: 304 if it names the tag. */
export function sentAgain(
  { headers: stored, body, etag, requestedAt }: StoredResponse,
  { ifNoneMatch, now, isHit }: { ifNoneMatch: string | null; now: number; isHit: boolean },
): Reply {
  const headers = isHit ? { ...stored, age: ageOf(stored, now - requestedAt), ...hit } : stored
  if (ifNoneMatch === null || !names(ifNoneMatch, etag)) return { status: 200, headers, body }
  const { 'content-type': _, 'content-encoding': __, ...rest } = headers as Record<string, string>
  return { status: 304, headers: rest, body: null }
}

const hit = { 'cache-status': 'selvedge-orchestrator; hit' }

/** Seconds since the response left its origin. */
function ageOf({ age }: StoredResponse['headers'], ms: number): string {
  const before = Math.max(0, Number(age ?? 0)) || 0
  return String(Math.ceil(ms / 1000 + before))
}

/** Weak comparison [RFC 9110 13.1.2]. */
function names(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  const opaque = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === opaque)
}

/** A stored response as bytes, for a store of others. */
export function packed(stored: StoredResponse): Buffer {
  const { body, ...head } = stored
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  return Buffer.concat([length, text, body])
}

/** Undefined if the bytes are not a stored response. */
export function unpacked(bytes: Buffer): StoredResponse | undefined {
  try {
    const end = 4 + bytes.readUInt32BE(0)
    const head = JSON.parse(bytes.toString('utf8', 4, end)) as Partial<StoredResponse>
    const { headers, requestedAt, until, change, instance, etag } = head
    if (!isObject(headers) || typeof requestedAt !== 'number' || typeof until !== 'number') return undefined
    if (typeof instance !== 'string' || typeof etag !== 'string') return undefined
    return { headers, requestedAt, until, change, instance, etag, body: bytes.subarray(end) }
  } catch {
    return undefined
  }
}
