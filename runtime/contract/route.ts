/** The objects that the routes of a plugin receive. */
import type { IncomingMessage } from 'node:http'
import type { ReceivedRequest } from './received-request.ts'

/** Access of a route to its connection. */
export interface RouteEnvironment {
  /**
   * The whole body, bounded, decompressed if it is gzip; empty if there is none, also for GET. @throws
   * GatewayError
   */
  body(): Promise<Buffer>
  /**
   * Present if the request is a WebSocket upgrade: accepts the connection (a `WebSocket` of the library ws).
   * A message above `componentMessageBytesMax` closes it with 1009.
   */
  readonly upgrade?: ((use: (socket: WebSocketLike) => void) => void) | undefined
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** The request as it arrived; absent in a request of a test. */
  readonly arrival?: ReceivedRequest | undefined
}

/** A response as plain values, for a writer that needs no Response object. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | null
}

/** A request as it arrived, before a Request is built. */
export type DirectRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'socket'>

/** A GET in process. */
export interface ListRequest {
  /** Path with query. */
  readonly path: string
  readonly headers: Pick<Headers, 'get' | 'has'>
  readonly signal: AbortSignal
}

/** The part of a WebSocket that serving it needs. */
export interface WebSocketLike {
  readonly protocol: string
  readonly readyState: number
  send(text: string, done?: (error?: Error) => void): void
  close(code?: number, reason?: string): void
  ping(): void
  terminate(): void
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  on(event: 'close', listener: (code: number, reason: Buffer) => void): unknown
  on(event: 'pong' | 'error', listener: (error?: Error) => void): unknown
}
