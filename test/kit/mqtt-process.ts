/** Starts the broker as a process that can be killed, on a database file that outlives it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface BrokerProcess {
  readonly port: number
  readonly child: ChildProcess
  /** SIGKILL; settles when the process is gone. */
  kill(): Promise<void>
  /** SIGTERM; settles when the process is gone. */
  stop(): Promise<void>
}

const program = new URL('./mqtt-broker.ts', import.meta.url).pathname

export async function startBrokerProcess(
  file: string,
  options: { port?: number; env?: Record<string, string>; prefix?: readonly string[] } = {},
): Promise<BrokerProcess> {
  const command = [...(options.prefix ?? []), process.execPath, program, file, String(options.port ?? 0)]
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...options.env },
  })
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  const exited = once(child, 'exit').then(() => void process.off('exit', end))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { port } = JSON.parse(line) as { port: number }
  const send = (signal: NodeJS.Signals) => async (): Promise<void> => {
    child.kill(signal)
    await exited
  }
  return { port, child, kill: send('SIGKILL'), stop: send('SIGTERM') }
}
