/**
 * One HTTP exchange with a context source. It never throws or rejects, follows no redirect, takes answers up to a
 * bound, and gives up in time. What an answer means is decided by whoever asked.
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
import { isLoopback, lookupRemote } from '#base/load/loopback.ts'
import { productToken } from '#base/register/version.ts'
import { messageOf, noteCertificate, type Validity } from '#base/time/certificate-time.ts'
import { isTunnelled } from '#ngsi-ld/values/tunnel-uri.ts'

export interface PeerRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  readonly timeoutMs: number
  /** How long (ms) whoever has it wait for its turn may do so; left out, for ever. Then it is answered by a failure. */
  readonly heldMs?: number | undefined
}

/** An answer, or why there was none. */
export type PeerAnswer =
  | { readonly status: number; readonly headers: IncomingMessage['headers']; readonly text: string }
  | {
      readonly failure: 'timeout' | 'unreachable'
      readonly reason: string
      /** There was an answer, of more bytes than are taken. */
      readonly isTooLarge?: boolean
      /** It was not sent, because it waited too long for its turn. */
      readonly isHeldUp?: boolean
    }

export interface Peer {
  exchange(request: PeerRequest): Promise<PeerAnswer>
  close(): void
}

export interface PeerSettings {
  /** Whether sources on this machine may be asked. */
  readonly allowsLoopback: boolean
  /** Certificates, in PEM, of those who vouch for sources; undefined: those of the system. */
  readonly ca?: readonly string[] | undefined
  /** How those are asked that cannot be connected to. */
  readonly tunnels?: { readonly exchange: Peer['exchange'] } | undefined
}

export function createPeer(settings: PeerSettings): Peer {
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
  /** Of a connection for each request. */
  const fresh: Agents = {
    http: new HttpAgent({ ...options, keepAlive: false }),
    https: new HttpsAgent({ ...secure, keepAlive: false }),
  }
  let isClosed = false

  return Object.freeze({
    exchange: (outgoing) =>
      new Promise<PeerAnswer>((resolve) => {
        if (settings.tunnels !== undefined && isTunnelled(outgoing.url))
          return resolve(settings.tunnels.exchange(outgoing))
        const { hostname } = new URL(outgoing.url)
        if (!settings.allowsLoopback && isLoopback(hostname)) {
          resolve({ failure: 'unreachable', reason: `${hostname} is this machine` })
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
          // A connection that is only closed may still pass on, minutes later, what was sent again since then.
          if (request?.socket instanceof Socket) request.socket.resetAndDestroy()
          request?.destroy()
        }, outgoing.timeoutMs)
        const again = (): boolean => {
          // To give up ends a connection, too; nobody would end what is sent after that.
          if (isOver || isClosed) return false
          request = send(outgoing, fresh, { end, again: undefined })
          return true
        }
        request = send(outgoing, kept, { end, again: outgoing.method === 'GET' ? again : undefined })
      }),
    close() {
      isClosed = true
      for (const { http, https } of [kept, fresh]) {
        http.destroy()
        https.destroy()
      }
    },
  } satisfies Peer)
}

interface Agents {
  readonly http: HttpAgent
  readonly https: HttpsAgent
}

interface Ends {
  end(answer: PeerAnswer): void
  /**
   * Sends it once more, where it may: the connection had been kept since an earlier request, and was gone. A source closes
   * idle ones when it likes, which may cross a request on its way. Returns whether it is sent.
   */
  readonly again: (() => boolean) | undefined
}

/** Sends a request; undefined where it cannot be sent. */
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
    // Such as a header that cannot be sent.
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
    end({ failure: 'unreachable', reason: `an answer of more than ${size} bytes`, isTooLarge: true })
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
