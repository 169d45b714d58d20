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
import { messageOf, noteCertificate, type Validity } from '#base/certificate-time.ts'
import { limits } from '#base/limits.ts'
import { isLoopback, lookupElsewhere } from '#base/loopback.ts'
import { productToken } from '#base/version.ts'
import { isTunnelled } from '#ngsi-ld/tunnel-uri.ts'

export interface PeerRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  readonly timeoutMs: number
}

/** An answer, or why there was none. */
export type PeerAnswer =
  | { readonly status: number; readonly headers: IncomingMessage['headers']; readonly text: string }
  | {
      readonly failure: 'timeout' | 'unreachable'
      readonly reason: string
      /** There was an answer, of more bytes than are taken. */
      readonly isTooLarge?: boolean
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
    ...(settings.allowsLoopback ? {} : { lookup: lookupElsewhere }),
  }
  const http = new HttpAgent(options)
  const https = new HttpsAgent({
    ...options,
    rejectUnauthorized: true,
    ...(settings.ca === undefined ? {} : { ca: [...settings.ca] }),
  })

  return Object.freeze({
    exchange: (outgoing) =>
      new Promise<PeerAnswer>((resolve) => {
        if (settings.tunnels !== undefined && isTunnelled(outgoing.url))
          return resolve(settings.tunnels.exchange(outgoing))
        const url = new URL(outgoing.url)
        if (!settings.allowsLoopback && isLoopback(url.hostname)) {
          resolve({ failure: 'unreachable', reason: `${url.hostname} is this machine` })
          return
        }
        const isTls = url.protocol === 'https:'
        const headers: Record<string, string | number> = { 'user-agent': productToken, ...outgoing.headers }
        if (outgoing.body !== undefined) headers['content-length'] = Buffer.byteLength(outgoing.body)
        const send = isTls ? httpsRequest : httpRequest
        let request: ClientRequest
        try {
          request = send(url, { method: outgoing.method, headers, agent: isTls ? https : http })
        } catch (error) {
          // Such as a header that cannot be sent.
          resolve({ failure: 'unreachable', reason: (error as Error).message })
          return
        }
        let certificate: (() => Validity | undefined) | undefined
        const end = (answer: PeerAnswer): void => {
          clearTimeout(timer)
          resolve(answer)
        }
        const timer = setTimeout(() => {
          end({ failure: 'timeout', reason: `no answer within ${outgoing.timeoutMs} ms` })
          // A connection that is only closed may still pass on, minutes later, what was sent again since then.
          if (request.socket instanceof Socket) request.socket.resetAndDestroy()
          request.destroy()
        }, outgoing.timeoutMs)
        request.on('socket', (socket) => {
          if (socket.connecting) certificate = noteCertificate(socket)
        })
        request.on('error', (error) =>
          end({ failure: 'unreachable', reason: messageOf(error, certificate?.()) }),
        )
        request.on('response', (response) => {
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
          response.on('end', () =>
            end({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString('utf8'),
            }),
          )
        })
        request.on('close', () => end({ failure: 'unreachable', reason: 'the connection was closed' }))
        request.end(outgoing.body)
      }),
    close() {
      http.destroy()
      https.destroy()
    },
  } satisfies Peer)
}
