/**
 * The one place where answers are handed to a connection, for the direct way and for hono's alike. An answer that does not
 * fit into the byte budget of all connections is replaced by 503 with Retry-After before anything of it is sent.
 */
import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
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
  /** Has the same done to whatever a library writes to this response. */
  guard(outgoing: ServerResponse): void
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
    collect(received) {
      collectDiscarded()
      if (received > limits.outflowSmallBytes.value) noteDiscarded(received)
    },
    refuse: sendRefusal,
    write(outgoing, { status, headers, body }) {
      if (body === null) {
        outgoing.writeHead(status, headers).end()
        return
      }
      const length = Buffer.byteLength(body)
      if (!fits(length)) {
        sendRefusal(outgoing)
        return
      }
      outgoing.writeHead(status, { ...headers, 'Content-Length': length })
      if (length > limits.outflowSmallBytes.value) sendHeadApart(outgoing)
      // A text in ASCII is handed over as Latin-1: these are the same bytes, and sooner copied.
      outgoing.end(body, length === body.length ? 'latin1' : 'utf8')
    },
    guard(outgoing) {
      let head: unknown[] | undefined
      const sendHead = (): void => {
        if (head === undefined) return
        const held = head
        head = undefined
        plain.writeHead.apply(outgoing, held)
      }
      const guarded: typeof plain = {
        // Held back until it is known whether the body fits.
        writeHead(...rest) {
          head = rest
          return outgoing
        },
        flushHeaders() {
          sendHead()
          return plain.flushHeaders.call(outgoing)
        },
        write(...rest) {
          sendHead()
          return plain.write.apply(outgoing, rest)
        },
        end(...rest) {
          const [body] = rest
          const isWhole = head !== undefined && (typeof body === 'string' || body instanceof Uint8Array)
          if (isWhole && !fits(body.length)) {
            sendRefusal(outgoing)
            return outgoing
          }
          sendHead()
          if (isWhole && body.length > limits.outflowSmallBytes.value) sendHeadApart(outgoing)
          return isLongAscii(rest)
            ? plain.end.call(outgoing, body, 'latin1')
            : plain.end.apply(outgoing, rest)
        },
      }
      Object.assign(outgoing, guarded)
    },
  } satisfies AnswerWriter)
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
