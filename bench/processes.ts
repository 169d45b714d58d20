/**
 * Processes under measurement: started pinned to a core, watched through /proc. CPU and memory are what the kernel
 * accounts, not what a process says of itself.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** CPU seconds of one thread: the kernel's scheduler statistics, ns resolution. */
export function threadCpuSeconds(pid: number, thread: number = pid): number {
  const [running] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
  return Number(running) / 1e9
}

/** CPU seconds of all threads of a process. */
export function processCpuSeconds(pid: number): number {
  let sum = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) sum += threadCpuSeconds(pid, Number(thread))
  return sum
}

/** Least time without work that counts as rest, and the longest that is waited for it, in s. */
const restSeconds = 2
const restWaitSeconds = 60
/** Share of a core that an idle process may use; its timers took 0.04 to 0.1 when the machine was slow. */
const restShare = 0.1

/** Waits until a process is at rest, for a minute at most. Returns how many seconds that took. */
export async function atRest(pid: number): Promise<number> {
  let seconds = 0
  for (let calm = 0; calm < restSeconds && seconds < restWaitSeconds; seconds++) {
    const before = processCpuSeconds(pid)
    await sleep(1000)
    calm = processCpuSeconds(pid) - before < restShare ? calm + 1 : 0
  }
  return seconds
}

/** Resident memory in bytes: all, and the private part. */
export function memory(pid: number): { resident: number; privateBytes: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kib = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0)
  return {
    resident: kib('Rss') * 1024,
    privateBytes: (kib('Private_Clean') + kib('Private_Dirty')) * 1024,
  }
}

/** Bytes a process has handed to the disk. */
export function writtenBytes(pid: number): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0)
}

/** Starts a process pinned to a core; its output is thrown away unless `onLine` takes it. */
export function startPinned(
  core: number,
  command: readonly string[],
  options: PinnedOptions = {},
): ChildProcess {
  const child = spawn('taskset', ['-c', String(core), ...command], {
    stdio: ['ignore', 'pipe', options.quiet === false ? 'inherit' : 'ignore'],
    // Node would read the certificates named there at each start, which takes 10 ms.
    env: { ...process.env, NODE_EXTRA_CA_CERTS: undefined, ...options.env },
  })
  let rest = ''
  child.stdout.on('data', (data: Buffer) => {
    rest += data.toString()
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) options.onLine?.(line)
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}

/** Moves every thread of a process to these cores, a list as taskset takes it. */
export function pin(pid: number, cores: string): void {
  execFileSync('taskset', ['-acp', cores, String(pid)])
}

export interface PinnedOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly onLine?: (line: string) => void
  readonly quiet?: boolean
}

/** Results of one load on one server. Times in ms, CPU in microseconds per operation. */
export interface LoadFigures {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** CPU of the main thread, and of the whole process. */
  readonly mainMicros: number
  readonly allMicros: number
  /** Bytes handed to the disk per operation. */
  readonly bytesEach: number
  /** 99th percentile of the event-loop delay; NaN for a server that does not tell. */
  readonly lagP99: number
  /** Writes answered, before and after the measured span too; only HTTP loads tell. */
  readonly writes?: number
}

/**
 * Runs a load process on core 1 and measures the server's CPU and bytes over exactly the measured span. The load
 * prints `measuring`, then `measured`, then one JSON line with perSecond, done, p50 and p99.
 */
export function underLoad(
  { pid, httpPort }: { readonly pid: number; readonly httpPort: number },
  file: string,
  args: readonly string[],
): Promise<LoadFigures> {
  const now = () => ({
    main: threadCpuSeconds(pid),
    all: processCpuSeconds(pid),
    bytes: writtenBytes(pid),
  })
  return new Promise((resolve, reject) => {
    let before = { main: 0, all: 0, bytes: 0 }
    let after = before
    let lag = Promise.resolve(Number.NaN)
    let isReported = false
    const child = startPinned(1, [process.execPath, file, ...args], {
      quiet: false,
      onLine(line) {
        if (line === 'measuring') {
          before = now()
          void loopLag(httpPort)
        } else if (line === 'measured') {
          after = now()
          lag = loopLag(httpPort)
        } else if (line.startsWith('{')) {
          isReported = true
          const { done, ...result } = JSON.parse(line) as Record<
            'perSecond' | 'done' | 'p50' | 'p99' | 'writes',
            number
          >
          const each = (span: number): number => span / done
          void lag.then((lagP99) =>
            resolve({
              ...result,
              mainMicros: each(after.main - before.main) * 1e6,
              allMicros: each(after.all - before.all) * 1e6,
              bytesEach: each(after.bytes - before.bytes),
              lagP99,
            }),
          )
        }
      },
    })
    child.once('exit', (code) => {
      if (!isReported) reject(new TypeError(`the load ended with code ${code}`))
    })
  })
}

/** The 99th percentile of the gateway's event loop delay since the last call, ms. */
export async function loopLag(httpPort: number): Promise<number> {
  return (await eventLoopDelays(httpPort)).p99Ms
}

/** The gateway's event loop delays since the last call. */
export async function eventLoopDelays(httpPort: number): Promise<{ p99Ms: number; longestMs: number }> {
  if (httpPort === 0) return { p99Ms: Number.NaN, longestMs: Number.NaN }
  const text = await (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text()
  const millisecondsOf = (name: string): number =>
    Number(new RegExp(`^selvedge_event_loop_lag_${name}_seconds (\\S+)`, 'm').exec(text)?.[1]) * 1000
  return { p99Ms: millisecondsOf('p99'), longestMs: millisecondsOf('max') }
}

/** The median of each figure. */
export function medians(all: readonly LoadFigures[]): LoadFigures {
  const of = (name: Exclude<keyof LoadFigures, 'writes'>): number =>
    median(all.map((figures) => figures[name]))
  return {
    perSecond: of('perSecond'),
    p50: of('p50'),
    p99: of('p99'),
    mainMicros: of('mainMicros'),
    allMicros: of('allMicros'),
    bytesEach: of('bytesEach'),
    lagP99: of('lagP99'),
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Value below which the given share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
