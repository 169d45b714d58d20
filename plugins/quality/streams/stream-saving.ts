/**
 * Saves streams in slices, so that the event loop stays free. Meanwhile observations go on: each record is
 * saved with the log number and the message that it reaches at that moment. The cursor follows at the end.
 * It is the one that all records reached when the save began.
 */
import { limits } from '#base/limits/limits.ts'
import { createSharedRuns } from '#base/load/shared-runs.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Downtimes } from './downtimes.ts'
import type { KnownStreams } from './known-streams.ts'
import type { Cursor, SaveStep, StreamStatements } from './stream-statements.ts'

/** Messages of sources that the records include. */
export interface CountedMessages {
  /** Number of the last message that the records in memory include. */
  readonly included: () => number
  /**
   * Notes that all saved records include the messages up to a number. To be called in a transaction; returns
   * what follows once it is committed.
   */
  saved(included: number): () => void
}

export interface StreamSavingPorts {
  readonly table: StreamStatements
  readonly streams: Pick<KnownStreams, 'takeUnsaved'>
  /** Where the records are now; undefined while everything is read: then nothing is saved. */
  readonly cursor: () => Cursor | undefined
  readonly journal: CountedMessages
  readonly downtimes: Pick<Downtimes, 'certain'>
  /** Saves more beside the streams. */
  readonly beside?: {
    /** Saved before the streams. */
    steps(): readonly SaveStep[]
    /** Called in the transaction that saves or removes a stream. */
    readonly stream: SaveStepOf
    readonly removed: SaveStepOf
  }
  readonly clock: Clock
  readonly log: Log
}

type SaveStepOf = (n: number) => ReturnType<SaveStep>

export interface StreamSaving {
  /** Saves what has changed before the call. @throws if it cannot be written; then it is still unsaved. */
  now(): Promise<void>
  /** Saves in the background, unless a save is in progress. */
  attempt(): void
  /** Saves in the background if the last save is long ago. */
  attemptIfDue(): void
  /** Resolves when no save is in progress. */
  settled(): Promise<void>
}

type Unsaved = ReturnType<KnownStreams['takeUnsaved']>

export function createStreamSaving(ports: StreamSavingPorts): StreamSaving {
  const { table, streams, cursor, journal, downtimes, beside, clock, log } = ports
  /** State that a failed save did not write. */
  let left: Unsaved | undefined
  let savedAt = clock.monotonic()
  const saves = createSharedRuns(save)

  /** Removed streams come first: one that was created again has the same id. */
  function stepsOf({ removed, streams: changed, observations }: Unsaved): SaveStep[] {
    return [
      ...(beside?.steps() ?? []),
      ...removed.map((n) => () => {
        table.remove(n)
        return beside?.removed(n)
      }),
      ...[...changed].map((stream) => () => {
        table.put(stream, { ...cursor()!, messages: journal.included() })
        return beside?.stream(stream.n)
      }),
      ...[...observations].map(([id, n]) => () => {
        table.place(id, n)
        return undefined
      }),
    ]
  }

  async function save(): Promise<void> {
    const reached = cursor()
    if (reached === undefined) return
    savedAt = clock.monotonic()
    const messages = journal.included()
    const state = left === undefined ? streams.takeUnsaved() : joined(left, streams.takeUnsaved())
    left = state
    const steps = stepsOf(state)
    steps.push(() => {
      table.end(reached, downtimes.certain(), clock.now())
      return journal.saved(messages)
    })
    for (let from = 0; ; await table.rest()) {
      const begunAt = clock.monotonic()
      const isEnough = (): boolean => clock.monotonic() - begunAt >= limits.qualitySaveSliceMs.value
      from = table.transact(steps, from, isEnough)
      if (from === steps.length) break
    }
    left = undefined
  }

  function attempt(): void {
    if (saves.running() !== undefined) return
    saves.now().catch((error: unknown) => {
      log.error('plugin.failed', { plugin: 'quality', during: 'saving', error })
    })
  }

  return Object.freeze({
    now: saves.now,
    attempt,
    attemptIfDue() {
      if (clock.monotonic() - savedAt >= limits.qualitySaveMs.value) attempt()
    },
    async settled() {
      for (let busy = saves.last(); busy !== undefined; busy = saves.last()) await busy.catch(() => undefined)
    },
  } satisfies StreamSaving)
}

function joined(before: Unsaved, after: Unsaved): Unsaved {
  const removed = [...before.removed, ...after.removed]
  const streams = [...before.streams, ...after.streams].filter(({ n }) => !removed.includes(n))
  return {
    streams: new Set(streams),
    observations: new Map([...before.observations, ...after.observations]),
    removed,
  }
}
