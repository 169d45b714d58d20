/**
 * The one place that writes responses to a connection, for direct reads and for Hono alike. If a response
 * exceeds the byte budget shared by all connections, it is replaced by 503 with Retry-After before its first
 * byte is sent.
 */
import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import { collectDiscarded, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Outflow } from '#base/process/outflow.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Reply } from '#contract'

export interface AnswerWriterPorts {
  readonly outflow: Pick<Outflow, 'hasRoom'>
  refuse(error: unknown): Response
}

export interface AnswerWriter {
  /**
   * To be called before a response is built. Frees the texts of large responses already sent and the values
   * parsed from large bodies.
   *
   * @param received bytes of the request's body.
   */
  collect(received: number): void
  /** Writes a complete response. */
  write(outgoing: ServerResponse, reply: Reply): void
  /** Writes a 503 with Retry-After. */
  refuse(outgoing: ServerResponse): void
  /** Response class for createServer that applies the same check to whatever a library writes. */
  readonly Response: typeof ServerResponse
}

type Method = (this: ServerResponse, ...rest: unknown[]) => unknown

const plain = ServerResponse.prototype as unknown as Readonly<
  Record<'writeHead' | 'write' | 'end' | 'flushHeaders', Method>
>

export function createAnswerWriter({ outflow, refuse }: AnswerWriterPorts): AnswerWriter {
  const fits = (bytes: number): boolean => {
    if (bytes <= limits.outflowSmallBytes.value) return true
    noteDiscarded(bytes)
    return outflow.hasRoom(bytes)
  }

  function sendRefusal(outgoing: ServerResponse): void {
    const answer = refuse(
      new GatewayError('http.busy', 'too many responses are waiting for clients to read them; retry later'),
    )
    const headers: OutgoingHttpHeaders = Object.fromEntries(answer.headers)
    void answer.text().then((text) => {
      plain.writeHead.call(outgoing, answer.status, { ...headers, 'Content-Length': Buffer.byteLength(text) })
      plain.end.call(outgoing, text)
    })
  }

  return Object.freeze({
    Response: responseThat(fits, sendRefusal),
    collect(received) {
      collectDiscarded()
      if (received > limits.outflowSmallBytes.value) noteDiscarded(received)
    },
    refuse: sendRefusal,
    write(outgoing, { status, headers, body }) {
      if (body === null) {
        plain.writeHead.call(outgoing, status, headers)
        plain.end.call(outgoing)
        return
      }
      const length = Buffer.byteLength(body)
      if (!fits(length)) {
        sendRefusal(outgoing)
        return
      }
      plain.writeHead.call(outgoing, status, { ...headers, 'Content-Length': length })
      if (length > limits.outflowSmallBytes.value) sendHeadApart(outgoing)
      // An ASCII text is written as Latin-1: the bytes are the same and the copy is faster.
      if (typeof body === 'string') plain.end.call(outgoing, body, length === body.length ? 'latin1' : 'utf8')
      else plain.end.call(outgoing, body)
    },
  } satisfies AnswerWriter)
}

/** Makes a response class that holds its head back until it is known whether the body fits. */
function responseThat(
  fits: (bytes: number) => boolean,
  sendRefusal: (outgoing: ServerResponse) => void,
): typeof ServerResponse {
  return class<Request extends IncomingMessage> extends ServerResponse<Request> {
    heldHead: unknown[] | undefined = undefined

    override writeHead(...rest: unknown[]): this {
      this.heldHead = rest
      return this
    }

    override flushHeaders(): void {
      this.sendHead()
      plain.flushHeaders.call(this)
    }

    override write(...rest: unknown[]): boolean {
      this.sendHead()
      return plain.write.apply(this, rest) as boolean
    }

    override end(...rest: unknown[]): this {
      const [body] = rest
      const isWhole = this.heldHead !== undefined && (typeof body === 'string' || body instanceof Uint8Array)
      if (isWhole && !fits(body.length)) {
        sendRefusal(this)
        return this
      }
      this.sendHead()
      if (isWhole && body.length > limits.outflowSmallBytes.value) sendHeadApart(this)
      if (isLongAscii(rest)) plain.end.call(this, body, 'latin1')
      else plain.end.apply(this, rest)
      return this
    }

    sendHead(): void {
      const { heldHead } = this
      if (heldHead === undefined) return
      this.heldHead = undefined
      plain.writeHead.apply(this, heldHead)
    }
  }
}

/**
 * Corks the socket and queues the head separately, because Node would copy a long body to put the head before
 * it. Both leave together when the response ends.
 */
function sendHeadApart(outgoing: ServerResponse): void {
  outgoing.cork()
  plain.flushHeaders.call(outgoing)
}

/**
 * Whether a body is a long ASCII text: as Latin-1 it has the same bytes and needs less memory and time than
 * UTF-8.
 */
function isLongAscii(rest: readonly unknown[]): boolean {
  const [body] = rest
  return (
    rest.length === 1 &&
    typeof body === 'string' &&
    body.length >= longTextMin &&
    Buffer.byteLength(body) === body.length
  )
}

/** Below this length, scanning the text costs as much as it saves. */
const longTextMin = 4096
