/** A request of a client with its connection. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request as it arrived, with its connection. */
export interface ReceivedRequest {
  readonly incoming: IncomingMessage
  readonly outgoing?: ServerResponse
  /** The body, if it was read before. */
  readonly body?: Buffer
  /** The header with the token of this gateway, if the listener required it. No other server may see it. */
  readonly tokenHeader?: 'authorization' | 'x-auth-token'
}
