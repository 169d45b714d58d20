/**
 * Subscriptions over Server-Sent Events (protocol graphql-sse, distinct connections): one operation per
 * request. Events are created as the client reads them: beyond a few unread events the source waits. Streams
 * reserved by PUT are rejected, because nothing would limit them.
 */
import { createHandler } from 'graphql-sse'
import { limits } from '#base/limits/limits.ts'
import type { RouteEnvironment } from '#contract'
import { refusal } from './http-operations.ts'
import type { Runner } from './runner.ts'

/** Events created and not yet read by the client. */
interface Held {
  count: number
  taken: () => void
}

export async function answerStream(
  runner: Runner,
  request: Request,
  environment: RouteEnvironment,
): Promise<Response> {
  const isStream = /\btext\/event-stream\b/i.test(request.headers.get('accept') ?? '')
  if ((request.method !== 'GET' && request.method !== 'POST') || !isStream) {
    const message = 'Use GET or POST with Accept: text/event-stream, one operation per connection'
    return Response.json({ errors: [{ message }] }, { status: request.method === 'PUT' ? 405 : 406 })
  }
  const disconnected = new AbortController()
  environment.signal.addEventListener('abort', () => disconnected.abort())
  const held: Held = { count: 0, taken: () => undefined }
  const handle = createHandler({
    // Documents are validated in `runner.admit`.
    validate: () => [],
    authenticate: () => null,
    onSubscribe: (_request, given) => {
      const admitted = runner.admit(given, disconnected.signal)
      return 'schema' in admitted ? (admitted as never) : ({ data: undefined, errors: admitted } as never)
    },
    execute: (args) => runner.run(args),
    subscribe: (args) => runner.subscribe(args),
    onNext: () => untilTaken(held),
  })
  const headers = new Headers(request.headers)
  headers.set('accept', 'text/event-stream')
  const [body, init] = await handle({
    method: request.method,
    url: request.url,
    headers,
    body: async () => (await environment.body()).toString('utf8'),
    raw: undefined,
    context: undefined,
  })
  if (body === null) return refusal(init)
  if (typeof body === 'string') return new Response(body, init)
  return new Response(streamOf(body, held, disconnected), init)
}

async function untilTaken(held: Held): Promise<undefined> {
  held.count++
  while (held.count > limits.searchEventsHeld.value) {
    await new Promise<void>((resolve) => {
      held.taken = resolve
    })
  }
  return undefined
}

function streamOf(
  events: AsyncGenerator<string, void, unknown>,
  held: Held,
  disconnected: AbortController,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const end = (): void => {
    held.count = 0
    held.taken()
    void events.return()
  }
  disconnected.signal.addEventListener('abort', end)
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await events.next()
      if (value?.startsWith('event: next') === true) {
        held.count--
        held.taken()
      }
      if (typeof value === 'string') controller.enqueue(encoder.encode(value))
      if (done === true) controller.close()
    },
    cancel() {
      disconnected.abort()
    },
  })
}
