/**
 * Finds streams that are silent. A detector counts in the time of its stream: the time from the newest sample
 * to its deadline (`rules/times-rule.ts`) passes on the clock from the arrival of that sample. A device that
 * sends in bundles gets one and a half times its longest pause. Every device gets ten seconds, since a busy
 * gateway or network delays what was sent in time. Time in which the gateway was down does not count. While a
 * stream is silent, its missing samples are estimated.
 */
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { createTimerWheel } from '#base/time/timer-wheel.ts'
import { type FaultStream, isWatched } from './fault-stream.ts'
import type { Judging } from './judging.ts'

export interface OverduePorts {
  readonly judging: Pick<Judging, 'silent' | 'missing'>
  /** Whether observations that were committed are not judged yet. */
  readonly isBehind: () => boolean
  /** Called after a silence was judged. */
  readonly silenced: () => void
  readonly clock: Clock
}

export interface Overdue {
  /** Sets the deadline of a stream after it was judged. */
  note(stream: FaultStream): void
  delete(stream: FaultStream): void
  close(): void
}

const pauses = 1.5
const behindMs = 1000

export function createOverdue({ judging, isBehind, silenced, clock }: OverduePorts): Overdue {
  const wheel = createTimerWheel<FaultStream>(
    { clock, due },
    { tickMs: limits.faultsTickMs.value, slots: limits.faultsWheelSlots.value },
  )

  function due(stream: FaultStream): void {
    const { detector, record } = stream
    if (detector === undefined || !isWatched(stream)) return
    if (isBehind()) {
      wheel.set(stream, clock.monotonic() + behindMs)
      return
    }
    const at = detector.nextAt()
    if (at !== undefined) {
      judging.silent(stream, at + record.downMs)
      silenced()
    } else {
      const intervalMs = detector.intervalMs()
      const { last } = record
      if (last === undefined || intervalMs === undefined) return
      const missed = Math.max(1, Math.floor((clock.now() - last.committedAt) / intervalMs))
      judging.missing(stream, last.time + missed * intervalMs)
    }
    note(stream)
  }

  function note(stream: FaultStream): void {
    const { last, longestPauseMs, downMs } = stream.record
    const detector = isWatched(stream) ? stream.detector : undefined
    const intervalMs = detector?.intervalMs()
    if (detector === undefined || last === undefined || intervalMs === undefined) {
      wheel.delete(stream)
      return
    }
    const at = detector.nextAt()
    if (at === undefined) {
      wheel.set(stream, clock.monotonic() + Math.max(intervalMs, limits.faultsEstimateMs.value))
      return
    }
    const waitMs = Math.max(at - last.time, pauses * longestPauseMs, limits.faultsSilenceMinMs.value)
    const passedMs = clock.now() - last.committedAt - downMs
    wheel.set(stream, clock.monotonic() + Math.max(0, waitMs - passedMs))
  }

  return Object.freeze({ note, delete: wheel.delete, close: wheel.close } satisfies Overdue)
}
