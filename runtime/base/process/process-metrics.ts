/**
 * Gauges of the process itself: memory, event-loop delay, bytes written. They are read at each scrape.
 */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from '#base/register/metrics.ts'
import { version } from '#base/register/version.ts'
import { residentBytes } from './process-memory.ts'

const loopResolutionMs = 20

export function watchProcess(metrics: Metrics): void {
  const lag = monitorEventLoopDelay({ resolution: loopResolutionMs })
  lag.enable()
  metrics.gauge('selvedge_build_info', () => 1, `{version="${version}"}`)
  metrics.gauge('selvedge_uptime_seconds', () => process.uptime())
  metrics.gauge('selvedge_resident_memory_bytes', residentBytes)
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - loopResolutionMs / 1000)
  metrics.gauge('selvedge_event_loop_lag_max_seconds', () => seconds(lag.max))
  // Gauges are read in the order of registration; this one resets the interval of both.
  metrics.gauge('selvedge_event_loop_lag_p99_seconds', () => {
    const p99 = seconds(lag.percentile(99))
    lag.reset()
    return p99
  })
  metrics.gauge('selvedge_write_bytes_total', writtenBytes)
}

/** Bytes handed to the disk; NaN if the system does not report them. */
function writtenBytes(): number {
  try {
    return Number(/^write_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1] ?? Number.NaN)
  } catch {
    return Number.NaN
  }
}
