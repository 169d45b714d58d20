/**
 * Decides when streams are saved: after many observations or a long time, and soon after a detector was made.
 * Saving rarely spares the flash; a restart judges the observations since then again, from the log.
 */
import { limits } from '#base/limits/limits.ts'
import type { Clock } from '#base/time/clock.ts'
import type { FaultStream } from './fault-stream.ts'
import type { JudgedUntil, WatchStatements } from './watched-stream-statements.ts'

export interface SavingPorts {
  readonly table: WatchStatements
  /** Undefined while everything is read: then nothing is saved. */
  readonly cursor: () => JudgedUntil | undefined
  readonly clock: Clock
  /** Called if saving failed. */
  readonly fail: (error: unknown) => void
}

export function createSaving({ table, cursor, clock, fail }: SavingPorts) {
  let unsaved = new Set<FaultStream>()
  let removed = new Set<string>()
  let judged = 0
  let savedAt = clock.monotonic()
  let timer: NodeJS.Timeout | undefined

  /** @throws if it cannot be written; then it is still unsaved. */
  function now(): void {
    clearTimeout(timer)
    timer = undefined
    const at = cursor()
    if (at === undefined) return
    table.save({ streams: unsaved, removed, cursor: at })
    unsaved = new Set()
    removed = new Set()
    judged = 0
    savedAt = clock.monotonic()
  }

  return Object.freeze({
    now,
    note: (stream: FaultStream) => void unsaved.add(stream),
    remove(stream: FaultStream) {
      unsaved.delete(stream)
      removed.add(stream.id)
    },
    count(observations: number) {
      judged += observations
      const isDue =
        judged >= limits.faultsSaveObservations.value ||
        clock.monotonic() - savedAt >= limits.faultsSaveMs.value
      if (isDue) now()
    },
    soon() {
      timer ??= setTimeout(() => {
        try {
          now()
        } catch (error) {
          fail(error)
        }
      }, limits.faultsSaveSoonMs.value).unref()
    },
    close: () => clearTimeout(timer),
  })
}
