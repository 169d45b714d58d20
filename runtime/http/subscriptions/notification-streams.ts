/**
 * Notification streams that consumers connect to (docs/decisions/0018). A subscription with the endpoint
 * `urn:selvedge:stream` is delivered to the client that reads its `/notifications` by Server-Sent Events or
 * WebSocket. Sending does not confirm: unconfirmed notifications are sent again to the next consumer.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type {
  Listening,
  StreamEvent,
  SubscriptionBroker,
} from '#broker/subscriptions/subscription-requests.ts'
import { acceptsEventStream } from '#http/listener/cross-origin.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { idOf } from '#http/request/path-ids.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { streamUri } from '#ngsi-ld/subscription/subscription.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'

const confirmParameters = new Set(['until'])
const nothing: ReadonlySet<string> = new Set()

export function createStreamRoutes({ requests, answers }: ApiPorts) {
  /** Functions that end the open streams. */
  const open = new Set<() => void>()

  function streamed({ broker }: ApiRequest, id: string): SubscriptionBroker {
    const view = broker.subscriptions.get(id)
    if (view === undefined) throw notFound(`no subscription ${id}`)
    if (view.subscription.notification.endpoint.uri !== streamUri)
      throw badRequestData(
        `is not ${streamUri}, so the subscription has no stream`,
        'notification.endpoint.uri',
      )
    return broker.subscriptions
  }

  return Object.freeze({
    async listen(c: HttpContext): Promise<Response> {
      const { upgrade } = c.env
      const request = await requests.stream(c, nothing)
      if (upgrade === undefined && !acceptsEventStream(headerOf(c, 'accept')))
        throw new GatewayError('http.not-acceptable', 'available are text/event-stream and WebSocket', {
          available: ['text/event-stream'],
        })
      const id = idOf(c)
      const subscriptions = streamed(request, id)
      // A HEAD request changes nothing: it neither confirms nor displaces the consumer.
      if (c.req.method === 'HEAD') return new Response(null, { headers: eventStreamHeaders })
      const confirmed = headerOf(c, 'last-event-id')
      if (confirmed !== undefined && confirmed !== '') await subscriptions.confirm(id, confirmed)
      const shared = { subscriptions, id, open }
      if (upgrade === undefined) return eventStream(shared)
      upgrade.accept((socket) => webSocketStream(socket, shared), {
        messageBytesMax: limits.streamMessageBytesMax.value,
      })
      return answers.noContent(request)
    },

    /** Confirms all notifications up to an event. */
    async confirm(c: HttpContext): Promise<Response> {
      const request = await requests.stream(c, confirmParameters)
      const until = request.parameters.get('until')
      if (until === undefined) throw badRequestData('is required: the id of the last event received', 'until')
      const id = idOf(c)
      await streamed(request, id).confirm(id, until)
      return answers.noContent(request)
    },

    /** Ends all streams when the gateway stops. */
    end(): void {
      for (const close of [...open]) close()
    },
  })
}

const eventStreamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
}

interface Shared {
  readonly subscriptions: SubscriptionBroker
  readonly id: string
  readonly open: Set<() => void>
}

function eventStream({ subscriptions, id, open }: Shared): Response {
  const encoder = new TextEncoder()
  let listening: Listening | undefined
  let beat: NodeJS.Timeout | undefined
  const end = (): void => {
    clearInterval(beat)
    open.delete(close)
    listening?.end()
  }
  let close = end
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const write = (text: string): boolean => {
          controller.enqueue(encoder.encode(text))
          return (controller.desiredSize ?? 0) > 0
        }
        close = () => {
          if (!open.has(close)) return
          end()
          controller.close()
        }
        open.add(close)
        write(`retry: ${limits.streamRetryMs.value}\n\n`)
        beat = setInterval(() => write(':\n\n'), limits.streamBeatMs.value)
        listening = subscriptions.listen(id, {
          write: (event) => write(`id: ${event.id}\nevent: notification\ndata: ${event.body}\n\n`),
          close,
        })
      },
      pull: () => listening?.ready(),
      cancel: () => end(),
    },
    { highWaterMark: limits.streamBufferBytes.value, size: (chunk) => chunk.byteLength },
  )
  return new Response(body, { headers: eventStreamHeaders })
}

/** The part of a WebSocket that is used. */
export interface StreamSocket {
  readonly bufferedAmount: number
  send(text: string, sent: () => void): void
  ping(): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  on(event: 'pong' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Each message is `{id, notification}`; the consumer confirms with `{confirmed: id}`. */
function webSocketStream(socket: StreamSocket, { subscriptions, id, open }: Shared): void {
  let isAlive = true
  const isFull = (): boolean => socket.bufferedAmount >= limits.streamBufferBytes.value
  const close = (): void => socket.close(1001, 'another consumer connected, or the gateway stops')
  const listening = subscriptions.listen(id, {
    write: ({ id: eventId, body }: StreamEvent) => {
      socket.send(`{"id":${JSON.stringify(eventId)},"notification":${body}}`, () => {
        if (!isFull()) listening.ready()
      })
      return !isFull()
    },
    close,
  })
  const beat = setInterval(() => {
    if (!isAlive) return socket.terminate()
    isAlive = false
    socket.ping()
  }, limits.streamBeatMs.value)
  open.add(close)
  socket.on('pong', () => {
    isAlive = true
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => {
    clearInterval(beat)
    open.delete(close)
    listening.end()
  })
  socket.on('message', (data, isBinary) => {
    const confirmed = isBinary ? undefined : confirmedOf(data.toString())
    if (confirmed === undefined) return socket.close(1008, 'send {"confirmed": id}')
    subscriptions.confirm(id, confirmed).catch((error: unknown) => {
      const isOurs = error instanceof GatewayError && error.entry.fault === 'caller'
      socket.close(isOurs ? 1008 : 1011, isOurs ? 'not the id of a notification' : 'not confirmed; try again')
    })
  })
}

function confirmedOf(text: string): string | undefined {
  try {
    const { confirmed } = JSON.parse(text) as { readonly confirmed?: unknown }
    return typeof confirmed === 'string' ? confirmed : undefined
  } catch {
    return undefined
  }
}
