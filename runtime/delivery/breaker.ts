/**
 * The circuit breaker of a host and port: closed while connections succeed, open from the first failed
 * connection until a probe succeeds. It considers connections only; pace.ts handles failed responses.
 */
import type { Clock } from '#base/time/clock.ts'

const intervalMs = 1000
const intervalMsMax = 30_000
const patienceMs = 600_000

/** Time between the starts of two probes, ms: one second, growing to 30 s after ten minutes. */
export function probeIntervalMs(downMs: number): number {
  if (downMs < patienceMs) return intervalMs
  return Math.min(intervalMsMax, 2 * intervalMs + (downMs - patienceMs))
}

export interface Breaker {
  /** When the breaker opened, wall-clock ms; undefined while closed. */
  downSince(): number | undefined
  /** Records a failed connection. Returns true if this opened the breaker. */
  trip(): boolean
  /** Stops probing permanently. */
  stop(): void
}

export interface BreakerPorts {
  readonly clock: Clock
  probe(): Promise<boolean>
  /** Called when a probe succeeded after `downMs`. */
  closed(downMs: number): void
}

export function createBreaker(ports: BreakerPorts): Breaker {
  const { clock } = ports
  let since: { wall: number; monotonic: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const wait = (ms: number): void => {
    timer = setTimeout(() => void probeOnce(), ms)
  }
  async function probeOnce(): Promise<void> {
    const startedAt = clock.monotonic()
    const isUp = await ports.probe()
    if (isStopped || since === undefined) return
    const downMs = clock.monotonic() - since.monotonic
    if (!isUp) return wait(Math.max(0, startedAt + probeIntervalMs(downMs) - clock.monotonic()))
    since = undefined
    ports.closed(downMs)
  }
  return Object.freeze({
    downSince: () => since?.wall,
    trip() {
      if (since !== undefined || isStopped) return false
      since = { wall: clock.now(), monotonic: clock.monotonic() }
      wait(intervalMs)
      return true
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  })
}
