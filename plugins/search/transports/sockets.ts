/**
 * Operations over WebSocket (protocol graphql-transport-ws). Backpressure: the next event is created after
 * the previous one was sent.
 */
import { GraphQLError } from 'graphql'
import { makeServer } from 'graphql-ws'
import { limits } from '#base/limits/limits.ts'
import type { RouteEnvironment, WebSocketLike } from '#contract'
import type { Runner } from './runner.ts'

interface Extra {
  readonly signal: AbortSignal
}

export function createSockets(runner: Runner) {
  const open = new Set<WebSocketLike>()
  const server = makeServer<Record<string, unknown>, Extra>({
    onSubscribe: (context, _id, payload) => {
      const admitted = runner.admit(payload, context.extra.signal)
      return 'schema' in admitted ? admitted : ([...admitted] as never)
    },
    execute: (args) => runner.run(args),
    subscribe: (args) => runner.subscribe(args) as never,
  })

  function use(socket: WebSocketLike): void {
    if (open.size >= limits.searchSocketsMax.value) {
      socket.close(1013, 'Too many connections')
      return
    }
    open.add(socket)
    const disconnected = new AbortController()
    const closed = server.opened(
      {
        protocol: socket.protocol,
        send: (text) =>
          new Promise((resolve, reject) => {
            socket.send(text, (error) => (error === undefined || error === null ? resolve() : reject(error)))
          }),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) => {
          socket.on('message', (data) => {
            take(data.toString()).catch((error: unknown) => {
              socket.close(
                1011,
                error instanceof GraphQLError ? error.message.slice(0, 120) : 'Internal error',
              )
            })
          })
        },
      },
      { signal: disconnected.signal },
    )
    socket.on('error', () => socket.terminate())
    socket.on('close', (code, reason) => {
      open.delete(socket)
      disconnected.abort()
      void closed(code, reason.toString())
    })
  }

  return Object.freeze({
    /** Accepts the connection of an upgrade request. */
    take({ upgrade }: RouteEnvironment): Response {
      if (upgrade === undefined) return new Response(null, { status: 426, headers: { Upgrade: 'websocket' } })
      upgrade(use)
      return new Response(null)
    },
    count: () => open.size,
    close(): void {
      for (const socket of open) socket.close(1001, 'The gateway is shutting down')
    },
  })
}
