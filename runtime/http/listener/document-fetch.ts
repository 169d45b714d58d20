/**
 * Fetches one document by HTTP(S) GET with bounded time, bytes and redirects. The broker fetches user
 * @contexts with it; nothing is cached or parsed here. Addresses of this machine are refused unless allowed,
 * also when a name or a redirect leads to them.
 */

import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isLoopback, lookupRemote, refusedLoopback } from '#base/load/loopback.ts'
import { GatewayError } from '#base/register/errors.ts'
import { productToken } from '#base/register/version.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import type { FetchDocument } from '#broker/contexts/context-library.ts'

/**
 * Creates a document fetcher.
 *
 * @throws (from the fetch) GatewayError peer.unavailable unless a complete 200 arrives; peer.loopback.
 */
export function createDocumentFetcher(settings: { readonly allowLoopback: boolean }): FetchDocument {
  return async (request) => {
    const signal = AbortSignal.timeout(request.timeoutMs)
    let { url } = request
    for (let redirects = 0; redirects <= request.redirectsMax; redirects++) {
      const answer = await get(url, request.accept, signal, settings.allowLoopback)
      const status = answer.statusCode ?? 0
      const { location } = answer.headers
      if (status === 200)
        return { headers: answer.headers, body: await readAll(answer, request.bytesMax, url) }
      answer.destroy()
      if (status < 300 || status > 399 || location === undefined) throw unavailable(url, `answered ${status}`)
      const next = URL.parse(location, url)
      if (next === null) throw unavailable(url, 'redirects to an invalid URL')
      url = next.href
    }
    throw unavailable(request.url, `redirects more than ${request.redirectsMax} times`)
  }
}

function get(
  url: string,
  accept: string,
  signal: AbortSignal,
  allowLoopback: boolean,
): Promise<IncomingMessage> {
  const target = URL.parse(url)
  if (target === null || (target.protocol !== 'http:' && target.protocol !== 'https:')) {
    throw unavailable(url, 'is not an http or https URL')
  }
  if (!allowLoopback && isLoopback(target.hostname)) {
    throw new GatewayError('peer.loopback', refusedLoopback(target.hostname), { url })
  }
  const options: RequestOptions = {
    agent: false,
    headers: { Accept: accept, 'User-Agent': productToken },
    signal,
    ...(allowLoopback ? {} : { lookup: lookupRemote }),
  }
  return new Promise((resolve, reject) => {
    const send = target.protocol === 'https:' ? requestHttps : requestHttp
    let certificate: (() => Validity | undefined) | undefined
    send(target, options, resolve)
      .on('socket', (socket) => {
        certificate = noteCertificate(socket)
      })
      .on('error', (cause) => reject(asUnavailable(url, cause, certificate?.())))
      .end()
  })
}

async function readAll(answer: IncomingMessage, bytesMax: number, url: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > bytesMax) throw unavailable(url, `is larger than ${bytesMax} bytes`)
      chunks.push(chunk)
    }
  } catch (cause) {
    throw asUnavailable(url, cause)
  }
  return Buffer.concat(chunks)
}

function asUnavailable(url: string, cause: unknown, shown?: Validity): GatewayError {
  if (cause instanceof GatewayError) return cause
  const { name } = cause as Error
  return unavailable(
    url,
    name === 'AbortError' || name === 'TimeoutError'
      ? 'did not answer in time'
      : messageOf(cause as Error, shown),
    cause,
  )
}

function unavailable(url: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('peer.unavailable', `${url} ${reason}`, { url }, cause)
}
