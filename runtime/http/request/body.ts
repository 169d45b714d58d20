/**
 * Request bodies: read once, never more than `limits.bodyBytesMax` of one (a batch has a limit of its own) nor `limits.bodiesBytesMax` of all in
 * memory, valid UTF-8, JSON of bounded depth. A body is read from the raw connection, so that one sent with GET is
 * kept. What the JSON means is for others.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import type { Context } from 'hono'
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { finerTime } from '#ngsi-ld/values/datetime.ts'
import type { HttpEnv } from './http-environment.ts'
import { endOfText, type ItemTexts, splitList } from './item-texts.ts'

export type HttpContext = Context<{ Bindings: HttpEnv }>

/** A request header; straight from the connection, since that is several times faster. */
export const headerOf = (c: HttpContext, name: Lowercase<string>): string | undefined =>
  c.env.incoming.headers[name] as string | undefined

export interface Bodies {
  /**
   * The whole body, unpacked where it is gzip, empty when there is none; for every method, GET too.
   * @throws GatewayError http.unsupported-media-type for another content coding, http.body-too-large, http.busy; before
   *   more than the limits are held.
   */
  raw(c: Pick<HttpContext, 'env'>, most?: number): Promise<Buffer>
  /** The body as JSON. @throws GatewayError ngsi-ld.invalid-request when it is no UTF-8, no JSON or too deep. */
  json(c: HttpContext): Promise<Json>
  /** Whether a body that was read as JSON has times finer than those that are kept. */
  hasFinerTimes(c: Pick<HttpContext, 'env'>): boolean
  /** The body of a batch: as `json`, but as texts of its items where it is larger than other bodies may be. */
  batch(c: HttpContext): Promise<BatchBody>
}

export type BatchBody = { readonly json: Json } | { readonly texts: ItemTexts }

/** Readers of bodies that share one allowance of memory. */
export function createBodies(): Bodies {
  const state = { held: 0, large: 0 }
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)
  /** Requests whose body counts as large already, whoever reads it once more. */
  const entered = new WeakSet<IncomingMessage>()
  const raw = (c: Pick<HttpContext, 'env'>, most: number = limits.bodyBytesMax.value): Promise<Buffer> =>
    c.env.body === undefined ? readIncoming(c.env, state, most) : Promise.resolve(c.env.body)
  /** A large body is in memory until it is answered. */
  const enter = ({ incoming, outgoing }: HttpEnv): void => {
    if (outgoing === undefined || outgoing.closed || entered.has(incoming)) return
    if (state.large >= limits.largeBatchesMax.value) throw tooMany()
    state.large++
    entered.add(incoming)
    outgoing.once('close', () => state.large--)
  }
  const finer = new WeakSet<IncomingMessage>()
  const parse = ({ env }: Pick<HttpContext, 'env'>, body: Buffer): Json =>
    parseChecked(body, (text) => {
      if (finerTime.test(text)) finer.add(env.incoming)
    })
  /** Parses a large body, whose bytes were checked, in a turn of its own. */
  const parseAlone = async (c: Pick<HttpContext, 'env'>, body: Buffer): Promise<Json> => {
    await nextTurn()
    const json = parse(c, body)
    await nextTurn()
    return json
  }
  return Object.freeze({
    raw,
    async json(c) {
      const body = await raw(c)
      checkBytes(body)
      return isLarge(body) ? parseAlone(c, body) : parse(c, body)
    },
    hasFinerTimes: (c) => finer.has(c.env.incoming),
    async batch(c) {
      const body = await raw(c, limits.batchBytesMax.value)
      checkText(body)
      if (!isLarge(body)) return { json: parse(c, body) }
      const isSmall = body.length <= limits.bodyBytesMax.value
      const shape = isSmall ? shapeOf(body) : undefined
      if (shape?.isDeep === true) throw tooDeep()
      if (shape?.hasMany === false) return { json: await parseAlone(c, body) }
      if (!isSmall) enter(c.env)
      return { texts: await splitList(body, limits.batchEntitiesMax.value, yieldIfDue) }
    },
  } satisfies Bodies)
}

/** Some programs write it before every text; it may be ignored [RFC 8259 8.1]. */
const byteOrderMark = 0xfeff

/** Whether a body may have more values than are parsed at once. */
const isLarge = (body: Buffer): boolean => body.length > limits.bodyValuesMax.value

/**
 * Bytes as JSON of bounded depth.
 * @throws GatewayError ngsi-ld.invalid-request
 */
export function parseJson(body: Buffer): Json {
  checkBytes(body)
  return parseChecked(body)
}

/** Refuses bytes that are no text, and a large body by its shape. @throws GatewayError ngsi-ld.invalid-request */
function checkBytes(body: Buffer): void {
  checkText(body)
  if (isLarge(body)) checkShape(body)
}

/** Refuses bytes that are no text. @throws GatewayError ngsi-ld.invalid-request */
function checkText(body: Buffer): void {
  if (body.length === 0) throw new GatewayError('ngsi-ld.invalid-request', 'the request has no body')
  if (!isUtf8(body)) throw new GatewayError('ngsi-ld.invalid-request', 'the body is not valid UTF-8')
}

/** @param look sees the text, where it is JSON. */
function parseChecked(body: Buffer, look?: (text: string) => void): Json {
  let value: Json
  try {
    const text = body.toString('utf8')
    value = JSON.parse(text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text) as Json
    look?.(text)
  } catch (cause) {
    throw new GatewayError(
      'ngsi-ld.invalid-request',
      `the body is not JSON: ${(cause as Error).message}`,
      {},
      cause,
    )
  }
  if (!isLarge(body) && !isShallow(value, limits.jsonDepthMax.value)) throw tooDeep()
  return value
}

function tooDeep(): GatewayError {
  const detail = `the body is nested deeper than ${limits.jsonDepthMax.value} levels`
  return new GatewayError('ngsi-ld.bad-request-data', detail)
}

/** Refuses a large body by its bytes, before it is parsed. @throws GatewayError ngsi-ld.bad-request-data */
function checkShape(body: Buffer): void {
  const { isDeep, hasMany } = shapeOf(body)
  if (isDeep) throw tooDeep()
  if (!hasMany) return
  const detail = `the body has more than ${limits.bodyValuesMax.value} values`
  throw new GatewayError('ngsi-ld.bad-request-data', detail)
}

const [quote, comma, bracket, brace, bracketEnd, braceEnd] = Buffer.from(
  '",[{]}',
) as unknown as readonly number[]

/**
 * Whether parsing the body would take long, and whether it is nested too deep: commas and brackets are counted, those in texts
 * are not.
 */
function shapeOf(body: Buffer): { readonly isDeep: boolean; readonly hasMany: boolean } {
  const [most, levels] = [limits.bodyValuesMax.value, limits.jsonDepthMax.value]
  let [count, depth] = [0, 0]
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) at = endOfText(body, at)
    else if (byte === bracketEnd || byte === braceEnd) depth--
    else if (byte === comma || byte === bracket || byte === brace) {
      if (byte !== comma && ++depth > levels) return { isDeep: true, hasMany: false }
      if (++count > most) return { isDeep: false, hasMany: true }
    }
  }
  return { isDeep: false, hasMany: false }
}

function isShallow(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  const members: readonly Json[] = Array.isArray(value) ? value : Object.values(value)
  return members.every((member) => isShallow(member, levels - 1))
}

/** What a socket gives at a time. */
const chunkBytes = 65_536

/** A buffer with room for `needed` bytes. It grows with what arrives: a client may declare a length and send nothing. */
function grown(
  buffer: Buffer,
  { size, needed, length }: { readonly size: number; readonly needed: number; readonly length: number },
): Buffer {
  if (needed <= buffer.length) return buffer
  const larger = Buffer.allocUnsafeSlow(Math.min(length, Math.max(needed, 2 * buffer.length)))
  buffer.copy(larger, 0, 0, size)
  return larger
}

/** `all.held` counts the bytes of bodies that arrive or whose requests are not answered yet, as they are when they are unpacked. */
function readIncoming(
  { incoming, outgoing }: Pick<HttpEnv, 'incoming' | 'outgoing'>,
  all: { held: number },
  max: number,
): Promise<Buffer> {
  const coding = incoming.headers['content-encoding']?.trim().toLowerCase() ?? ''
  const isPacked = coding === 'gzip' || coding === 'x-gzip'
  if (!isPacked && coding !== '' && coding !== 'identity') return Promise.reject(encoded(coding))
  // What is packed is hardly smaller when it is unpacked.
  if (Number(incoming.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge(max))
  const source: Readable = isPacked ? incoming.pipe(createGunzip()) : incoming
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    // Copied as they come, because joined at the end they would be in memory twice.
    const length = isPacked ? 0 : Number(incoming.headers['content-length'] ?? 0)
    let whole: Buffer | undefined = length > chunkBytes ? Buffer.allocUnsafeSlow(chunkBytes) : undefined
    let size = 0
    const onData = (chunk: Buffer): void => {
      if (whole === undefined) chunks.push(chunk)
      else {
        whole = grown(whole, { size, needed: size + chunk.length, length })
        chunk.copy(whole, size)
      }
      size += chunk.length
      all.held += chunk.length
      if (size > max) finish(() => reject(tooLarge(max)))
      else if (all.held > limits.bodiesBytesMax.value) finish(() => reject(tooMany()))
    }
    const onEnd = (): void => {
      const bytes = size
      finish(() => resolve(whole ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
      if (outgoing === undefined || outgoing.closed) return
      // It is in memory until the request is answered, which may wait for a context or a source.
      all.held += bytes
      outgoing.once('close', () => {
        all.held -= bytes
      })
    }
    const onClose = (): void => {
      // What arrived whole may still be unpacked.
      if (isPacked && incoming.complete) return
      finish(() =>
        reject(new GatewayError('ngsi-ld.invalid-request', 'the connection ended before the body did')),
      )
    }
    const onBroken = (cause: Error): void => {
      finish(() => reject(new GatewayError('ngsi-ld.invalid-request', 'the body is no gzip', {}, cause)))
    }
    const finish = (settle: () => void): void => {
      source.off('data', onData).off('end', onEnd)
      incoming.off('error', onClose).off('close', onClose)
      if (isPacked) {
        incoming.unpipe()
        incoming.resume()
        source.off('error', onBroken).on('error', ignore).destroy()
      }
      all.held -= size
      settle()
    }
    source.on('data', onData).on('end', onEnd)
    incoming.on('error', onClose).on('close', onClose)
    if (isPacked) source.on('error', onBroken)
  })
}

/** What is thrown away may break. */
const ignore = (): void => {}

function encoded(coding: string): GatewayError {
  const detail = `Content-Encoding ${coding} is not supported; send gzip, or the body as it is`
  return new GatewayError('http.unsupported-media-type', detail, { codings: 'gzip, identity' })
}

function tooLarge(max: number): GatewayError {
  return new GatewayError('http.body-too-large', `the body is larger than ${max} bytes`)
}

function tooMany(): GatewayError {
  return new GatewayError(
    'http.busy',
    `bodies of more than ${limits.bodiesBytesMax.value} bytes are arriving or wait for their answers`,
  )
}
