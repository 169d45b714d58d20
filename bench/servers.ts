/**
 * Servers under measurement, pinned to core 0. The gateway runs as it is deployed: the bundle, laid out beside its
 * Node as deploy/install.sh does and started by bin/selvedge, in a copy, so that what others edit meanwhile changes
 * nothing. Every server has a fresh data folder, which goes when it stops.
 */
import { type ChildProcess, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { freePort } from '#test/kit/ports.ts'
import { startPinned } from './processes.ts'

export interface Server {
  readonly pid: number
  /** MQTT. */
  readonly port: number
  readonly httpPort: number
  /** The data folder. */
  readonly folder: string
  /** From exec to readiness. */
  readonly readyMs: number
  /** SIGTERM, and the data folder goes unless `keep` says otherwise. */
  stop(options?: { keep: boolean }): Promise<void>
}

export const serverCore = 0
const ownRoot = join(import.meta.dirname, '..')

/**
 * Builds the bundle of a checkout, this one by default, and lays it out. Returns the command; the layout goes when
 * this process ends.
 */
export function layOutGateway(checkout = ownRoot): string {
  const root = resolve(checkout)
  execFileSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit', cwd: root })
  const home = temporaryFolder()
  process.once('exit', () => removeFolder(home))
  for (const part of ['bin', 'dist', 'package.json'])
    cpSync(join(root, part), join(home, part), { recursive: true })
  mkdirSync(join(home, 'node/bin'), { recursive: true })
  symlinkSync(process.execPath, join(home, 'node/bin/node'))
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'))
  return join(home, 'bin/selvedge')
}

export async function startGateway(
  command: string,
  env: Readonly<Record<string, string>> = {},
  folder = temporaryFolder(),
): Promise<Server> {
  const [port, httpPort] = [await freePort(), await freePort()]
  const { promise: isReady, resolve: ready } = Promise.withResolvers<number>()
  const startedAt = performance.now()
  const child = startPinned(serverCore, [command, 'run'], {
    env: {
      SELVEDGE_DATA: folder,
      SELVEDGE_MQTT_PORT: String(port),
      SELVEDGE_HTTP_PORT: String(httpPort),
      SELVEDGE_RANKING_PORT: 'off',
      SELVEDGE_SEARCH_PORT: 'off',
      SELVEDGE_ORCHESTRATOR_PORT: 'off',
      // As systemd's CacheDirectory= does.
      CACHE_DIRECTORY: join(command, '../../cache'),
      ...env,
    },
    quiet: false,
    onLine(line) {
      if (line.includes('"gateway.ready"')) ready(performance.now())
      else if (line.includes('"level":"error"')) process.stderr.write(`${line}\n`)
    },
  })
  const readyMs = (await Promise.race([isReady, deathOf(child)])) - startedAt
  let isStopping = false
  child.once('exit', (code, signal) => {
    if (!isStopping) process.stderr.write(`the gateway ended by itself: ${code ?? signal}\n`)
  })
  return {
    pid: child.pid!,
    port,
    httpPort,
    folder,
    readyMs,
    async stop({ keep } = { keep: false }) {
      isStopping = true
      await end(child)
      if (!keep) removeFolder(folder)
    },
  }
}

/** Starts a floor (a TypeScript file that prints its port) with its arguments. */
export async function startFloor(file: string, args: readonly string[] = []): Promise<Server> {
  const { promise: isReady, resolve: ready } = Promise.withResolvers<number>()
  const startedAt = performance.now()
  const folder = temporaryFolder()
  const child = startPinned(serverCore, [process.execPath, file, ...args], {
    env: { SELVEDGE_DATA: folder },
    quiet: false,
    onLine: (line) => ready(Number(line)),
  })
  const httpPort = await Promise.race([isReady, deathOf(child)])
  return {
    pid: child.pid!,
    port: 0,
    httpPort,
    folder,
    readyMs: performance.now() - startedAt,
    async stop() {
      await end(child)
      removeFolder(folder)
    },
  }
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'selvedge-bench-'))
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

/** SIGTERM, and waits for the end. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
}

function deathOf(child: ChildProcess): Promise<never> {
  return new Promise((_, reject) => {
    child.once('exit', (code, signal) =>
      reject(new TypeError(`${dirname(child.spawnfile)} ended with ${code ?? signal} before it was ready`)),
    )
  })
}
