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
import { quietPlugins } from './quiet-plugins.ts'

/** What a quiet machine does at once may take a busy one so long; each wait ends with what it waits for. */
const patienceMs = 200_000
const selvedge = new URL('../../bin/selvedge', import.meta.url).pathname

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A parsed log line: `at`, `level`, `event`, and facts. */
export type LogLine = Readonly<Record<string, unknown>>

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
  readonly output: () => string
  /** The log lines so far, parsed. */
  logLines(): readonly LogLine[]
  /** The first log line with this event, also one already written; fails after `withinMs`. */
  event(name: string, withinMs?: number): Promise<LogLine>
  /** Sends a signal (SIGKILL unless named) and settles when the process is gone. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<Exit>
  /** SIGTERM, wait, and remove the folders that were made here. */
  stop(): Promise<Exit>
}

/** Starts `selvedge run` and settles when it says that it is ready. */
export async function startGatewayProcess(options: GatewayOptions = {}): Promise<GatewayProcess> {
  let folder: string | undefined
  const folderHere = (): string => (folder ??= mkdtempSync(join(tmpdir(), 'selvedge-test-')))
  const dataFolder = options.dataFolder ?? join(folderHere(), 'data')
  const env: Record<string, string> = {
    SELVEDGE_DATA: dataFolder,
    SELVEDGE_HTTP_PORT: '0',
    SELVEDGE_MQTT_PORT: '0',
    ...quietPlugins,
    ...options.env,
  }
  if (options.config !== undefined) {
    env['SELVEDGE_CONFIG'] = join(folderHere(), 'selvedge.json')
    writeFileSync(env['SELVEDGE_CONFIG'], JSON.stringify(options.config))
  }
  const running = startSelvedge(['run', ...(options.flags ?? [])], {
    env,
    prefix: options.prefix,
    program: options.program,
  })
  const logLines = (): LogLine[] =>
    running
      .output()
      .match(/^\{.*\}$/gm)
      ?.map((line) => JSON.parse(line) as LogLine) ?? []
  const event = async (name: string, withinMs = patienceMs): Promise<LogLine> => {
    const [line] = await running.saying(
      new RegExp(`^\\{.*"event":"${RegExp.escape(name)}".*\\}$`, 'm'),
      withinMs,
    )
    return JSON.parse(line) as LogLine
  }
  const stop = async (): Promise<Exit> => {
    const exit = await running.kill('SIGTERM')
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    return exit
  }
  const ready = await event('gateway.ready', options.readyWithinMs ?? patienceMs).catch(async (error) => {
    await running.kill()
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    throw error
  })
  const httpPort = Number(ready['httpPort'])
  return Object.freeze({
    pid: running.pid,
    exited: running.exited,
    output: running.output,
    kill: running.kill,
    httpUrl: `http://127.0.0.1:${httpPort}`,
    httpPort,
    mqttPort: Number(ready['mqttPort']),
    dataFolder,
    logLines,
    event,
    stop,
  })
}

export interface RunningCommand {
  readonly pid: number
  readonly exited: Promise<Exit>
  /** Everything written so far, both outputs in order of arrival. */
  readonly output: () => string
  /** The first match in what was or will be written; fails after `withinMs`, or when the process ends without. */
  saying(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>
  /** Sends a signal (SIGKILL unless named) and settles when the process is gone. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<Exit>
}

/** Starts any `selvedge` command and leaves it running. */
export function startSelvedge(
  args: readonly string[],
  options: {
    env?: Readonly<Record<string, string>>
    prefix?: readonly string[] | undefined
    program?: readonly string[] | undefined
    cwd?: string
  } = {},
): RunningCommand {
  const [first, ...rest] = [...(options.prefix ?? []), ...(options.program ?? [selvedge]), ...args]
  const child = spawn(first!, rest, {
    env: { ...cleanEnvironment(), ...options.env },
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endWithParent(child)
  const exited = exitOf(child)
  const watchers = new Set<() => void>()
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      for (const watcher of watchers) watcher()
    })
  }
  const saying = (pattern: RegExp, withinMs = patienceMs): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer)
        watchers.delete(look)
        settle()
      }
      const give = (why: string): void => {
        const message = `${why} before it said ${pattern}\n--- output\n${output}`
        finish(() => reject(new AssertionError({ message })))
      }
      const look = (): void => {
        const match = pattern.exec(output)
        if (match !== null) finish(() => resolve(match))
      }
      const timer = setTimeout(() => give(`${withinMs} ms passed`), withinMs)
      watchers.add(look)
      void exited.then(({ code, signal }) => give(`it ended with ${code ?? signal}`))
      look()
    })
  return Object.freeze({
    pid: child.pid!,
    exited,
    output: () => output,
    saying,
    kill(signal: NodeJS.Signals = 'SIGKILL') {
      child.kill(signal)
      return exited
    },
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
