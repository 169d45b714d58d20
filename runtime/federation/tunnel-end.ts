/**
 * An end of a tunnel: HTTP requests and answers as messages on one connection, in both directions. A message
 * is a line of JSON that describes it, followed by the body. Both ends check that the connection is alive and
 * close half-open ones. Nothing the other side sends makes it throw or reject.
 */

import { limits } from '#base/limits/limits.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { PeerAnswer } from './peer.ts'

/** The part of a WebSocket that is used. */
export interface TunnelSocket {
  readonly bufferedAmount: number
  send(text: string): void
  ping(): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  on(event: 'close', listener: (code: number, reason: Buffer) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** The byte counters of the underlying connection. */
export interface TunnelWire {
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Bytes written but not yet sent. */
  readonly writableLength: number
}

export interface TunnelRequest {
  readonly method: string
  /** Path from the root, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface TunnelAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface TunnelEndPorts {
  /** Answers requests of the other side. Never rejects. */
  readonly serve: (request: TunnelRequest) => Promise<TunnelAnswer>
  readonly wire: TunnelWire
  readonly beatMs: number
  readonly onClose: (code: number, reason: string) => void
}

interface Head {
  readonly ask?: number
  readonly answer?: number
  readonly method?: string
  readonly path?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Close codes: 1001 the sender stops, 1002 protocol error, and this one for a replaced connection. */
export const displacedCode = 4409

export type TunnelEnd = ReturnType<typeof createTunnelEnd>

export function createTunnelEnd(socket: TunnelSocket, ports: TunnelEndPorts) {
  const pending = new Map<number, (answer: PeerAnswer) => void>()
  let lastId = 0
  let serving = 0
  let isClosed = false
  const isAlive = createLivenessCheck(ports.wire)
  const beat = setInterval(() => (isAlive() ? socket.ping() : socket.terminate()), ports.beatMs).unref()

  const hasRoom = (text: string): boolean =>
    socket.bufferedAmount + text.length <= limits.tunnelBufferBytesMax.value
  const messageOf = (head: Head, body: string): string => `${JSON.stringify(head)}\n${body}`

  async function serve(id: number, request: TunnelRequest): Promise<void> {
    let answer = busy
    if (serving < limits.tunnelRequestsInFlight.value) {
      serving++
      answer = await ports.serve(request)
      serving--
    }
    if (isClosed) return
    const { status, headers, body } = answer
    const message = messageOf({ answer: id, status, headers }, body)
    const isTooMuch = message.length > limits.sourceAnswerBytesMax.value || !hasRoom(message)
    socket.send(isTooMuch ? messageOf({ answer: id, status: 503, headers: {} }, '') : message)
  }

  function take(text: string): void {
    const end = text.indexOf('\n')
    const head = headOf(text.slice(0, end))
    const body = text.slice(end + 1)
    if (head?.ask !== undefined && typeof head.method === 'string' && typeof head.path === 'string') {
      const { ask, method, path, headers = {} } = head
      void serve(ask, { method, path, headers, body })
      return
    }
    const { answer, status, headers = {} } = head ?? {}
    if (answer === undefined || typeof status !== 'number')
      socket.close(1002, 'neither a request nor an answer')
    else pending.get(answer)?.({ status, headers, text: body })
  }

  socket.on('message', (data, isBinary) => {
    if (isBinary) socket.close(1002, 'messages are text')
    else take(data.toString())
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', (code, reason) => {
    if (isClosed) return
    isClosed = true
    clearInterval(beat)
    for (const answer of [...pending.values()])
      answer({ failure: 'unreachable', reason: 'the tunnel was closed' })
    ports.onClose(code, reason.toString())
  })

  return Object.freeze({
    /** Number of requests without an answer. */
    inFlight: () => pending.size,
    exchange: (request: TunnelRequest, timeoutMs: number): Promise<PeerAnswer> =>
      new Promise<PeerAnswer>((resolve) => {
        const { method, path, headers, body } = request
        const id = ++lastId
        const message = messageOf({ ask: id, method, path, headers }, body)
        if (isClosed) return resolve({ failure: 'unreachable', reason: 'the tunnel was closed' })
        if (pending.size >= limits.tunnelRequestsInFlight.value || !hasRoom(message))
          return resolve({ failure: 'unreachable', reason: 'the tunnel is full' })
        const end = (answer: PeerAnswer): void => {
          clearTimeout(timer)
          pending.delete(id)
          resolve(answer)
        }
        const timer = setTimeout(
          () => end({ failure: 'timeout', reason: `no answer within ${timeoutMs} ms` }),
          timeoutMs,
        )
        pending.set(id, end)
        socket.send(message)
      }),
    close(code: number, reason: string): void {
      socket.close(code, reason)
      // The socket is terminated if the other side does not complete the closing handshake.
      setTimeout(() => socket.terminate(), limits.tunnelCloseMs.value).unref()
    },
  })
}

/**
 * Returns a check whether a connection is alive, to be called periodically. It fails after two checks without
 * traffic, since one may come just before a late sign of life. It counts bytes, not messages: a large message
 * on a slow line takes many periods, and pings wait behind it.
 */
export function createLivenessCheck(wire: TunnelWire): () => boolean {
  let last: { read: number; left: number; waiting: number } | undefined
  let silentLooks = 0
  return () => {
    const { bytesRead: read, writableLength: waiting } = wire
    const left = wire.bytesWritten - waiting
    // Sent bytes count only if some were waiting; otherwise they may lie in the buffers of a dead connection.
    const moved = last === undefined || read > last.read || (last.waiting > 0 && left > last.left)
    last = { read, left, waiting }
    silentLooks = moved ? 0 : silentLooks + 1
    return silentLooks < 2
  }
}

const busy: TunnelAnswer = { status: 503, headers: { 'retry-after': '1' }, body: '' }

function headOf(line: string): Head | undefined {
  const head = parsedJson(line)
  return isObject(head) ? head : undefined
}
