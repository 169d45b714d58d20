/** A real Redis with its own folder, on a port that it keeps over restarts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, listening } from './ports.ts'

export interface Redis {
  readonly port: number
  start(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

/** Made, not started. @param more options, such as `--requirepass x`. */
export async function createRedis(path: string, more: readonly string[] = []): Promise<Redis> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-redis-'))
  const port = await freePort()
  const options = [
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
  ]
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
      child = spawn(path, [...options, ...more], { stdio: 'ignore' })
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
