/** A real server of somebody else's in one process, with a folder of its own, on a port that it keeps over restarts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, listening } from './ports.ts'

export interface PeerServer {
  readonly port: number
  start(): Promise<void>
  /** SIGTERM unless another signal is given. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

/** Made, not started. @param argumentsOf arguments of the program, given its folder and port. */
export async function createPeerServer(
  path: string,
  argumentsOf: (folder: string, port: number) => readonly string[],
): Promise<PeerServer> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-peer-'))
  const port = await freePort()
  const args = argumentsOf(folder, port)
  let child: ChildProcess | undefined

  async function kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  return {
    port,
    async start() {
      child = spawn(path, args, { stdio: 'ignore' })
      const end = (): void => void child?.kill('SIGKILL')
      process.once('exit', end)
      child.once('exit', () => process.off('exit', end))
      await listening(port)
    },
    kill,
    async remove() {
      await kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
