/**
 * The routes of this gateway as a broker, without a socket. Requests and errors pass the same code as those
 * from outside. It never rejects.
 */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type {
  BrokerAnswer,
  BrokerPort,
  BrokerRequest,
  ListAnswer,
  ListRequest,
  WrittenAnswer,
} from '#contract'
import { within } from './patience.ts'

/** Answers a request; never rejects. */
export type Serve = (
  request: Request,
  env: {
    readonly incoming: IncomingMessage
    readonly body: Buffer
    readonly isWithin: true
    /**
     * Aborted when nobody waits any more. Attached to the Request, it would be kept until a full garbage
     * collection.
     */
    readonly signal: AbortSignal
  },
) => Response | Promise<Response>

/** A broker whose answers come from `serve`. */
export function createOwnBrokerPort(address: () => string, serve: Serve): BrokerPort {
  return Object.freeze({
    get address() {
      return address()
    },
    exchange: (request: BrokerRequest) => within(request, (signal) => answerOf(request, serve, signal)),
  })
}

/** A component of this process. */
export interface Component {
  readonly serve: Serve
  /** Its entities before serialization; undefined if the request must go to `serve`. */
  list(request: ListRequest): Promise<ListAnswer | WrittenAnswer | undefined>
  /** The response for a thrown error. @throws any error that is not a refusal. */
  refusalOf(error: unknown): Response
}

/** A component as a broker whose lists need no serialization. */
export function createComponentBroker(address: () => string, component: Component): Required<BrokerPort> {
  const { serve } = component
  const { exchange } = createOwnBrokerPort(address, serve)
  return Object.freeze({
    get address() {
      return address()
    },
    exchange,
    list: (request: BrokerRequest) =>
      within(request, async (signal) =>
        request.method === 'GET'
          ? ((await listOf(request, component, signal)) ?? answerOf(request, serve, signal))
          : answerOf(request, serve, signal),
      ),
  })
}

async function listOf(
  { path, headers = {} }: BrokerRequest,
  component: Component,
  signal: AbortSignal,
): Promise<BrokerAnswer | ListAnswer | undefined> {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const given = {
    get: (name: string) => lower.get(name.toLowerCase()) ?? null,
    has: (name: string) => lower.has(name.toLowerCase()),
  }
  try {
    return await component.list({ path, headers: given, signal })
  } catch (error) {
    try {
      return await writtenOut(component.refusalOf(error))
    } catch {
      return { failure: 'unreachable', reason: (error as Error).message }
    }
  }
}

const writtenOut = async (response: Response): Promise<BrokerAnswer> => ({
  status: response.status,
  headers: Object.fromEntries(response.headers),
  text: await response.text(),
})

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
    })
    return await writtenOut(await serve(request, { incoming, body: bytes, isWithin: true, signal }))
  } catch (error) {
    // For example, an invalid path.
    return { failure: 'unreachable', reason: (error as Error).message }
  }
}

/** A shared socket that nobody reads. */
const unconnected = new Socket()
