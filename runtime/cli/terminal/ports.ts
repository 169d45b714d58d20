/**
 * Checks whether a TCP port can be bound, by binding it briefly.
 */
import { createServer } from 'node:net'
import type { Terminal } from './terminal.ts'

/** Undefined if the port can be bound; otherwise the error code, such as EADDRINUSE or EACCES. */
export function whyTaken(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

/** The port, or 0 and a message if it is in use. */
export async function portOrAny(host: string, port: number, terminal: Terminal): Promise<number> {
  if ((await whyTaken(host, port)) === undefined) return port
  terminal.err(`Port ${port} is in use; using another one.\n`)
  return 0
}
