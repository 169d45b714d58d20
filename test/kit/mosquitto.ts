/** A real Mosquitto with its own folder, on a port that it keeps over restarts, and its command line clients. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findPeer } from './peer-table.ts'
import { freePort, listening } from './ports.ts'

export interface Mosquitto {
  readonly port: number
  start(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

/** Made, not started. Everything is persistent at once; `lines` go into its configuration. */
export async function createMosquitto(path: string, lines: readonly string[] = []): Promise<Mosquitto> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-mosquitto-'))
  const port = await freePort()
  const config = join(folder, 'mosquitto.conf')
  const own = [
    `listener ${port} 127.0.0.1`,
    'allow_anonymous true',
    'persistence true',
    `persistence_location ${folder}/`,
    'autosave_on_changes true',
    'autosave_interval 1',
    ...(process.getuid?.() === 0 ? ['user root'] : []),
  ]
  writeFileSync(config, `${[...own, ...lines].join('\n')}\n`)
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
      child = spawn(path, ['-c', config], { stdio: 'ignore' })
      const end = (): void => void child?.kill('SIGKILL')
      process.once('exit', end)
      child.once('exit', () => process.off('exit', end))
      await listening(port)
    },
    kill,
    async remove() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs one of Mosquitto's clients to its end and returns its standard output; `input` is its standard input. */
export async function run(
  name: 'mosquitto_pub' | 'mosquitto_sub',
  args: readonly string[],
  input = '',
): Promise<string> {
  const running = promisify(execFile)(findPeer(name)!, args, { timeout: 60_000 })
  // A client that reads no input may end before it is written.
  running.child.stdin?.on('error', () => undefined).end(input)
  return (await running).stdout
}
