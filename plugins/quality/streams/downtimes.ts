/**
 * Spans during which the gateway was down. Values that were expected then are not held against a sensor. The
 * latest span begins with the last sign of life of the former process, which the log may still move.
 */
import { limits } from '#base/limits/limits.ts'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'

export interface Downtimes {
  /** Spans that are certain, oldest first: gaps between observations are compared with them. */
  readonly certain: () => readonly Downtime[]
  /** All spans, oldest first: the silence of a stream is compared with them. */
  readonly all: () => readonly Downtime[]
  /** @param signs of life, ms; those before this process are of the former one. */
  restore(stored: readonly Downtime[], signs: readonly number[]): void
  /** Notes a commit. One of this process makes the latest span certain. */
  noteCommit(at: number): void
  /** Makes the latest span certain: the log has no further commit of the former process. */
  settle(): void
  /** Whether all spans are certain. Before, nothing can be said of the silence of a stream. */
  readonly isSettled: () => boolean
}

/** @param startedAt when this process began, ms. @param settled called once, when all spans are certain. */
export function createDowntimes(startedAt: number, settled: () => void = () => undefined): Downtimes {
  let certain: readonly Downtime[] = []
  let latest: Downtime | undefined
  let all = certain
  let isSettled = false

  function settle(): void {
    certain = all
    latest = undefined
    if (isSettled) return
    isSettled = true
    settled()
  }

  function setLatest(from: number): void {
    latest = { from, to: startedAt }
    all = [...certain, latest].slice(-limits.qualityDowntimesMax.value)
  }

  return Object.freeze({
    certain: () => certain,
    all: () => all,
    restore(stored, signs) {
      certain = stored
      setLatest(Math.max(0, ...signs.filter((at) => at < startedAt)))
    },
    noteCommit(at) {
      if (latest === undefined) return
      if (at >= startedAt) settle()
      else setLatest(Math.max(at, latest.from))
    },
    settle,
    isSettled: () => isSettled,
  } satisfies Downtimes)
}
