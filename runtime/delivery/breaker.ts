/**
 * The breaker of one host and port: closed while connections can be made, open from the first that cannot until a
 * probe gets through. Only connecting counts here; an endpoint that answers with failures is paused elsewhere.
 */
import type { Clock } from '#base/time/clock.ts'

const intervalMs = 1000
const intervalMsMax = 30_000
const patienceMs = 600_000

/** Time between the starts of two probes, ms: one second, and after ten minutes of silence doubling to 30 s. */
export function probeIntervalMs(downMs: number): number {
  if (downMs < patienceMs) return intervalMs
  return Math.min(intervalMsMax, 2 * intervalMs + (downMs - patienceMs))
}

export interface Breaker {
  /** Wall-clock ms since when nothing could be reached; undefined while closed. */
  downSince(): number | undefined
  /** A connection could not be made. True when this opened the breaker. */
  trip(): boolean
  /** Ends the probing for good. */
  stop(): void
}

export interface BreakerPorts {
  readonly clock: Clock
  probe(): Promise<boolean>
  /** Called when a probe got through; `downMs` is how long that took. */
  closed(downMs: number): void
}

export function createBreaker(ports: BreakerPorts): Breaker {
  const { clock } = ports
  let since: { wall: number; monotonic: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const wait = (ms: number): void => {
    timer = setTimeout(() => void look(), ms)
  }
  async function look(): Promise<void> {
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
