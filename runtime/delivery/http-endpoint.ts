/**
 * Sends a notification by HTTP POST and returns the result. It never throws or rejects, follows no redirects,
 * discards response bodies, always verifies certificates, and keeps connections open for reuse. The
 * dispatcher retries. Headers of a notification are rendered in `broker/subscriptions/notification.ts`.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { limits } from '#base/limits/limits.ts'
import { isLoopback, lookupRemote, refusedLoopback } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import type { Clock } from '#base/time/clock.ts'
import { retryAfterMs } from './backoff.ts'
import type { Failure, FailureKind, Sent } from './verdict.ts'

/** A request rendered from one or several deliveries. */
export interface OutgoingRequest {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Timeout of the whole exchange, ms; overrides the default. */
  readonly timeoutMs?: number | undefined
}

/** A parsed URI. */
interface Target {
  readonly options: ReturnType<typeof urlToHttpOptions>
  readonly isSecure: boolean
  /** The URI addresses this machine, which the settings do not allow. */
  readonly isForbidden: boolean
}

/** Time limit of the rest of a response after its status. */
const drainMs = 1000
const idleMs = 15_000

/** Headers that a subscription cannot override. */
const ownHeaders = new Set(
  'connection content-length expect host keep-alive proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
)

export interface HttpEndpointSettings {
  /** Whether endpoints on this machine are allowed. */
  readonly allowsLoopback: boolean
  /** Certificate authorities of endpoints, in PEM; undefined: those of the system. */
  readonly ca?: readonly string[] | undefined
}

export function createHttpEndpoint(clock: Clock, settings: HttpEndpointSettings) {
  const connections = {
    keepAlive: true,
    timeout: idleMs,
    maxSockets: limits.deliveriesInFlightTotalMax.value,
    // As many as requests in flight to one host; with fewer, connections would be reopened constantly.
    maxFreeSockets: limits.deliveriesInFlightHostMax.value,
    autoSelectFamilyAttemptTimeout: 1000,
    ...(settings.allowsLoopback ? {} : { lookup: lookupRemote }),
  }
  const http = new HttpAgent(connections)
  const https = new HttpsAgent({
    ...connections,
    rejectUnauthorized: true,
    ...(settings.ca === undefined ? {} : { ca: [...settings.ca] }),
  })

  /** Cache of parsed URIs. */
  const known = new Map<string, Target>()
  function targetOf(uri: string): Target | undefined {
    const found = known.get(uri)
    if (found !== undefined) return found
    if (!URL.canParse(uri)) return undefined
    const url = new URL(uri)
    if (!/^https?:$/.test(url.protocol)) return undefined
    if (known.size >= limits.deliveryTargetsMax.value) known.clear()
    const isForbidden = !settings.allowsLoopback && isLoopback(url.hostname)
    const target = { options: urlToHttpOptions(url), isSecure: url.protocol === 'https:', isForbidden }
    known.set(uri, target)
    return target
  }

  function open({ options, isSecure }: Target, outgoing: OutgoingRequest, length: number): ClientRequest {
    const headers: Record<string, string | number> = { 'User-Agent': productToken }
    for (const name of Object.keys(outgoing.headers)) {
      if (!ownHeaders.has(name.toLowerCase())) headers[name] = outgoing.headers[name]!
    }
    headers['Content-Length'] = length
    const request = isSecure
      ? httpsRequest({ ...options, method: 'POST', headers, agent: https })
      : httpRequest({ ...options, method: 'POST', headers, agent: http })
    return request.end(outgoing.body)
  }
  return Object.freeze({
    async send(outgoing: OutgoingRequest): Promise<Sent> {
      const target = targetOf(outgoing.uri)
      if (target === undefined) return failure('unsendable', 'the URI is not an HTTP URI')
      const length = Buffer.byteLength(outgoing.body)
      if (length > limits.deliveryBytesMax.value) {
        return failure('unsendable', `more than ${limits.deliveryBytesMax.value} bytes`)
      }
      if (target.isForbidden) return failure('forbidden', refusedLoopback(`${target.options.hostname}`))
      const timeoutMs = Math.min(
        outgoing.timeoutMs ?? limits.deliveryTimeoutMs.value,
        limits.deliveryTimeoutMsMax.value,
      )
      const once = (): Promise<Exchanged> =>
        exchange(() => open(target, outgoing, length), { clock, timeoutMs })
      const first = await once()
      // Most likely the peer closed an idle connection just when it was reused, so the request is sent once
      // more.
      return first.isStale ? (await once()).sent : first.sent
    },
    /** Closes all connections; requests in flight fail. */
    close(): void {
      http.destroy()
      https.destroy()
    },
  })
}

interface Exchanged {
  readonly sent: Sent
  readonly isStale: boolean
}

/** Phase of an exchange: connecting, TLS handshake, or HTTP. */
type Phase = 'connecting' | 'handshake' | 'connected'

function exchange(
  open: () => ClientRequest,
  settings: { clock: Clock; timeoutMs: number },
): Promise<Exchanged> {
  return new Promise((resolve) => {
    let phase: Phase = 'connecting'
    let certificate: (() => Validity | undefined) | undefined
    let request: ClientRequest
    /** The result by the status of the response; later errors do not change it. */
    let result: Sent | undefined
    const end = (sent: Sent, isStale = false): void => {
      clearTimeout(connectTimer)
      clearTimeout(timer)
      resolve({ sent, isStale })
    }
    const abort = (sent: Sent): void => {
      end(sent)
      request.destroy()
    }
    let connectTimer: NodeJS.Timeout | undefined
    let timer = setTimeout(
      () => abort(failure('timeout', `no answer within ${settings.timeoutMs} ms`)),
      settings.timeoutMs,
    )
    try {
      request = open()
    } catch (error) {
      return end(failure('unsendable', (error as Error).message))
    }
    request.on('socket', (socket: Socket & { encrypted?: boolean }) => {
      if (!socket.connecting) {
        phase = 'connected'
        return
      }
      certificate = noteCertificate(socket)
      const ms = limits.deliveryConnectMs.value
      connectTimer = setTimeout(() => abort(failure('unreachable', `no connection within ${ms} ms`)), ms)
      socket.once('connect', () => {
        clearTimeout(connectTimer)
        phase = socket.encrypted === true ? 'handshake' : 'connected'
      })
      socket.once('secureConnect', () => {
        phase = 'connected'
      })
    })
    request.on('response', (response) => {
      const sent = judge(response, settings.clock.now())
      result = sent
      clearTimeout(timer)
      timer = setTimeout(() => abort(sent), drainMs)
      drop(response, { end: () => end(sent), tooMuch: () => abort(sent) })
    })
    request.on('error', (error) => {
      const diagnosis = diagnose(error, phase, certificate?.())
      end(result ?? diagnosis, diagnosis.kind === 'reset' && request.reusedSocket && result === undefined)
    })
    request.on('close', () => end(result ?? failure('reset', 'the connection was closed without a response')))
  })
}

/** Reads and discards the rest of a response, up to a limit. */
function drop(response: IncomingMessage, on: { end(): void; tooMuch(): void }): void {
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limits.deliveryAnswerBytesMax.value) on.tooMuch()
  })
  response.on('end', on.end)
  response.on('close', on.end)
  response.on('error', on.end)
}

function judge(response: IncomingMessage, now: number): Sent {
  const status = response.statusCode ?? 0
  if (status >= 200 && status < 300) return { ok: true, status }
  const reason = `answered ${status}${status >= 300 && status < 400 ? ', redirects are not followed' : ''}`
  return {
    ...failure('status', reason),
    status,
    retryAfterMs: retryAfterMs(response.headers['retry-after'], now),
  }
}

function diagnose(error: Error, phase: Phase, shown: Validity | undefined): Failure {
  const { code = '' } = error as NodeJS.ErrnoException
  return failure(kindOf(code, phase), messageOf(error, shown))
}

function kindOf(code: string, phase: Phase): FailureKind {
  if (code === 'peer.loopback') return 'forbidden'
  if (phase === 'handshake' || code.startsWith('ERR_SSL')) return 'tls'
  if (phase === 'connected') return code.startsWith('HPE_') ? 'protocol' : 'reset'
  if (code === 'ECONNREFUSED') return 'refused'
  return code === 'ENOTFOUND' || code.startsWith('EAI_') ? 'dns' : 'unreachable'
}

const failure = (kind: FailureKind, reason: string): Failure => ({ ok: false, kind, reason })
