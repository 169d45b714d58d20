/**
 * Request bodies: read once, never more than `limits.bodyBytesMax` in memory, valid UTF-8, JSON of bounded depth.
 * A body is read from the raw connection, so that one sent with GET is kept. What the JSON means is for others.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract'
import type { HttpEnv } from './server.ts'

export type HttpContext = Context<{ Bindings: HttpEnv }>

/** A request header; straight from the connection where there is one, since that is several times faster. */
export function headerOf(c: HttpContext, name: Lowercase<string>): string | undefined {
  const incoming = c.env?.incoming
  return incoming === undefined ? c.req.header(name) : (incoming.headers[name] as string | undefined)
}

/**
 * The whole body as sent, empty when there is none; for every method, GET too.
 * @throws GatewayError http.body-too-large before more than the limit is held.
 */
export async function rawBody(c: HttpContext): Promise<Buffer> {
  const incoming = c.env?.incoming
  if (incoming !== undefined) return readIncoming(incoming)
  const body = Buffer.from(await c.req.raw.arrayBuffer())
  if (body.length > limits.bodyBytesMax.value) throw tooLarge()
  return body
}

/** The body as JSON. @throws GatewayError ngsi-ld.invalid-request when it is empty, no UTF-8, no JSON or too deep. */
export async function jsonBody(c: HttpContext): Promise<Json> {
  return parseJson(await rawBody(c))
}

/** Bytes as JSON of bounded depth. @throws GatewayError ngsi-ld.invalid-request */
export function parseJson(body: Buffer): Json {
  if (body.length === 0) throw new GatewayError('ngsi-ld.invalid-request', 'the request has no body')
  if (!isUtf8(body)) throw new GatewayError('ngsi-ld.invalid-request', 'the body is not valid UTF-8')
  let value: Json
  try {
    value = JSON.parse(body.toString('utf8')) as Json
  } catch (cause) {
    throw new GatewayError(
      'ngsi-ld.invalid-request',
      `the body is not JSON: ${(cause as Error).message}`,
      {},
      cause,
    )
  }
  if (!isShallow(value, limits.jsonDepthMax.value)) {
    throw new GatewayError(
      'ngsi-ld.bad-request-data',
      `the body is nested deeper than ${limits.jsonDepthMax.value} levels`,
    )
  }
  return value
}

function isShallow(value: Json, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  const members: readonly Json[] = Array.isArray(value) ? value : Object.values(value)
  return members.every((member) => isShallow(member, levels - 1))
}

function readIncoming(incoming: IncomingMessage): Promise<Buffer> {
  const max = limits.bodyBytesMax.value
  if (Number(incoming.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size <= max) chunks.push(chunk)
      else finish(() => reject(tooLarge()))
    }
    const onEnd = (): void => finish(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const onClose = (): void => {
      finish(() =>
        reject(new GatewayError('ngsi-ld.invalid-request', 'the connection ended before the body did')),
      )
    }
    const finish = (settle: () => void): void => {
      incoming.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose)
      settle()
    }
    incoming.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
  })
}

function tooLarge(): GatewayError {
  return new GatewayError('http.body-too-large', `the body is larger than ${limits.bodyBytesMax.value} bytes`)
}
