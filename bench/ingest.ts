/**
 * `npm run bench -- ingest`: durable MQTT QoS 1 ingest through the whole pipeline, against what Mosquitto acknowledges
 * on the same core in the same run; slow flash; and bytes written per observation.
 */

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, processCpuSeconds, startPinned, threadCpuSeconds, writtenBytes } from './processes.ts'

const node = process.execPath
const load = new URL('./mqtt-load.ts', import.meta.url).pathname
const gateway = new URL('../bin/selvedge', import.meta.url).pathname

interface Server {
  readonly pid: number
  readonly port: number
  readonly httpPort: number
  readonly folder: string
  stop(): Promise<void>
}

interface Load {
  readonly publishers: number
  readonly window: number
  readonly seconds: number
  readonly devices: number
  readonly rate: number
}

interface Figures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds of main-thread CPU per message, and of the whole process. */
  readonly mainMicros: number
  readonly allMicros: number
  readonly bytesPerMessage: number
  /** 99th percentile of the event-loop delay, ms; NaN for a peer. */
  readonly lagP99: number
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function startGateway(env: Record<string, string>, core = 0): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-bench-'))
  const [port, httpPort] = [await freePort(), await freePort()]
  let ready: () => void
  const isReady = new Promise<void>((resolve) => (ready = resolve))
  const child = startPinned(core, [gateway, 'run'], {
    env: {
      SELVEDGE_DATA: folder,
      SELVEDGE_MQTT_PORT: String(port),
      SELVEDGE_HTTP_PORT: String(httpPort),
      ...env,
    },
    quiet: false,
    onLine: (line) => line.includes('gateway.ready') && ready(),
  })
  await isReady
  return { pid: child.pid!, port, httpPort, folder, stop: () => end(child, folder) }
}

async function startMosquitto(persistent: boolean): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-bench-'))
  const port = await freePort()
  const file = join(folder, 'mosquitto.conf')
  const persistence = persistent
    ? `persistence true\npersistence_location ${folder}/\nautosave_on_changes true\nautosave_interval 1\n`
    : 'persistence false\n'
  writeFileSync(
    file,
    `listener ${port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 0\n${persistence}`,
  )
  const child = startPinned(0, ['/usr/sbin/mosquitto', '-c', file])
  await new Promise((resolve) => setTimeout(resolve, 500))
  return { pid: child.pid!, port, httpPort: 0, folder, stop: () => end(child, folder) }
}

async function end(child: ReturnType<typeof startPinned>, folder: string): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
  rmSync(folder, { recursive: true, force: true })
}

/** Runs one load against a server and measures its CPU and bytes over exactly the measured span. */
function measure(server: Server, { publishers, window, seconds, devices, rate }: Load): Promise<Figures> {
  const numbers = [server.port, publishers, window, seconds, devices, rate].map(String)
  return new Promise((resolve) => {
    let before = { main: 0, all: 0, bytes: 0 }
    let after = before
    const now = () => ({
      main: threadCpuSeconds(server.pid),
      all: processCpuSeconds(server.pid),
      bytes: writtenBytes(server.pid),
    })
    /** The gateway tells the delay since the last time it was asked. */
    const lag = async (): Promise<number> => {
      if (server.httpPort === 0) return Number.NaN
      const text = await (await fetch(`http://127.0.0.1:${server.httpPort}/metrics`)).text()
      return Number(/^selvedge_event_loop_lag_p99_seconds (\S+)/m.exec(text)?.[1]) * 1000
    }
    let lagP99 = Promise.resolve(Number.NaN)
    const child = spawn('taskset', ['-c', '1', node, load, ...numbers], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.on('data', (data: Buffer) => {
      for (const line of data.toString().split('\n')) {
        if (line === 'measuring') {
          before = now()
          void lag()
        } else if (line === 'measured') {
          after = now()
          lagP99 = lag()
        } else if (line.startsWith('{')) {
          const result = JSON.parse(line) as {
            perSecond: number
            acknowledged: number
            p50: number
            p99: number
          }
          void lagP99.then((ms) =>
            resolve({
              ...result,
              lagP99: ms,
              mainMicros: ((after.main - before.main) / result.acknowledged) * 1e6,
              allMicros: ((after.all - before.all) / result.acknowledged) * 1e6,
              bytesPerMessage: (after.bytes - before.bytes) / result.acknowledged,
            }),
          )
        }
      }
    })
  })
}

async function repeated(rounds: number, run: () => Promise<Figures>): Promise<Figures> {
  const all: Figures[] = []
  for (let i = 0; i < rounds; i++) all.push(await run())
  const of = (pick: (figures: Figures) => number): number => median(all.map(pick))
  return {
    perSecond: of((f) => f.perSecond),
    p50: of((f) => f.p50),
    p99: of((f) => f.p99),
    mainMicros: of((f) => f.mainMicros),
    allMicros: of((f) => f.allMicros),
    bytesPerMessage: of((f) => f.bytesPerMessage),
    lagP99: of((f) => f.lagP99),
  }
}

const fresh = async (start: () => Promise<Server>, load: Load): Promise<Figures> => {
  const server = await start()
  try {
    return await measure(server, load)
  } finally {
    await server.stop()
  }
}

function print(name: string, figures: Figures): void {
  const { perSecond, p50, p99, mainMicros, allMicros, bytesPerMessage, lagP99 } = figures
  const lag = Number.isNaN(lagP99) ? '' : `  loop lag p99 ${lagP99.toFixed(1)} ms`
  process.stdout.write(
    `${name.padEnd(44)} ${perSecond.toFixed(0).padStart(8)}/s  PUBACK p50 ${p50.toFixed(2)} ms p99 ${p99.toFixed(2)} ms  ` +
      `CPU main ${mainMicros.toFixed(1)} us all ${allMicros.toFixed(1)} us  ${bytesPerMessage.toFixed(0)} B/message${lag}\n`,
  )
}

/** Gigabytes a day at a rate of observations per second. */
const gigabytesPerDay = (bytes: number, perSecond: number): string =>
  ((bytes * perSecond * 86_400) / 1e9).toFixed(2)

export async function benchIngest(options: { quick: boolean }): Promise<void> {
  const rounds = options.quick ? 1 : 5
  const seconds = options.quick ? 3 : 8
  const closed: Load = { publishers: 100, window: 16, seconds, devices: 100, rate: 0 }

  process.stdout.write(
    'QoS 1, 100 publishers with 16 in flight, one-record SenML; server on core 0, load on core 1\n',
  )
  const ours = await repeated(rounds, () => fresh(() => startGateway({}), closed))
  const floor = await repeated(rounds, () => fresh(() => startMosquitto(false), closed))
  const persistent = options.quick
    ? floor
    : await repeated(rounds, () => fresh(() => startMosquitto(true), closed))
  print('selvedge, acknowledged after the flush', ours)
  print('mosquitto without persistence (the floor)', floor)
  print('mosquitto with persistence, 1 s autosave', persistent)
  process.stdout.write(
    `ratio to the floor: ${((ours.perSecond / floor.perSecond) * 100).toFixed(0)} %  (goal 40 %, aim 60 %; main-thread CPU goal 12 us)\n\n`,
  )

  process.stdout.write('The same with every flush slowed by 20 ms\n')
  const slow = await repeated(rounds, () =>
    fresh(() => startGateway({ SELVEDGE_FAILPOINTS: 'writer:after-commit=sleep(20)' }), closed),
  )
  const bound = (100 * 16) / 2 / 0.0205
  print('selvedge', slow)
  process.stdout.write(
    `share of the bound (half the messages in flight per flush = ${bound.toFixed(0)}/s): ${((slow.perSecond / bound) * 100).toFixed(0)} %  (goal 80 %)\n\n`,
  )

  process.stdout.write('Flash writes: 2,000 observations/s over 100 streams, 50 ms linger\n')
  const wear = await wearFigures(options.quick)
  print('selvedge', wear)
  const days = [10, 100, 1000].map(
    (rate) => `${gigabytesPerDay(wear.bytesPerMessage, rate)} GB/day at ${rate}/s`,
  )
  process.stdout.write(`${days.join(', ')} when written at this grouping (goal 250 B/observation)\n`)
}

async function wearFigures(quick: boolean): Promise<Figures> {
  const server = await startGateway({ SELVEDGE_COMMIT_LINGER_MS: '50' })
  try {
    const figures = await measure(server, {
      publishers: 100,
      window: 16,
      seconds: quick ? 20 : 150,
      devices: 100,
      rate: 2000,
    })
    process.stdout.write(
      `database file ${(statSync(join(server.folder, 'selvedge.db')).size / 1e6).toFixed(1)} MB\n`,
    )
    return figures
  } finally {
    await server.stop()
  }
}
