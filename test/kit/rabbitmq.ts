/**
 * A real RabbitMQ with its own folder, on a port that it keeps over restarts. Its name server (epmd) is its own as
 * well, so nothing of it outlives the test. It listens on loopback only; the user is guest.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPeer } from './peer-table.ts'
import { freePort, listening, silent } from './ports.ts'

export interface Rabbitmq {
  readonly url: string
  start(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

/** Made, not started. */
export async function createRabbitmq(path: string): Promise<Rabbitmq> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-rabbitmq-'))
  const [port, distribution, names] = [await freePort(), await freePort(), await freePort()]
  const config = join(folder, 'rabbitmq.conf')
  mkdirSync(join(folder, 'home'))
  const lines = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    'log.console = true',
    'log.console.level = warning',
    'log.file = false',
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const env = {
    PATH: process.env['PATH'],
    HOME: join(folder, 'home'),
    ERL_EPMD_PORT: `${names}`,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: 'selvedge@localhost',
    RABBITMQ_DIST_PORT: `${distribution}`,
    RABBITMQ_CONFIG_FILE: config,
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1',
  }
  // A process group of its own, since scripts start the server.
  const run = (command: string, args: readonly string[]): ChildProcess => {
    const child = spawn(command, args, { env, cwd: folder, stdio: 'ignore', detached: true })
    const end = (): void => void signalled(child, 'SIGKILL')
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    return child
  }
  const resolver = run(findPeer('epmd')!, ['-port', `${names}`, '-address', '127.0.0.1'])
  await listening(names)
  let server: ChildProcess | undefined

  return {
    url: `amqp://127.0.0.1:${port}`,
    async start() {
      server = run(path, [])
      await listening(port)
    },
    async kill(signal = 'SIGTERM') {
      await ended(server, signal)
      // The server is a child of the script that was started, and may end later.
      await silent(port)
    },
    async remove() {
      await ended(server, 'SIGKILL')
      await ended(resolver, 'SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function signalled({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // It ended already.
  }
}

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  signalled(child, signal)
  await exited
}
