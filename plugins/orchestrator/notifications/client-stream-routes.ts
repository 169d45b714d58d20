/**
 * The streams of clients by Server-Sent Events and WebSocket, at `subscriptions/{id}/notifications`. A client
 * confirms by `Last-Event-ID`, by DELETE with `until`, or over WebSocket by `{"confirmed": id}`.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { RouteEnvironment, WebSocketLike } from '#contract'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { ClientStreams } from './client-streams.ts'

/** The client and the subscription of a stream. */
export interface ClientStreamOwner {
  readonly id: string
  readonly client: string
}

export function createClientStreamRoutes(streams: ClientStreams) {
  return Object.freeze({
    listen(request: Request, { upgrade }: RouteEnvironment, { id, client }: ClientStreamOwner): Response {
      const confirmed = request.headers.get('last-event-id') ?? ''
      const accepted = request.headers.get('accept') ?? '*/*'
      if (upgrade === undefined && !/text\/(?:event-stream|\*)|\*\/\*/.test(accepted))
        throw new GatewayError('http.not-acceptable', 'available are text/event-stream and WebSocket', {
          available: ['text/event-stream'],
        })
      if (request.method === 'HEAD') return new Response(null, { headers: eventStreamHeaders })
      if (confirmed !== '') streams.confirm(id, client, confirmed)
      if (upgrade === undefined) return eventStream(streams, { id, client })
      upgrade((socket) => serveSocket(socket, streams, { id, client }))
      return new Response(null, { status: 204 })
    },
    confirm(request: Request, { id, client }: ClientStreamOwner): Response {
      const until = new URL(request.url).searchParams.get('until')
      if (until === null) throw badRequestData('is required: the id of the last event received', 'until')
      streams.confirm(id, client, until)
      return new Response(null, { status: 204 })
    },
  })
}

const eventStreamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
}

/**
 * A notification as one line, since a line break ends a field of an event. In JSON line breaks stand only
 * between tokens, so numbers and texts stay as they were received.
 */
const lineOf = (body: string): string => body.replaceAll(/[\r\n]+/g, ' ')

function eventStream(streams: ClientStreams, { id, client }: ClientStreamOwner): Response {
  const encoder = new TextEncoder()
  let listening: ReturnType<ClientStreams['listen']> | undefined
  let beat: NodeJS.Timeout | undefined
  const end = (): void => {
    clearInterval(beat)
    listening?.end()
    listening = undefined
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string): boolean => {
          controller.enqueue(encoder.encode(text))
          return (controller.desiredSize ?? 0) > 0
        }
        write(`retry: ${limits.streamRetryMs.value}\n\n`)
        beat = setInterval(() => write(':\n\n'), limits.streamBeatMs.value)
        listening = streams.listen(id, client, {
          write: (one) => write(`id: ${one.id}\nevent: notification\ndata: ${lineOf(one.body)}\n\n`),
          close() {
            if (listening === undefined) return
            end()
            controller.close()
          },
        })
      },
      pull: () => listening?.ready(),
      cancel: end,
    },
    { highWaterMark: limits.streamBufferBytes.value, size: (chunk) => chunk.byteLength },
  )
  return new Response(body, { headers: eventStreamHeaders })
}

/** Each message is `{id, notification}`. */
function serveSocket(socket: WebSocketLike, streams: ClientStreams, { id, client }: ClientStreamOwner): void {
  let isAlive = true
  let unsentBytes = 0
  const listening = streams.listen(id, client, {
    write(one) {
      const text = `{"id":${JSON.stringify(one.id)},"notification":${one.body}}`
      unsentBytes += text.length
      socket.send(text, () => {
        unsentBytes -= text.length
        if (unsentBytes < limits.streamBufferBytes.value) listening.ready()
      })
      return unsentBytes < limits.streamBufferBytes.value
    },
    close: () => socket.close(1001, 'another connection of this client, or the gateway stops'),
  })
  const beat = setInterval(() => {
    if (!isAlive) return socket.terminate()
    isAlive = false
    socket.ping()
  }, limits.streamBeatMs.value)
  socket.on('pong', () => {
    isAlive = true
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => {
    clearInterval(beat)
    listening.end()
  })
  socket.on('message', (data, isBinary) => {
    const message = isBinary ? undefined : parsedJson(data.toString())
    const confirmed = isObject(message) ? message['confirmed'] : undefined
    if (typeof confirmed !== 'string') return socket.close(1008, 'send {"confirmed": id}')
    try {
      streams.confirm(id, client, confirmed)
    } catch (error) {
      const isTheirs = error instanceof GatewayError && error.entry.fault === 'caller'
      socket.close(
        isTheirs ? 1008 : 1011,
        isTheirs ? 'not the id of a notification' : 'not confirmed; try again',
      )
    }
  })
}
