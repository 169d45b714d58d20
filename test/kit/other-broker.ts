/**
 * An HTTP server in the place of a broker of somebody else: records each request as its bytes arrived and
 * responds as the test says.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach } from 'vitest'

export interface SeenRequest {
  readonly method: string
  readonly target: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

export interface OtherBroker {
  readonly url: string
  readonly seen: readonly SeenRequest[]
  /** Called after the body arrived, unless `early` responds before. */
  respond: (request: SeenRequest, outgoing: ServerResponse) => void
  early: ((incoming: IncomingMessage, outgoing: ServerResponse) => boolean) | undefined
}

/** One such server for the tests of a file, at a free port; what it does is set back before each. */
export function otherBrokerOfFile(port: number): OtherBroker {
  const seen: SeenRequest[] = []
  const plain: OtherBroker['respond'] = (_, outgoing) => void outgoing.end('[]')
  const server = createServer((incoming, outgoing) => {
    if (broker.early?.(incoming, outgoing) === true) return
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url: target = '', headers } = incoming
      const request = { method, target, headers, body: Buffer.concat(chunks) }
      seen.push(request)
      broker.respond(request, outgoing)
    })
  })
  beforeAll(async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  })
  beforeEach(() => {
    seen.length = 0
    broker.respond = plain
    broker.early = undefined
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const broker: OtherBroker = {
    url: `http://127.0.0.1:${port}`,
    seen,
    respond: plain,
    early: undefined,
  }
  return broker
}
