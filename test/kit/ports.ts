/** TCP ports of this machine, for programs that tests start. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** A port on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Settles when something listens there. */
export async function listening(port: number): Promise<void> {
  while (!(await isOpen(port))) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Settles when nothing listens there. */
export async function silent(port: number): Promise<void> {
  while (await isOpen(port)) await new Promise((resolve) => setTimeout(resolve, 20))
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isConnected = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  socket.destroy()
  return isConnected
}
