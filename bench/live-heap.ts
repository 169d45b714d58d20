/**
 * The live heap of a gateway's main thread: what is left after a collection. Asked of the process by its inspector, which a
 * signal opens, so that nothing of the product is there for it.
 */

import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '#test/kit/ports.ts'
import type { Server } from './servers.ts'

export interface LiveHeap {
  /** What the gateway has to be started with. */
  readonly env: Readonly<Record<string, string>>
  /** Collects, and tells what is left, in bytes. */
  measure(gateway: Pick<Server, 'pid'>): Promise<number>
}

export async function createLiveHeap(): Promise<LiveHeap> {
  const port = await freePort()
  return {
    env: { NODE_OPTIONS: `--inspect-port=127.0.0.1:${port}` },
    async measure({ pid }) {
      process.kill(pid, 'SIGUSR1')
      const socket = new WebSocket(await addressOf(port))
      await new Promise((resolve, reject) => {
        socket.addEventListener('open', resolve)
        socket.addEventListener('error', () => reject(new TypeError('the inspector refused')))
      })
      try {
        await call(socket, 'HeapProfiler.collectGarbage')
        const { usedSize } = await call(socket, 'Runtime.getHeapUsage')
        return usedSize!
      } finally {
        socket.close()
      }
    },
  }
}

/** The inspector listens a moment after the signal. */
async function addressOf(port: number): Promise<string> {
  for (let tries = 0; ; tries++) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`)
      const [target] = (await answer.json()) as readonly { readonly webSocketDebuggerUrl: string }[]
      return target!.webSocketDebuggerUrl
    } catch (error) {
      if (tries === 50) throw error
      await pause(100)
    }
  }
}

/** One at a time. */
function call(socket: WebSocket, method: string): Promise<Partial<Record<string, number>>> {
  return new Promise((resolve) => {
    socket.addEventListener(
      'message',
      ({ data }) => resolve((JSON.parse(data as string) as { result: Record<string, number> }).result),
      { once: true },
    )
    socket.send(JSON.stringify({ id: 1, method }))
  })
}
