/**
 * Real gateway processes for tests and benchmarks: `bin/selvedge` on free ports, with a data folder of its own and
 * a clean environment. Every process started here ends with the process that started it. Nothing is retried: a
 * gateway that ends before it is ready is a failure that shows its whole output.
 */
import { AssertionError } from 'node:assert'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const selvedge = new URL('../../bin/selvedge', import.meta.url).pathname

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface GatewayOptions {
  /** Environment beside PATH and HOME; SELVEDGE_FAILPOINTS goes here. */
  readonly env?: Readonly<Record<string, string>>
  /** Settings, written as a JSON file that the gateway is given. */
  readonly config?: Readonly<Record<string, unknown>>
  /** An existing or new folder, which stays. Left out: a temporary one that `stop` removes. */
  readonly dataFolder?: string
  /** Further arguments of `selvedge run`. */
  readonly flags?: readonly string[]
  /** Command put before `bin/selvedge`, such as `['taskset', '-c', '0']`. */
  readonly prefix?: readonly string[]
  /** What to run instead of the `bin/selvedge` of this checkout, such as a deployed one. */
  readonly program?: readonly string[]
  readonly readyWithinMs?: number
}

export interface GatewayProcess {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly httpUrl: string
  readonly httpPort: number
  readonly mqttPort: number
  readonly pid: number
  readonly dataFolder: string
  readonly exited: Promise<Exit>
  /** Everything written so far, both outputs in order of arrival. */
  output(): string
  /** The log lines so far, parsed. */
  logLines(): readonly Readonly<Record<string, unknown>>[]
  /** The first log line with this event, also one already written; fails after `withinMs`. */
  event(name: string, withinMs?: number): Promise<Readonly<Record<string, unknown>>>
  /** Sends a signal (SIGKILL unless named) and settles when the process is gone. */
  kill(signal?: NodeJS.Signals): Promise<Exit>
  /** SIGTERM, wait, and remove the folders that were made here. */
  stop(): Promise<Exit>
}

/** Starts `selvedge run` and settles when it says that it is ready. */
export async function startGatewayProcess(options: GatewayOptions = {}): Promise<GatewayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-test-'))
  const dataFolder = options.dataFolder ?? join(folder, 'data')
  const env: Record<string, string> = {
    SELVEDGE_DATA: dataFolder,
    SELVEDGE_HTTP_PORT: '0',
    SELVEDGE_MQTT_PORT: '0',
    ...options.env,
  }
  if (options.config !== undefined) {
    env['SELVEDGE_CONFIG'] = join(folder, 'selvedge.json')
    writeFileSync(env['SELVEDGE_CONFIG'], JSON.stringify(options.config))
  }
  const program = options.program ?? [selvedge]
  const command = [...(options.prefix ?? []), ...program, 'run', ...(options.flags ?? [])]
  const running = launch(command, env)
  const stop = async (): Promise<Exit> => {
    running.child.kill('SIGTERM')
    const exit = await running.exited
    rmSync(folder, { recursive: true, force: true })
    return exit
  }
  const ready = await running.event('gateway.ready', options.readyWithinMs ?? 20_000).catch(async (error) => {
    await running.kill()
    rmSync(folder, { recursive: true, force: true })
    throw error
  })
  const httpPort = Number(ready['httpPort'])
  return Object.freeze({
    exited: running.exited,
    output: running.output,
    logLines: running.logLines,
    event: running.event,
    kill: running.kill,
    httpUrl: `http://127.0.0.1:${httpPort}`,
    httpPort,
    mqttPort: Number(ready['mqttPort']),
    pid: running.child.pid!,
    dataFolder,
    stop,
  })
}

/** Runs any `selvedge` command to its end; `input` goes to its standard input. */
export async function runSelvedge(
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; input?: string | Uint8Array; cwd?: string } = {},
): Promise<Exit & { stdout: string; stderr: string }> {
  const child = spawn(selvedge, args, { env: { ...cleanEnvironment(), ...options.env }, cwd: options.cwd })
  endWithParent(child)
  const text = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text.stderr += chunk))
  child.stdin.on('error', () => undefined).end(options.input)
  return { ...(await exitOf(child)), ...text }
}

/** A started command whose standard output is log lines. */
function launch(command: readonly string[], env: Record<string, string>) {
  const child = spawn(command[0]!, command.slice(1), {
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endWithParent(child)
  const exited = exitOf(child)
  const lines: Record<string, unknown>[] = []
  const watchers = new Set<() => void>()
  let output = ''
  let rest = ''
  const take = (chunk: string): void => {
    output += chunk
    const parts = (rest + chunk).split('\n')
    rest = parts.pop()!
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part))
    for (const watcher of watchers) watcher()
  }
  child.stdout.setEncoding('utf8').on('data', take)
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))

  const event = (name: string, withinMs = 10_000) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer)
        watchers.delete(look)
        settle()
      }
      const give = (why: string): void => {
        finish(() => reject(new AssertionError({ message: `${why} before ${name}\n--- output\n${output}` })))
      }
      const look = (): void => {
        const line = lines.find((candidate) => candidate['event'] === name)
        if (line !== undefined) finish(() => resolve(line))
      }
      const timer = setTimeout(() => give(`${withinMs} ms passed`), withinMs)
      watchers.add(look)
      void exited.then(({ code, signal }) => give(`ended with ${code ?? signal}`))
      look()
    })

  const kill = (signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> => {
    child.kill(signal)
    return exited
  }
  return { child, exited, event, kill, output: () => output, logLines: () => lines }
}

/** Only what a program needs to run: a variable of the developer's shell must not decide a test. */
function cleanEnvironment(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'NODE_V8_COVERAGE']
  return Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

/** After `close` both outputs are complete, which `exit` does not promise. */
function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}

function endWithParent(child: ChildProcess): void {
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  child.once('close', () => process.off('exit', end))
}
