/**
 * The one place where answers are handed to a connection, for the direct way and for hono's alike. An answer that does not
 * fit into the byte budget of all connections is replaced by 503 with Retry-After before anything of it is sent.
 */
import { type IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { limits } from '#base/limits/limits.ts'
import { collectDiscarded, noteDiscarded } from '#base/process/garbage-collection.ts'
import type { Outflow } from '#base/process/outflow.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Reply } from '#http/request/response.ts'

export interface AnswerWriterPorts {
  readonly outflow: Pick<Outflow, 'hasRoom'>
  refuse(error: unknown): Response
}

export interface AnswerWriter {
  /**
   * To be called before an answer is made. Frees the texts of large answers that were sent, and what was made of large bodies.
   * @param received bytes of the body that comes with the request.
   */
  collect(received: number): void
  /** Writes a whole answer. */
  write(outgoing: ServerResponse, reply: Reply): void
  /** Writes a problem that Retry-After belongs to. */
  refuse(outgoing: ServerResponse): void
  /** Checks in the same way whatever a library writes; to be given to createServer. */
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
    const answer = refuse(new GatewayError('http.busy', 'clients do not read the answers that are ready'))
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
      // A text in ASCII is handed over as Latin-1: these are the same bytes, and sooner copied.
      plain.end.call(outgoing, body, length === body.length ? 'latin1' : 'utf8')
    },
  } satisfies AnswerWriter)
}

/** A response that holds its head back until it is known whether the body fits. */
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

/** Node would copy a long text to put the head before it. Until the answer ends the head stays here, and leaves with the body. */
function sendHeadApart(outgoing: ServerResponse): void {
  outgoing.cork()
  plain.flushHeaders.call(outgoing)
}

/** A long text in ASCII has the same bytes as Latin-1, without the room and the time that UTF-8 takes. */
function isLongAscii(rest: readonly unknown[]): boolean {
  const [body] = rest
  return (
    rest.length === 1 &&
    typeof body === 'string' &&
    body.length >= longTextMin &&
    Buffer.byteLength(body) === body.length
  )
}

/** Below it, looking through a text costs what it brings. */
const longTextMin = 4096
