/**
 * Forwards requests of clients: to the routes of this gateway in process, or to another broker over HTTP.
 * Method, path, headers and body stay as they arrived, except headers of the connection. The token of this
 * gateway is never sent on, and no other credentials are added.
 */
import {
  Agent as HttpAgent,
  request as httpRequest,
  IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { getCACertificates } from 'node:tls'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import { readAuthorities } from '#config/load/secret-files.ts'
import type { ForwardPort, ForwardTarget, ProxiedRequest, ReceivedRequest } from '#contract'
import { appendedVia, pseudonymsOf } from '#ngsi-ld/federation/via.ts'

/** The routes of this gateway, for a request as it arrived. */
export type OwnRoutes = (request: Request, arrival: ReceivedRequest) => Response | Promise<Response>

export interface OwnForwardPorts extends Required<Pick<ForwardPort, 'validity'>> {
  /** Address of this gateway for people. */
  readonly address: () => string
  readonly pass: OwnRoutes
}

/** This gateway's own routes. */
export function createOwnForward({ address, pass, validity }: OwnForwardPorts): ForwardPort {
  return Object.freeze({
    validity,
    get address() {
      return address()
    },
    forward: async ({ request, environment, body, headers }: ProxiedRequest) => {
      const { arrival } = environment
      if (arrival !== undefined && body === undefined && headers === undefined) return pass(request, arrival)
      return pass(request, { ...arrival, ...(await changedArrival(request, environment, { body, headers })) })
    },
  } satisfies ForwardPort)
}

/** An arrival with another body or other headers. */
async function changedArrival(
  { method, url, headers: sent }: Request,
  environment: ProxiedRequest['environment'],
  { body, headers }: Pick<ProxiedRequest, 'body' | 'headers'>,
): Promise<Pick<ReceivedRequest, 'incoming' | 'body'>> {
  const bytes = body ?? (await environment.body())
  const all: Record<string, string> = { ...Object.fromEntries(sent), ...headers }
  for (const name of ['transfer-encoding', 'content-encoding', 'content-length']) delete all[name]
  if (bytes.length > 0) all['content-length'] = String(bytes.length)
  const target = targetOf(url)
  const incoming = new IncomingMessage(environment.arrival?.incoming.socket ?? new Socket())
  return { incoming: Object.assign(incoming, { method, url: target, headers: all }), body: bytes }
}

/** Path and query of a URL, as written. */
export const targetOf = (url: string): string => url.slice(url.indexOf('/', url.indexOf('://') + 3))

/**
 * Path and query as the client wrote them, without the mount path: a URL object may encode them differently.
 * A path with dot segments stays in the form that was routed.
 */
function rawTargetOf(url: string, arrival: ReceivedRequest | undefined): string {
  const routed = targetOf(url)
  const raw = arrival?.incoming.url ?? ''
  const [path = ''] = routed.split('?', 1)
  const start = raw.indexOf(path)
  const isSame =
    start >= 0 &&
    /^(?:\/[a-z-]+)?$/.test(raw.slice(0, start)) &&
    /^(?:\?|$)/.test(raw.slice(start + path.length))
  return isSame ? raw.slice(start) : routed
}

interface RemoteForwardSettings {
  /** Trusted CA certificates in PEM; by default those of the system. */
  readonly ca?: readonly string[] | undefined
  /** The pseudonym of this proxy in Via. */
  readonly alias: string
}

/** Another broker. @throws GatewayError config.invalid for an unreadable file. */
export function openRemoteForward(
  { url, caFile, timeoutMs }: ForwardTarget,
  { ca, alias }: RemoteForwardSettings,
): ForwardPort & { close(): void } {
  const address = url.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/i, '')
  const { protocol, pathname } = new URL(address)
  const isTls = protocol === 'https:'
  const prefix = pathname.replace(/\/+$/, '')
  const own = caFile === undefined ? undefined : readAuthorities(caFile)
  const trusted = own === undefined ? ca : [...(ca ?? getCACertificates('default')), own]
  const options = { keepAlive: true, maxFreeSockets: limits.forwardedIdleSockets.value }
  const agent = isTls
    ? new HttpsAgent({ ...options, rejectUnauthorized: true, ...(trusted && { ca: [...trusted] }) })
    : new HttpAgent(options)
  let inProgress = 0

  async function forward(forwarded: ProxiedRequest): Promise<Response> {
    const { request, environment } = forwarded
    const headers = headersOf(forwarded, alias)
    const { arrival, signal } = environment
    // A request that was made in process has its body already.
    const body =
      forwarded.body ?? arrival?.body ?? (arrival === undefined ? await environment.body() : undefined)
    if (inProgress >= limits.forwardedMax.value)
      throw new GatewayError('http.busy', `${inProgress} requests are in progress at ${address} already`)
    const exchange: Exchange = {
      address,
      target: prefix + rawTargetOf(request.url, arrival),
      method: request.method,
      headers,
      body: body ?? arrival?.incoming,
      agent,
      timeoutMs,
      signal,
    }
    inProgress++
    try {
      const { response, close } = await send(exchange)
      inProgress++
      response.once('close', () => inProgress--)
      return answerOf(response, { method: request.method, close, address })
    } finally {
      inProgress--
    }
  }

  return Object.freeze({ address, forward, close: () => agent.destroy() } satisfies ForwardPort & {
    close(): void
  })
}

/** Headers of one connection [RFC 9110 7.6.1], and those that the HTTP client sets. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers to send on. @throws peer.loop if the request passed through this proxy before. */
function headersOf(
  { request, environment: { arrival }, body, headers = {} }: ProxiedRequest,
  alias: string,
): OutgoingHttpHeaders {
  const sent: Record<string, string[]> = {}
  const raw = arrival?.incoming.rawHeaders ?? []
  const pairs = raw.length > 0 ? pairsOf(raw) : [...request.headers]
  const named = listed(request.headers.get('connection'))
  const dropped = new Set([...named, 'host', 'expect', arrival?.tokenHeader ?? ''])
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || dropped.has(lower)) continue
    sent[lower] = [...(sent[lower] ?? []), value]
  }
  if (pseudonymsOf(sent['via']).includes(alias))
    throw new GatewayError('peer.loop', `the request passed through ${alias} before`)
  for (const [name, value] of Object.entries(headers)) sent[name] = [value]
  if (body !== undefined) {
    delete sent['content-encoding']
    sent['content-length'] = [String(body.length)]
  } else if (arrival?.incoming.headers['transfer-encoding'] !== undefined) {
    sent['transfer-encoding'] = ['chunked']
  }
  return { ...single(sent), via: appendedVia(sent['via'], alias) }
}

/** A value that is alone as a text, since some headers may not be a list. */
const single = (headers: Readonly<Record<string, readonly string[]>>): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, values.length === 1 ? values[0]! : [...values]]),
  )

const listed = (text: string | null | undefined): readonly string[] =>
  (text ?? '').split(',').map((name) => name.trim().toLowerCase())

function pairsOf(raw: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i]!, raw[i + 1]!])
  return pairs
}

interface Exchange {
  readonly address: string
  /** Path and query as written. */
  readonly target: string
  readonly method: string
  readonly headers: OutgoingHttpHeaders
  /** The connection of the client if the body still arrives. */
  readonly body: Buffer | IncomingMessage | undefined
  readonly agent: HttpAgent
  readonly timeoutMs: number
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

interface Begun {
  readonly response: IncomingMessage
  /** Ends the exchange. */
  readonly close: () => void
}

/** Whether the client sends a body. */
const hasBody = ({ 'content-length': length, 'transfer-encoding': coding }: OutgoingHttpHeaders): boolean =>
  coding !== undefined || Number(length ?? 0) > 0

/** Sends a request, and waits for the head of the response. @throws peer.unavailable, peer.timeout */
function send(exchange: Exchange, isRepeat = false): Promise<Begun> {
  const { address, target, method, headers, body, agent, timeoutMs, signal } = exchange
  return new Promise<Begun>((resolve, reject) => {
    const open = agent instanceof HttpsAgent ? httpsRequest : httpRequest
    const outgoing = open(address, { path: target, method, headers, agent })
    let certificate: (() => Validity | undefined) | undefined
    let timer: NodeJS.Timeout | undefined
    const fail = (error: GatewayError): void => {
      reject(error)
      outgoing.destroy()
    }
    const abort = (): void => fail(new GatewayError('peer.unavailable', 'the client disconnected'))
    let isBegun = false
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
    const late = (): void =>
      fail(new GatewayError('peer.timeout', `${address} did not answer within ${timeoutMs} ms`))
    outgoing.on('socket', (socket) => {
      if (socket.connecting) certificate = noteCertificate(socket)
    })
    outgoing.on('close', settle)
    outgoing.on('error', (error) => {
      settle()
      // A broker may close an idle connection while a request is on its way.
      const isStale =
        outgoing.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test((error as NodeJS.ErrnoException).code ?? '')
      const mayRepeat = (method === 'GET' || method === 'HEAD') && !hasBody(headers)
      if (isStale && mayRepeat && !isRepeat && !signal.aborted) resolve(send(exchange, true))
      else reject(unavailable(address, messageOf(error, certificate?.()), error))
    })
    outgoing.on('response', (response) => {
      isBegun = true
      settle()
      const isEndless = response.headers['content-type']?.startsWith('text/event-stream') === true
      outgoing.setTimeout(isEndless ? 0 : limits.forwardedSilenceMs.value)
      resolve({ response, close: () => outgoing.destroy() })
    })
    // While a body is on its way, only silence ends the exchange.
    outgoing.on('timeout', late).setTimeout(limits.forwardedSilenceMs.value)
    outgoing.on('finish', () => {
      if (isBegun) return
      outgoing.setTimeout(0)
      timer = setTimeout(late, timeoutMs)
    })
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort)
    if (body instanceof IncomingMessage && hasBody(headers)) {
      body.once('close', () => {
        if (!body.complete) outgoing.destroy()
      })
      body.pipe(outgoing)
    } else outgoing.end(body instanceof IncomingMessage ? undefined : body)
  })
}

const unavailable = (address: string, reason: string, cause?: unknown): GatewayError =>
  new GatewayError('peer.unavailable', `${address} cannot be reached: ${reason}`, {}, cause)

/** The response of the broker: its body is a stream. */
function answerOf(
  response: IncomingMessage,
  {
    method,
    close,
    address,
  }: { readonly method: string; readonly close: () => void; readonly address: string },
): Response {
  const { statusCode: status = 0, rawHeaders } = response
  const headers = new Headers()
  const named = listed(response.headers.connection)
  for (const [name, value] of pairsOf(rawHeaders)) {
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || named.includes(lower)) continue
    headers.append(name, lower === 'location' ? ownPath(value, address) : value)
  }
  const isBare = method === 'HEAD' || status === 204 || status === 205 || status === 304
  if (isBare) response.resume()
  if (status < 200 || status > 599) {
    close()
    throw new GatewayError('peer.unavailable', `${address} answered with status ${status}`)
  }
  const body = isBare ? null : (Readable.toWeb(response) as unknown as ReadableStream<Uint8Array>)
  return new Response(body, { status, headers })
}

/** A Location at the broker as a path at this proxy; any other one stays. */
function ownPath(location: string, address: string): string {
  const { origin, pathname } = new URL(address)
  const prefix = pathname.replace(/\/+$/, '')
  const path = location.startsWith(`${origin}/`) ? location.slice(origin.length) : location
  return path.startsWith(`${prefix}/ngsi-ld/`) ? path.slice(prefix.length) : location
}
