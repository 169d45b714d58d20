/**
 * Processes under measurement: started pinned to a core, watched through /proc. CPU and memory are what the kernel
 * accounts, not what a process says of itself.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'

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
export function startPinned(core: number, command: readonly string[], options: PinnedOptions = {}): ChildProcess {
  const child = spawn('taskset', ['-c', String(core), ...command], {
    stdio: ['ignore', 'pipe', options.quiet === false ? 'inherit' : 'ignore'],
    env: { ...process.env, ...options.env },
  })
  let rest = ''
  child.stdout!.on('data', (data: Buffer) => {
    rest += data.toString()
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) options.onLine?.(line)
  })
  process.once('exit', () => child.kill('SIGKILL'))
  return child
}

export interface PinnedOptions {
  readonly env?: Record<string, string>
  readonly onLine?: (line: string) => void
  readonly quiet?: boolean
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
