/**
 * WebSocket on the HTTP listener. An upgrade request passes the same checks as any other (token, tenant,
 * errors). The route may accept the connection; if it does not, its response is sent as plain HTTP and the
 * connection closes.
 */

import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { Pacing } from '#base/load/yielding.ts'
import type { Outflow } from '#base/process/outflow.ts'
import type { Log } from '#base/register/log.ts'
import type { HttpEnv, Upgrade } from '#http/request/http-environment.ts'
import type { DirectReads } from '#http/request/response.ts'

export interface HttpServerPorts {
  /** Answers simple requests before a Request is built for them. */
  readonly direct?: DirectReads | undefined
  fetch(request: Request, env: HttpEnv): Response | Promise<Response>
  /** The response to a request so malformed that no Request could be built from it. */
  refuse(error: unknown): Response
  /** Called when the listener begins to close; it must end long-lived connections. */
  readonly closing?: () => void
  /** Bounds the unread output of all listeners together. */
  readonly outflow: Outflow
  readonly log: Log
}

/** The gateway ignores offers of other protocols, such as h2c, as the standard allows [RFC 9110 7.8]. */
export const isWebSocketUpgrade = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === 'websocket'

/** @param pace spreads requests that arrive together, and their handshakes, over several turns. */
export function serveUpgrades(
  server: Server,
  ports: Pick<HttpServerPorts, 'fetch' | 'refuse'>,
  pace: Pacing,
): void {
  const serverFor = webSocketServers()
  server.on('upgrade', (incoming: IncomingMessage, connection: Duplex, head: Buffer) => {
    connection.on('error', () => connection.destroy())
    let isTaken = false
    const upgrade: Upgrade = {
      accept(use, { messageBytesMax, headers = [] }) {
        isTaken = true
        pace(() =>
          serverFor(messageBytesMax, incoming, headers).handleUpgrade(incoming, connection, head, use),
        )
      },
    }
    pace(() => {
      void answerOf(incoming, upgrade, ports).then(async (response) => {
        if (!isTaken) connection.end(await textOf(response))
      })
    })
  })
}

/** One WebSocketServer per message limit. There are few, since routes take their limits from a table. */
function webSocketServers() {
  const servers = new Map<number, WebSocketServer>()
  const headersOf = new WeakMap<IncomingMessage, readonly string[]>()
  return (maxPayload: number, incoming: IncomingMessage, headers: readonly string[]): WebSocketServer => {
    headersOf.set(incoming, headers)
    const known = servers.get(maxPayload)
    if (known !== undefined) return known
    const options = { noServer: true, clientTracking: false, maxPayload, perMessageDeflate: false }
    const server = new WebSocketServer(options)
    server.on('headers', (lines, request) => lines.push(...(headersOf.get(request) ?? [])))
    servers.set(maxPayload, server)
    return server
  }
}

async function answerOf(
  incoming: IncomingMessage,
  upgrade: Upgrade,
  ports: Pick<HttpServerPorts, 'fetch' | 'refuse'>,
): Promise<Response> {
  try {
    const headers = Object.entries(incoming.headers).filter(([, value]) => typeof value === 'string')
    const request = new Request(`http://localhost${incoming.url ?? '/'}`, {
      headers: Object.fromEntries(headers) as Record<string, string>,
    })
    return await ports.fetch(request, { incoming, upgrade })
  } catch (error) {
    return ports.refuse(error)
  }
}

async function textOf(response: Response): Promise<string> {
  const body = await response.text()
  const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`]
  response.headers.forEach((value, name) => {
    if (name !== 'content-length') lines.push(`${name}: ${value}`)
  })
  lines.push(`Content-Length: ${Buffer.byteLength(body)}`, 'Connection: close')
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
