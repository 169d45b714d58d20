/**
 * Finds streams that are silent. A detector counts in the time of its stream: the time from the newest sample
 * to its deadline passes on the clock from the arrival of that sample. A device that sends in bundles gets
 * one and a half times its longest pause. Every device gets ten seconds, since a busy gateway or network
 * delays what was sent in time.
 */
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import { createTimerWheel } from '#base/time/timer-wheel.ts'
import { type FaultStream, isWatched } from './fault-stream.ts'
import type { Judging } from './judging.ts'

export interface OverduePorts {
  readonly judging: Pick<Judging, 'silent'>
  /** Whether observations that were committed are not judged yet. */
  readonly isBehind: () => boolean
  /** Start of this process, ms: silence before is that of the gateway. */
  readonly upSince: number
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

export function createOverdue({ judging, isBehind, upSince, clock }: OverduePorts): Overdue {
  const wheel = createTimerWheel<FaultStream>(
    { clock, due },
    { tickMs: limits.faultsTickMs.value, slots: limits.faultsWheelSlots.value },
  )

  function due(stream: FaultStream): void {
    const at = stream.detector?.nextAt()
    if (at === undefined || !isWatched(stream)) return
    if (isBehind()) wheel.set(stream, clock.monotonic() + behindMs)
    else judging.silent(stream, at)
  }

  function note(stream: FaultStream): void {
    const { last, longestPauseMs } = stream.record
    const at = isWatched(stream) ? stream.detector?.nextAt() : undefined
    if (at === undefined || last === undefined) {
      wheel.delete(stream)
      return
    }
    const waitMs = Math.max(at - last.time, pauses * longestPauseMs, limits.faultsSilenceMinMs.value)
    const arrivedAt = Math.max(last.committedAt, upSince)
    wheel.set(stream, clock.monotonic() + Math.max(0, waitMs - (clock.now() - arrivedAt)))
  }

  return Object.freeze({ note, delete: wheel.delete, close: wheel.close } satisfies Overdue)
}
