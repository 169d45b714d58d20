/**
 * Routes of this gateway as a broker, without a socket between: requests take the same way as those from outside, and so do
 * their errors. It never rejects.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { BrokerAnswer, BrokerPort, BrokerRequest } from '#contract'
import { within } from './patience.ts'

/** What answers a request; it never rejects. */
export type Serve = (
  request: Request,
  env: { readonly incoming: IncomingMessage; readonly body: Buffer; readonly isWithin: true },
) => Response | Promise<Response>

/** A broker whose answers come from `serve`. */
export function createOwnBroker(address: () => string, serve: Serve): BrokerPort {
  return Object.freeze({
    get address() {
      return address()
    },
    exchange: (request: BrokerRequest) => within(request, (signal) => answerOf(request, serve, signal)),
  })
}

async function answerOf(
  { method, path, headers = {}, body = '' }: BrokerRequest,
  serve: Serve,
  signal: AbortSignal,
): Promise<BrokerAnswer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const length = bytes.length === 0 ? {} : { 'content-length': String(bytes.length) }
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const incoming = Object.assign(new IncomingMessage(unconnected), {
    method,
    url: path,
    headers: { ...Object.fromEntries(lower), ...length } as Record<string, string>,
  })
  try {
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: incoming.headers as never,
      signal,
    })
    const response = await serve(request, { incoming, body: bytes, isWithin: true })
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      text: await response.text(),
    }
  } catch (error) {
    // Such as a path that no URL can have.
    return { failure: 'unreachable', reason: (error as Error).message }
  }
}

/** One for all: nobody reads it. */
const unconnected = new Socket()
