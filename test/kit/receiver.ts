/**
 * A subscriber's end: a real HTTP server on loopback that records what it is sent and answers as told. It can go
 * away and come back on the same port, hang, and cut connections.
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { freePort } from './ports.ts'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** When it had come in whole, ms on the monotonic clock. */
  readonly at: number
  /** Filled in with the answer. */
  status: number
}

/** A status, with headers if need be; `hang` never answers, `reset` cuts before and `cut` within the answer. */
export type Answer = number | 'hang' | 'reset' | 'cut' | { status: number; headers: Record<string, string> }

export interface Receiver {
  /** In order of arrival, whatever the answer was. */
  readonly received: readonly Received[]
  /** Those answered with 2xx. */
  taken(): Received[]
  /** Most requests that were open at once. */
  mostAtOnce(): number
  /** TCP connections accepted so far. */
  connections(): number
  url(path?: string): string
  answer(how: (received: Received) => Answer | Promise<Answer>): void
  up(): Promise<void>
  down(): Promise<void>
  /** Drops what is recorded, for runs so long that it would fill memory. */
  forget(): void
}

/** A receiver that is up and answers 204. */
export async function createReceiver(): Promise<Receiver> {
  const port = await freePort()
  const received: Received[] = []
  let how: (received: Received) => Answer | Promise<Answer> = () => 204
  let server: Server | undefined
  let open = 0
  let most = 0
  let connections = 0

  async function respond(entry: Received, response: ServerResponse): Promise<void> {
    const answer = await how(entry)
    open--
    if (answer === 'hang') return
    if (answer === 'reset') return void response.destroy()
    const { status, headers } = typeof answer === 'object' ? answer : { status: 200, headers: {} }
    entry.status = typeof answer === 'number' ? answer : status
    response.writeHead(entry.status, answer === 'cut' ? { 'content-length': '1000' } : headers)
    if (answer !== 'cut') return void response.end()
    response.write('partial', () => response.destroy())
  }
  async function up(): Promise<void> {
    const listening = createServer((request, response) => {
      most = Math.max(most, ++open)
      const chunks: Buffer[] = []
      request.on('error', () => undefined)
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const entry = {
          path: request.url ?? '',
          headers: request.headers,
          body,
          at: performance.now(),
          status: 0,
        }
        received.push(entry)
        void respond(entry, response)
      })
    })
    listening.on('connection', () => connections++)
    await once(listening.listen(port, '127.0.0.1'), 'listening')
    server = listening
  }
  await up()
  return {
    received,
    taken: () => received.filter(({ status }) => status >= 200 && status < 300),
    mostAtOnce: () => most,
    connections: () => connections,
    url: (path = '/notify') => `http://127.0.0.1:${port}${path}`,
    answer(next) {
      how = next
    },
    up,
    forget() {
      received.length = 0
    },
    async down() {
      const closing = server
      server = undefined
      if (closing === undefined) return
      const closed = new Promise((resolve) => closing.close(resolve))
      closing.closeAllConnections()
      await closed
    },
  }
}
