/** TCP ports of this machine, for programs that tests start. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/**
 * A port on which nothing listens, below the range from which Linux hands out ports (32768 to 60999). A program may
 * therefore leave it and return to it, and no other socket of this machine is given it meanwhile.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
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
