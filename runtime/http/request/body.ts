/**
 * Reads request bodies. A body is read once, as valid UTF-8 and JSON of bounded depth. Memory is bounded by
 * `limits.bodyBytesMax` for one body (batches have their own limit) and `limits.bodiesBytesMax` for all.
 * Bodies are read from the raw connection, so a body sent with GET is accepted. The content is interpreted
 * elsewhere.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Context } from 'hono'
import { limits } from '#base/limits/limits.ts'
import { createYield, nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Json } from '#contract'
import { finerTime } from '#ngsi-ld/values/datetime.ts'
import type { HttpEnv } from './http-environment.ts'
import { endOfText, type ItemTexts, splitList } from './item-texts.ts'

export type HttpContext = Context<{ Bindings: HttpEnv }>

/** A request header, read from the connection, which is several times faster than from the Request. */
export const headerOf = (c: HttpContext, name: Lowercase<string>): string | undefined =>
  c.env.incoming.headers[name] as string | undefined

export interface Bodies {
  /**
   * The complete body, unzipped if gzip, empty if there is none; for every method, including GET.
   *
   * @throws GatewayError http.unsupported-media-type for another content coding, http.body-too-large,
   * http.busy; always before the limits are exceeded.
   */
  raw(c: Pick<HttpContext, 'env'>, most?: number): Promise<Buffer>
  /**
   * Like `raw`, for components, which parse it themselves. @throws GatewayError ngsi-ld.bad-request-data if
   * it is JSON that is nested too deep or has too many values.
   */
  ofComponent(c: Pick<HttpContext, 'env'>): Promise<Buffer>
  /**
   * The body as JSON. @throws GatewayError ngsi-ld.invalid-request if it is not UTF-8, not JSON or too deep.
   */
  json(c: HttpContext): Promise<Json>
  /** Whether the JSON body has times finer than the stored precision. */
  hasFinerTimes(c: Pick<HttpContext, 'env'>): boolean
  /** The body of a batch: like `json`, but above the size limit of other bodies as the texts of its items. */
  batch(c: HttpContext): Promise<BatchBody>
}

export type BatchBody = { readonly json: Json } | { readonly texts: ItemTexts }

/** Creates body readers that share one memory budget. */
export function createBodies(): Bodies {
  const state = { held: 0, large: 0 }
  const yieldIfDue = createYield(() => performance.now(), limits.queryTurnMs.value)
  /** Requests whose body is already counted as large, so a second read does not count it again. */
  const entered = new WeakSet<IncomingMessage>()
  const raw = (c: Pick<HttpContext, 'env'>, most: number = limits.bodyBytesMax.value): Promise<Buffer> =>
    c.env.body === undefined ? readIncoming(c.env, state, most) : Promise.resolve(c.env.body)
  /** Counts a large body until its request is answered, as it stays in memory until then. */
  const enter = ({ incoming, outgoing }: HttpEnv): void => {
    if (outgoing === undefined || outgoing.closed || entered.has(incoming)) return
    if (state.large >= limits.largeBatchesMax.value)
      throw busy(`${limits.largeBatchesMax.value} large batches are in progress already`)
    state.large++
    entered.add(incoming)
    outgoing.once('close', () => state.large--)
  }
  const finer = new WeakSet<IncomingMessage>()
  /**
   * A whole body. A large one is returned in a later turn of the event loop than its last bytes: its check
   * then has a turn without other long work.
   */
  const whole = async (c: Pick<HttpContext, 'env'>, most?: number): Promise<Buffer> => {
    const body = await raw(c, most)
    if (isLarge(body)) await nextTurn()
    return body
  }
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
    async ofComponent(c) {
      const body = await whole(c)
      if (body[0] === brace || body[0] === bracket) checkShape(body, limits.componentValuesMax.value)
      return body
    },
    async json(c) {
      const body = await whole(c)
      checkBytes(body)
      return isLarge(body) ? parseAlone(c, body) : parse(c, body)
    },
    hasFinerTimes: (c) => finer.has(c.env.incoming),
    async batch(c) {
      const body = await whole(c, limits.batchBytesMax.value)
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

/** Some programs write a byte order mark before every text; parsers may ignore it [RFC 8259 8.1]. */
const byteOrderMark = 0xfeff

/** Whether a body may have more values than may be parsed in one turn. */
const isLarge = (body: Buffer): boolean => body.length > limits.bodyValuesMax.value

/**
 * Parses bytes as JSON of bounded depth.
 *
 * @throws GatewayError ngsi-ld.invalid-request
 */
export function parseJson(body: Buffer): Json {
  checkBytes(body)
  return parseChecked(body)
}

/**
 * Refuses bytes that are not UTF-8, and large bodies that are too deep or have too many values. @throws
 * GatewayError ngsi-ld.invalid-request
 */
function checkBytes(body: Buffer): void {
  checkText(body)
  if (isLarge(body)) checkShape(body)
}

/** Refuses an empty body and bytes that are not UTF-8. @throws GatewayError ngsi-ld.invalid-request */
function checkText(body: Buffer): void {
  if (body.length === 0) throw new GatewayError('ngsi-ld.invalid-request', 'the request has no body')
  if (!isUtf8(body)) throw new GatewayError('ngsi-ld.invalid-request', 'the body is not valid UTF-8')
}

/** @param look receives the text if it is JSON. */
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

/** Refuses a large body by its bytes, before parsing. @throws GatewayError ngsi-ld.bad-request-data */
function checkShape(body: Buffer, most = limits.bodyValuesMax.value): void {
  const { isDeep, hasMany } = shapeOf(body, most)
  if (isDeep) throw tooDeep()
  if (!hasMany) return
  const detail = `the body has more than ${most} values`
  throw new GatewayError('ngsi-ld.bad-request-data', detail)
}

const quote = 0x22
const comma = 0x2c
const bracket = 0x5b
const bracketEnd = 0x5d
const brace = 0x7b
const braceEnd = 0x7d

/**
 * Whether the body has too many values to parse in one turn, and whether it is nested too deep. It counts
 * commas and brackets outside of strings.
 */
function shapeOf(
  body: Buffer,
  most = limits.bodyValuesMax.value,
): { readonly isDeep: boolean; readonly hasMany: boolean } {
  const levels = limits.jsonDepthMax.value
  const { length } = body
  let count = 0
  let depth = 0
  for (let at = 0; at < length; at++) {
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

/** The size of one socket read. */
const chunkBytes = 65_536

/**
 * Returns a buffer with room for `needed` bytes. It grows with the bytes received, because a client may
 * announce a length and send nothing. Memory of the smaller buffer is freed at once, not by a collection.
 */
function grown(
  buffer: Buffer<ArrayBuffer>,
  { needed, length }: { readonly needed: number; readonly length: number },
): Buffer<ArrayBuffer> {
  if (needed <= buffer.length) return buffer
  return Buffer.from(buffer.buffer.transfer(Math.min(length, Math.max(needed, 2 * buffer.length))))
}

/**
 * @param all.held counts the uncompressed bytes of all bodies that are arriving or whose requests are
 * unanswered.
 */
function readIncoming(
  { incoming, outgoing }: Pick<HttpEnv, 'incoming' | 'outgoing'>,
  all: { held: number },
  max: number,
): Promise<Buffer> {
  const coding = incoming.headers['content-encoding']?.trim().toLowerCase() ?? ''
  const isPacked = coding === 'gzip' || coding === 'x-gzip'
  if (!isPacked && coding !== '' && coding !== 'identity') return Promise.reject(encoded(coding))
  // Compressed data is rarely larger than its content, so its length can be checked in advance.
  if (Number(incoming.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge(max))
  if (incoming.destroyed) return Promise.reject(cutOff())
  const source: Readable = isPacked ? incoming.pipe(createGunzip()) : incoming
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    // Chunks are copied into one buffer as they arrive; joining them at the end would need twice the memory.
    const length = isPacked ? 0 : Number(incoming.headers['content-length'] ?? 0)
    let whole = length > chunkBytes ? Buffer.allocUnsafeSlow(chunkBytes) : undefined
    let size = 0
    const onData = (chunk: Buffer): void => {
      if (whole === undefined) chunks.push(chunk)
      else {
        whole = grown(whole, { needed: size + chunk.length, length })
        chunk.copy(whole, size)
      }
      size += chunk.length
      all.held += chunk.length
      if (size > max) finish(() => reject(tooLarge(max)))
      else if (all.held > limits.bodiesBytesMax.value)
        finish(() =>
          reject(busy(`bodies of more than ${limits.bodiesBytesMax.value} bytes are in memory already`)),
        )
    }
    const onEnd = (): void => {
      const bytes = size
      finish(() => resolve(whole ?? (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
      if (outgoing === undefined || outgoing.closed) return
      // The body stays in memory until the request is answered, which may wait for a context or a source.
      all.held += bytes
      outgoing.once('close', () => {
        all.held -= bytes
      })
    }
    const onClose = (): void => {
      // The body arrived completely and may still be unzipping.
      if (isPacked && incoming.complete) return
      finish(() => reject(cutOff()))
    }
    const onBroken = (cause: Error): void => {
      finish(() =>
        reject(new GatewayError('ngsi-ld.invalid-request', 'the body is not valid gzip', {}, cause)),
      )
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

/** Swallows late errors of a destroyed stream. */
const ignore = (): void => {}

function encoded(coding: string): GatewayError {
  const detail = `Content-Encoding ${coding} is not supported; send gzip, or the body as it is`
  return new GatewayError('http.unsupported-media-type', detail, { codings: 'gzip, identity' })
}

const cutOff = (): GatewayError =>
  new GatewayError('ngsi-ld.invalid-request', 'the connection ended before the body did')

function tooLarge(max: number): GatewayError {
  return new GatewayError('http.body-too-large', `the body is larger than ${max} bytes`)
}

function busy(reason: string): GatewayError {
  return new GatewayError('http.busy', `${reason}; retry later`)
}
