/**
 * Decides when streams are saved: after many observations or a long time, and soon after a detector was made.
 * Saving rarely spares the flash; a restart judges the observations since then again, from the log.
 */
import { limits } from '#base/limits/limits.ts'
import { createSharedRuns } from '#base/load/shared-runs.ts'
import type { Clock } from '#base/time/clock.ts'
import type { FaultStream } from './fault-stream.ts'
import type { JudgedUntil, SaveSlice, WatchStatements } from './watched-stream-statements.ts'

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
  let immediate: NodeJS.Immediate | undefined
  const saves = createSharedRuns(save)

  /** Does a part of some work at a time, so that the event loop stays free. */
  async function inSlices(
    save: number,
    items: readonly (FaultStream | string)[],
    work: (slice: SaveSlice) => number,
  ): Promise<void> {
    for (let from = 0; from < items.length; ) {
      const begunAt = clock.monotonic()
      const isEnough = (): boolean => clock.monotonic() - begunAt >= limits.faultsSaveSliceMs.value
      from = work({ save, items, from, isEnough })
      await table.rest()
    }
  }

  async function save(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const at = cursor()
    if (at === undefined) return
    const [streams, gone] = [unsaved, removed]
    unsaved = new Set()
    removed = new Set()
    judged = 0
    savedAt = clock.monotonic()
    // A stream that was created again comes after its removal.
    const items = [...gone, ...streams]
    const number = table.nextSave()
    try {
      await inSlices(number, items, table.put)
      table.end(number, at)
    } catch (error) {
      for (const stream of streams) if (!removed.has(stream.id)) unsaved.add(stream)
      removed = new Set([...gone, ...removed])
      throw error
    }
    const created = new Set([...streams].map(({ id }) => id))
    await inSlices(
      number,
      items.filter((item) => typeof item !== 'string' || !created.has(item)),
      table.tidy,
    )
  }

  /** Saves in the background. */
  function attempt(): Promise<void> {
    return saves.now().catch(fail)
  }

  return Object.freeze({
    /** Saves what has changed before the call. @throws if it cannot be written; then it is still unsaved. */
    now: saves.now,
    /** The save in progress. Meanwhile nothing of the log may be judged, so that all rows reach as far. */
    inProgress: (): Promise<void> | undefined => saves.running()?.catch(() => undefined),
    /** Saves in the next turn of the event loop. */
    next() {
      immediate ??= setImmediate(() => {
        immediate = undefined
        void attempt()
      })
    },
    /** Resolves when that which `next` was called for is on disk, or cannot be written. */
    async settled(): Promise<void> {
      if (immediate === undefined) return saves.last()?.catch(() => undefined)
      clearImmediate(immediate)
      immediate = undefined
      return attempt()
    },
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
      if (isDue && saves.running() === undefined) void attempt()
    },
    soon() {
      timer ??= setTimeout(() => void attempt(), limits.faultsSaveSoonMs.value).unref()
    },
    close() {
      clearTimeout(timer)
      clearImmediate(immediate)
    },
  })
}
