/**
 * Sends one notification by HTTP POST and says what came of it. It never throws or rejects, follows no redirect,
 * reads an answer only to drop it, checks certificates whatever the environment says, and holds a connection open
 * for the next one. Retrying is the business of the dispatcher.
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
import { isLoopback, lookupRemote } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import type { Clock } from '#base/time/clock.ts'
import { retryAfterMs } from './backoff.ts'
import type { Failure, FailureKind, Sent } from './verdict.ts'

/** A request as rendered for one delivery. */
export interface OutgoingRequest {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Time for the whole exchange, ms, instead of the usual one. */
  readonly timeoutMs?: number | undefined
}

export interface HttpEndpoint {
  send(request: OutgoingRequest): Promise<Sent>
  /** Closes all connections; what is in flight fails. */
  close(): void
}

/** What a URI says, once it is read. */
interface Target {
  readonly options: ReturnType<typeof urlToHttpOptions>
  readonly isSecure: boolean
  /** It is this machine, which may not be sent to. */
  readonly isForbidden: boolean
}

/** How long an answer may take to end once its status is known. */
const drainMs = 1000
const idleMs = 15_000

/** Headers that only the connection itself may set. */
const ownHeaders = new Set(
  'connection content-length expect host keep-alive proxy-connection te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
)

export interface HttpEndpointSettings {
  /** Whether endpoints on this machine may be sent to. */
  readonly allowsLoopback: boolean
  /** Certificates, in PEM, of those who vouch for endpoints; undefined: those of the system. */
  readonly ca?: readonly string[] | undefined
}

export function createHttpEndpoint(clock: Clock, settings: HttpEndpointSettings): HttpEndpoint {
  const connections = {
    keepAlive: true,
    timeout: idleMs,
    maxSockets: limits.deliveriesInFlightTotalMax.value,
    // As many as one host is sent to at once; fewer would be closed and opened again all the time.
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

  /** Where lately used URIs lead to, so that each is read once. */
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
    async send(outgoing) {
      const target = targetOf(outgoing.uri)
      if (target === undefined) return failure('unsendable', 'no HTTP URI')
      const length = Buffer.byteLength(outgoing.body)
      if (length > limits.deliveryBytesMax.value) {
        return failure('unsendable', `more than ${limits.deliveryBytesMax.value} bytes`)
      }
      if (target.isForbidden) return failure('forbidden', `${target.options.hostname} is this machine`)
      const timeoutMs = Math.min(
        outgoing.timeoutMs ?? limits.deliveryTimeoutMs.value,
        limits.deliveryTimeoutMsMax.value,
      )
      const once = (): Promise<Exchanged> =>
        exchange(() => open(target, outgoing, length), { clock, timeoutMs })
      const first = await once()
      // Most likely the peer closed an idle connection just when it was used again.
      return first.isStale ? (await once()).sent : first.sent
    },
    close() {
      http.destroy()
      https.destroy()
    },
  } satisfies HttpEndpoint)
}

interface Exchanged {
  readonly sent: Sent
  readonly isStale: boolean
}

/** Where an exchange stands: no connection yet, TLS being agreed, or talking HTTP. */
type Phase = 'connecting' | 'greeting' | 'talking'

function exchange(
  open: () => ClientRequest,
  settings: { clock: Clock; timeoutMs: number },
): Promise<Exchanged> {
  return new Promise((resolve) => {
    let phase: Phase = 'connecting'
    let certificate: (() => Validity | undefined) | undefined
    let request: ClientRequest
    /** Once the status has come it decides, whatever becomes of the rest. */
    let judged: Sent | undefined
    const end = (sent: Sent, isStale = false): void => {
      clearTimeout(connectTimer)
      clearTimeout(timer)
      resolve({ sent, isStale })
    }
    const giveUp = (sent: Sent): void => {
      end(sent)
      request.destroy()
    }
    let connectTimer: NodeJS.Timeout | undefined
    let timer = setTimeout(
      () => giveUp(failure('timeout', `no answer within ${settings.timeoutMs} ms`)),
      settings.timeoutMs,
    )
    try {
      request = open()
    } catch (error) {
      return end(failure('unsendable', (error as Error).message))
    }
    request.on('socket', (socket: Socket & { encrypted?: boolean }) => {
      if (!socket.connecting) {
        phase = 'talking'
        return
      }
      certificate = noteCertificate(socket)
      const ms = limits.deliveryConnectMs.value
      connectTimer = setTimeout(() => giveUp(failure('unreachable', `no connection within ${ms} ms`)), ms)
      socket.once('connect', () => {
        clearTimeout(connectTimer)
        phase = socket.encrypted === true ? 'greeting' : 'talking'
      })
      socket.once('secureConnect', () => {
        phase = 'talking'
      })
    })
    request.on('response', (response) => {
      const sent = judge(response, settings.clock.now())
      judged = sent
      clearTimeout(timer)
      timer = setTimeout(() => giveUp(sent), drainMs)
      drop(response, { end: () => end(sent), tooMuch: () => giveUp(sent) })
    })
    request.on('error', (error) => {
      const diagnosis = diagnose(error, phase, certificate?.())
      end(judged ?? diagnosis, diagnosis.kind === 'reset' && request.reusedSocket && judged === undefined)
    })
    request.on('close', () => end(judged ?? failure('reset', 'the connection was closed without an answer')))
  })
}

/** Reads what is left of an answer, up to a bound. */
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
  if (phase === 'greeting' || code.startsWith('ERR_SSL')) return 'tls'
  if (phase === 'talking') return code.startsWith('HPE_') ? 'protocol' : 'reset'
  if (code === 'ECONNREFUSED') return 'refused'
  return code === 'ENOTFOUND' || code.startsWith('EAI_') ? 'dns' : 'unreachable'
}

const failure = (kind: FailureKind, reason: string): Failure => ({ ok: false, kind, reason })
