/**
 * Whether a TCP port can be listened at, found out by doing so for a moment.
 */
import { createServer } from 'node:net'
import type { Terminal } from './terminal.ts'

/** Undefined when it can; else the error code, such as EADDRINUSE or EACCES. */
export function whyTaken(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

/** The port itself, or 0 with a word about it where it is taken. */
export async function portOrAny(host: string, port: number, terminal: Terminal): Promise<number> {
  if ((await whyTaken(host, port)) === undefined) return port
  terminal.err(`Port ${port} is taken; another one is used.\n`)
  return 0
}
