/**
 * One HTTP exchange with a context source. It never throws or rejects, follows no redirects, and bounds the
 * size and time of an answer. The caller interprets the answer.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Socket } from 'node:net'
import { limits } from '#base/limits/limits.ts'
import { isLoopback, lookupRemote, refusedLoopback } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'

export interface PeerRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  readonly timeoutMs: number
  /** Maximum time (ms) in a caller's queue; unlimited if omitted. Then the result is a failure. */
  readonly heldMs?: number | undefined
}

/** An answer, or the reason for its absence. */
export type PeerAnswer =
  | { readonly status: number; readonly headers: IncomingMessage['headers']; readonly text: string }
  | {
      readonly failure: 'timeout' | 'unreachable'
      readonly reason: string
      /** The answer exceeded the size limit. */
      readonly isTooLarge?: boolean
      /** The request was not sent, because it was queued for too long. */
      readonly isHeldUp?: boolean
    }

export interface PeerSettings {
  /** Whether sources on this machine are allowed. */
  readonly allowsLoopback: boolean
  /** Trusted CA certificates in PEM; by default those of the system. */
  readonly ca?: readonly string[] | undefined
  /** Exchanges with gateways that are reachable only through a tunnel. */
  readonly tunnels?: { readonly exchange: Peer['exchange'] } | undefined
}

export type Peer = ReturnType<typeof createPeer>

export function createPeer(settings: PeerSettings) {
  const options = {
    keepAlive: true,
    maxSockets: limits.sourceSocketsMax.value,
    ...(settings.allowsLoopback ? {} : { lookup: lookupRemote }),
  }
  const secure = {
    ...options,
    rejectUnauthorized: true,
    ...(settings.ca === undefined ? {} : { ca: [...settings.ca] }),
  }
  const kept: Agents = { http: new HttpAgent(options), https: new HttpsAgent(secure) }
  /** Agents that open a new connection for each request. */
  const fresh: Agents = {
    http: new HttpAgent({ ...options, keepAlive: false }),
    https: new HttpsAgent({ ...secure, keepAlive: false }),
  }
  let isClosed = false

  return Object.freeze({
    exchange: (outgoing: PeerRequest): Promise<PeerAnswer> =>
      new Promise<PeerAnswer>((resolve) => {
        if (settings.tunnels !== undefined && isTunnelled(outgoing.url))
          return resolve(settings.tunnels.exchange(outgoing))
        const { hostname } = new URL(outgoing.url)
        if (!settings.allowsLoopback && isLoopback(hostname)) {
          resolve({ failure: 'unreachable', reason: refusedLoopback(hostname) })
          return
        }
        let request: ClientRequest | undefined
        let isOver = false
        const end = (answer: PeerAnswer): void => {
          isOver = true
          clearTimeout(timer)
          resolve(answer)
        }
        const timer = setTimeout(() => {
          end({ failure: 'timeout', reason: `no answer within ${outgoing.timeoutMs} ms` })
          // The connection is reset: after a normal close, it could still deliver the request minutes later,
          // after newer ones.
          if (request?.socket instanceof Socket) request.socket.resetAndDestroy()
          request?.destroy()
        }, outgoing.timeoutMs)
        const again = (): boolean => {
          // A timeout also closes the connection; a request sent after it would never be ended.
          if (isOver || isClosed) return false
          request = send(outgoing, fresh, { end, again: undefined })
          return true
        }
        request = send(outgoing, kept, { end, again: outgoing.method === 'GET' ? again : undefined })
      }),
    close(): void {
      isClosed = true
      for (const { http, https } of [kept, fresh]) {
        http.destroy()
        https.destroy()
      }
    },
  })
}

interface Agents {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

interface Ends {
  end(answer: PeerAnswer): void
  /**
   * Sends a GET once more on a new connection, if a reused connection was closed. A source may close idle
   * connections while a request is on its way. Returns whether it was sent.
   */
  readonly again: (() => boolean) | undefined
}

/** Sends a request; undefined if it cannot be sent. */
function send(
  { url: address, method, headers: given, body }: PeerRequest,
  agents: Agents,
  { end, again }: Ends,
): ClientRequest | undefined {
  const url = new URL(address)
  const isTls = url.protocol === 'https:'
  const headers: Record<string, string | number> = { 'user-agent': productToken, ...given }
  if (body !== undefined) headers['content-length'] = Buffer.byteLength(body)
  const open = isTls ? httpsRequest : httpRequest
  let request: ClientRequest
  try {
    request = open(url, { method, headers, agent: isTls ? agents.https : agents.http })
  } catch (error) {
    // For example, a header with invalid characters.
    end({ failure: 'unreachable', reason: (error as Error).message })
    return undefined
  }
  let certificate: (() => Validity | undefined) | undefined
  let isOver = false
  request.on('socket', (socket) => {
    if (socket.connecting) certificate = noteCertificate(socket)
  })
  request.on('error', (error) => {
    if (isOver) return
    isOver = true
    if (request.reusedSocket && isReset(error) && again?.() === true) return
    end({ failure: 'unreachable', reason: messageOf(error, certificate?.()) })
  })
  request.on('response', (response) => {
    isOver = true
    receive(request, response, end)
  })
  request.on('close', () => {
    if (!isOver) end({ failure: 'unreachable', reason: 'the connection was closed' })
  })
  request.end(body)
  return request
}

const isReset = (error: Error): boolean =>
  ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')

function receive(request: ClientRequest, response: IncomingMessage, end: Ends['end']): void {
  const chunks: Buffer[] = []
  let size = 0
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    chunks.push(chunk)
    if (size <= limits.sourceAnswerBytesMax.value) return
    end({
      failure: 'unreachable',
      reason: `the answer has more than ${limits.sourceAnswerBytesMax.value} bytes`,
      isTooLarge: true,
    })
    request.destroy()
  })
  response.on('error', (error) => end({ failure: 'unreachable', reason: error.message }))
  response.on('close', () => end({ failure: 'unreachable', reason: 'the connection was closed' }))
  response.on('end', () =>
    end({
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: Buffer.concat(chunks).toString('utf8'),
    }),
  )
}
