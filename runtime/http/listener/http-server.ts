/**
 * One HTTP listener: opens a socket, holds its ceilings (connections, header bytes, time to send a request) and
 * drains on close: in-flight requests finish within the deadline, idle keep-alive sockets end at once.
 * It knows no route; what a request means is the business of the `fetch` function it is given.
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
import type { HttpServerPorts } from './upgrade.ts'
import { asksForWebSocket, serveUpgrades } from './upgrade.ts'

export interface HttpAddress {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
}

export interface HttpServer {
  /** The port that is really open. */
  readonly port: number
  readonly url: string
  /** Settles when every connection is gone: after the last answer, at the latest after `limits.drainMs`. */
  close(): Promise<void>
}

/** How long a client that sent no HTTP has to read why. */
const refusalMs = 500

/** How often a closing server looks for connections that became idle. */
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
  /** A page is made only when there is room for it: until then the request waits. */
  const whenOpen: Listener = async (incoming, outgoing) => {
    const isOpen = await ports.outflow.whenOpen()
    if (outgoing.destroyed) return
    if (isOpen) answer(incoming, outgoing)
    else writer.refuse(outgoing)
  }
  const begin: Listener = (incoming, outgoing) => {
    if (outgoing.destroyed) return
    if (state.closing) outgoing.shouldKeepAlive = false
    if (ports.outflow.isOpen() || !asksForPage(incoming)) answer(incoming, outgoing)
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
      shouldUpgradeCallback: asksForWebSocket,
    },
    inTurn((incoming, outgoing) => pace(() => begin(incoming, outgoing))),
  )
  server.on('connection', ports.outflow.watch)
  server.on('clientError', refuseMalformed)
  serveUpgrades(server, ports, pace)
  // A body that is announced as too large is refused before it is sent.
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

/** Answers to GET and to queries by POST may be large; what operators watch the gateway by is not. */
const asksForPage = ({ method, url = '' }: IncomingMessage): boolean =>
  method === 'GET'
    ? !/^\/(?:health|metrics)\b/.test(url)
    : method === 'POST' && /\/(?:query|graphql)\b/.test(url)

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown

/**
 * Requests that come before earlier ones of their connection are answered wait for their turn. Else a page of a thousand
 * entities would be made for each of the hundreds that one piece of a socket holds, and kept until the client reads.
 */
function createPipelining(): (
  run: Listener,
) => (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const waiting = new WeakMap<Socket, number>()
  return (run) => (incoming, outgoing) => {
    // An answer has the socket when it is its turn.
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
 * The library that makes a Request of what comes is loaded with the first one, which waits for it. It needs the classes of
 * fetch, and Node makes those at first sight: together 20 ms that no start has to wait for.
 */
function createListener(ports: HttpServerPorts): Listener {
  let listener: Listener | undefined
  let loading: Promise<Listener> | undefined
  const load = async (): Promise<Listener> => {
    const { getRequestListener } = await import('@hono/node-server')
    listener = getRequestListener((request, env) => ports.fetch(request, env as HttpEnv), {
      // Only HTTP/1.0 may leave the host out; nothing here depends on which it is.
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

/** The library's own complaint about a URL or Host header that no Request can have. */
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
    // Whatever cannot be accepted later, for want of descriptors, is no reason to end.
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

/** Bytes that are no HTTP get a plain answer and the connection ends. */
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

const unreadable: Refusal = [400, 'Bad Request', 'the bytes received are no acceptable HTTP request']
const malformed: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'Request Header Fields Too Large',
    `the request line and headers have more than ${limits.httpHeaderBytesMax.value} bytes`,
  ],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Content Too Large', 'the extensions of a chunk are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'the request did not arrive in time'],
}
