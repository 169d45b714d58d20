/**
 * One HTTP listener: opens a socket, enforces its limits (connections, header bytes, time to send a request)
 * and drains on close. In-flight requests finish within the deadline; idle keep-alive sockets close at once.
 * It knows no routes: the given `fetch` function answers the requests.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { limits } from '#base/limits/limits.ts'
import { createPacing } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import { productToken } from '#base/register/version.ts'
import type { HttpEnv } from '#http/request/http-environment.ts'
import { createAnswerWriter } from './answer-writer.ts'
import { type HttpServerPorts, isWebSocketUpgrade, serveUpgrades } from './upgrade.ts'

export interface HttpAddress {
  readonly host: string
  /** 0 chooses any free port. */
  readonly port: number
}

export interface HttpServer {
  /** The port actually bound. */
  readonly port: number
  readonly url: string
  /**
   * Settles when every connection is closed: after the last response, at the latest after `limits.drainMs`.
   */
  close(): Promise<void>
}

/** Time for a client that sent invalid HTTP to read the reason, before the socket closes. */
const refusalMs = 500

/** Interval at which a closing server closes connections that became idle. */
const drainStepMs = 20

/**
 * Opens the listener.
 * @throws GatewayError gateway.address-unavailable when the address cannot be bound.
 */
export async function createHttpServer(ports: HttpServerPorts, address: HttpAddress): Promise<HttpServer> {
  const state = { closing: false }
  const listener = createListener(ports)
  const inTurn = createPipelining()
  const pace = createPacing(() => performance.now(), limits.httpTurnMs.value)
  const writer = createAnswerWriter(ports)
  const answer: Listener = (incoming, outgoing) => {
    writer.collect(Number(incoming.headers['content-length'] ?? 0))
    const reply = ports.direct?.(incoming)
    if (reply !== undefined) {
      writer.write(outgoing, reply)
      return
    }
    listener(incoming, outgoing)
  }
  /** Builds a page only when the output budget has room; until then the request waits. */
  const whenOpen: Listener = async (incoming, outgoing) => {
    const isOpen = await ports.outflow.whenOpen()
    if (outgoing.destroyed) return
    if (isOpen) answer(incoming, outgoing)
    else writer.refuse(outgoing)
  }
  const begin: Listener = (incoming, outgoing) => {
    if (outgoing.destroyed) return
    if (state.closing) outgoing.shouldKeepAlive = false
    if (ports.outflow.isOpen() || !mayBeLarge(incoming)) answer(incoming, outgoing)
    else whenOpen(incoming, outgoing)
  }
  const server = createServer(
    {
      ServerResponse: writer.Response,
      maxHeaderSize: limits.httpHeaderBytesMax.value,
      headersTimeout: limits.httpHeadersMs.value,
      requestTimeout: limits.httpRequestMs.value,
      keepAliveTimeout: limits.httpKeepAliveMs.value,
      noDelay: true,
      highWaterMark: limits.outflowSmallBytes.value,
      shouldUpgradeCallback: isWebSocketUpgrade,
    },
    inTurn((incoming, outgoing) => pace(() => begin(incoming, outgoing))),
  )
  server.on('connection', ports.outflow.watch)
  server.on('clientError', refuseMalformed)
  serveUpgrades(server, ports, pace)
  // Refuses a body by its announced length, before the client sends it.
  server.on(
    'checkContinue',
    inTurn((incoming, outgoing) => {
      if (Number(incoming.headers['content-length'] ?? 0) <= limits.batchBytesMax.value)
        outgoing.writeContinue()
      listener(incoming, outgoing)
    }),
  )
  const port = await listen(server, address)
  const url = `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}`
  ports.log.info('http.listening', { url })
  return Object.freeze({
    port,
    url,
    close() {
      state.closing = true
      ports.closing?.()
      return drain(server)
    },
  })
}

/** Whether the response may be large: GET and queries by POST, but not the endpoints used for monitoring. */
const mayBeLarge = ({ method, url = '' }: IncomingMessage): boolean =>
  method === 'GET'
    ? !/^\/(?:health|metrics)\b/.test(url)
    : method === 'POST' && /\/(?:query|graphql)\b/.test(url)

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown

/**
 * Pipelined requests wait until earlier ones on their connection are answered. Otherwise one read of a socket
 * could start hundreds of requests, each with a page of a thousand entities held until the client reads.
 */
function createPipelining(): (
  run: Listener,
) => (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const waiting = new WeakMap<Socket, number>()
  return (run) => (incoming, outgoing) => {
    // Node assigns the socket to a response when its turn begins.
    if (outgoing.socket !== null) {
      run(incoming, outgoing)
      return
    }
    const { socket } = incoming
    const count = (waiting.get(socket) ?? 0) + 1
    if (count > limits.httpPipelinedMax.value) {
      socket.destroy()
      return
    }
    waiting.set(socket, count)
    outgoing.once('socket', () => {
      waiting.set(socket, waiting.get(socket)! - 1)
      run(incoming, outgoing)
    })
  }
}

/**
 * Loads the library that builds Request objects at the first request, which waits for it. The library and
 * Node's fetch classes take 20 ms to load; the start of the gateway does not pay for it.
 */
function createListener(ports: HttpServerPorts): Listener {
  let listener: Listener | undefined
  let loading: Promise<Listener> | undefined
  const load = async (): Promise<Listener> => {
    const { getRequestListener } = await import('@hono/node-server')
    listener = getRequestListener((request, env) => ports.fetch(request, env as HttpEnv), {
      // Only HTTP/1.0 may omit the host; nothing here depends on its value.
      hostname: 'localhost',
      errorHandler: (error) => ports.refuse(isRequestError(error) ? malformedRequest(error) : error),
    })
    return listener
  }
  return (incoming, outgoing) => {
    if (listener !== undefined) {
      void listener(incoming, outgoing)
      return
    }
    loading ??= load()
    void loading.then(
      (loaded) => loaded(incoming, outgoing),
      () => {
        loading = undefined
        outgoing.destroy()
      },
    )
  }
}

/** The library's error for a URL or Host header from which no Request can be built. */
function isRequestError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RequestError'
}

function malformedRequest(error: Error): GatewayError {
  return new GatewayError('ngsi-ld.invalid-request', `the request is malformed: ${error.message}`, {}, error)
}

function listen(server: Server, { host, port }: HttpAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new GatewayError(
          'gateway.address-unavailable',
          `cannot listen on ${host}:${port}: ${cause.message}`,
          { host, port },
          cause,
        ),
      )
    })
    // A connection that cannot be accepted later, for want of descriptors, must not end the process.
    server.on('error', () => undefined)
    server.listen({ host, port }, () => resolve((server.address() as AddressInfo).port))
  })
}

function drain(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const step = setInterval(() => server.closeIdleConnections(), drainStepMs)
    const deadline = setTimeout(() => server.closeAllConnections(), limits.drainMs.value)
    server.close(() => {
      clearInterval(step)
      clearTimeout(deadline)
      resolve()
    })
  })
}

/** Answers invalid HTTP with a plain error and closes the connection. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex | Socket): void {
  setTimeout(() => socket.destroy(), refusalMs).unref()
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const [status, title, detail] = malformed[error.code ?? ''] ?? unreadable
  const body = JSON.stringify({
    type: 'https://uri.etsi.org/ngsi-ld/errors/InvalidRequest',
    title,
    detail,
    status,
  })
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nServer: ${productToken}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

type Refusal = readonly [status: number, title: string, detail: string]

const unreadable: Refusal = [400, 'Bad Request', 'the bytes received are not a valid HTTP request']
const malformed: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'Request Header Fields Too Large',
    `the request line and headers have more than ${limits.httpHeaderBytesMax.value} bytes`,
  ],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Content Too Large', 'the extensions of a chunk are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'the request did not arrive in time'],
}
