/**
 * How long the event loop of a gateway stood still while something was done to it: by its own metric, times the share of
 * a processor that its main thread had meanwhile. So a busy machine does not look like a stall.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { HttpClient } from '#test/kit/http-gateway.ts'
import type { GatewayProcess } from '#test/kit/process.ts'

export interface Stall {
  /** Longest event-loop delay, ms, as it would be on a machine with nothing else to do. */
  readonly delayMs: number
  /** The same as it was here. */
  readonly measuredMs: number
  /** Most resident memory at any moment, MB. */
  readonly peakMb: number
  /** Processor time that the host withheld from this virtual machine meanwhile, ms; delays contain it. */
  readonly stolenMs: number
}

/** How often the gateway looks at its event loop. */
const tickMs = 20

/** Nanoseconds that the main thread ran, and that it was ready to run and did not. */
function scheduled(pid: number): readonly [ran: number, waited: number] {
  const [ran, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number)
  return [ran!, waited!]
}

/** Processor time that the host withheld from all processors so far, ms (proc(5): steal, in 1/100 s). */
const stolen = (): number => 10 * Number(readFileSync('/proc/stat', 'utf8').split(/\s+/, 9)[8])

/** Begins a new measurement of the most resident memory. */
const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5')
const memoryOf = (pid: number, field: 'VmHWM' | 'VmRSS'): number =>
  1024 *
  Number(new RegExp(`^${field}:\\s*(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
export const residentBytes = (pid: number): number => memoryOf(pid, 'VmRSS')

const gaugeIn = (text: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1])

/** Does something to a gateway and says how its event loop stood. */
export async function stallOf(
  gateway: Pick<GatewayProcess, 'pid'>,
  http: HttpClient,
  act: () => Promise<unknown>,
): Promise<Stall> {
  await http.get('/metrics')
  // The histogram of Node starts to measure with its second tick after a scrape, so that a stall before that would not be seen.
  await setTimeout(3 * tickMs)
  resetPeak(gateway.pid)
  const before = scheduled(gateway.pid)
  const stolenBefore = stolen()
  await act()
  // What is left over for later turns belongs to it.
  await http.get('/health/live')
  await setTimeout(3 * tickMs)
  const { text } = await http.get('/metrics')
  const after = scheduled(gateway.pid)
  const [ran, waited] = [after[0] - before[0], after[1] - before[1]]
  const measuredMs = gaugeIn(text, 'selvedge_event_loop_lag_max_seconds') * 1000
  return {
    delayMs: (measuredMs * ran) / (ran + waited),
    measuredMs,
    peakMb: memoryOf(gateway.pid, 'VmHWM') / 1e6,
    stolenMs: stolen() - stolenBefore,
  }
}
