/**
 * Follows the streams of the gateway's own broker: a first read of all that exist, then every observation of
 * the log, once. Detectors are saved with the log number; a restart judges the rest of the log again.
 */
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createStreamLog, type LoggedValue, readEntities } from '#client/streams/stream-log.ts'
import type { ChangesPort } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import type { MissedSpan } from '#plugins/faults/streams/missed-span.ts'
import type { JudgedUntil, WatchStatements } from '#plugins/faults/streams/watched-stream-statements.ts'
import { followedTypes, type WatchedStreams } from '#plugins/faults/streams/watched-streams.ts'
import type { ArrivedValue, Watching } from '#plugins/faults/streams/watching.ts'

export interface LogFollowerPorts {
  readonly changes: ChangesPort
  readonly streams: WatchedStreams
  readonly watching: Watching
  /** Called with each stream of the table. */
  readonly restored: (stream: FaultStream) => void
  /** Called once it is known that no value could arrive within this time. */
  readonly missed: (downtime: MissedSpan) => void
  /** When this process began, ms. */
  readonly startedAt: number
  readonly saving: Saving
  readonly table: WatchStatements
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

/** Decides when detectors are saved. */
export interface Saving {
  /** Counts judged observations, and saves if enough were judged. */
  count(observations: number): void
  /** Saves within `limits.faultsSaveSoonMs`. */
  soon(): void
  /** The save in progress; meanwhile nothing may be judged. */
  readonly inProgress: () => Promise<void> | undefined
}

export interface LogFollower {
  /** Resolves when the streams that exist are known, and the log is followed. */
  start(): Promise<void>
  /** Log number and commit time up to which everything is judged. */
  readonly cursor: () => JudgedUntil | undefined
  readonly isReading: () => boolean
  /** Whether the log has observations that are not judged yet. */
  readonly isBehind: () => boolean
  close(): Promise<void>
}

export function createLogFollower(ports: LogFollowerPorts): LogFollower {
  const { changes, streams, watching, restored, missed, startedAt, saving, table, clock, log, signal } = ports
  let cursor: JudgedUntil | undefined
  let isReading = false
  /** Observations since the last batch. */
  let observed = 0
  /** Whether the log that was committed before the start has been judged. */
  let hasCaughtUp = false
  /** Newest commit time in the log that was judged; undefined in a new folder. */
  let lastCommitted: number | undefined
  const streamLog = createStreamLog({
    changes,
    types: followedTypes,
    streams,
    busy: saving.inProgress,
    restore,
    read,
    observed(id, arrival) {
      noteCommit(arrival.committedAt)
      observe(id, arrival)
      observed++
    },
    untimed,
    taken(batch) {
      noteCommit(batch.at)
      cursor = { position: batch.through, committed: batch.at }
      noteCaughtUp()
      saving.count(observed)
      observed = 0
    },
    signal,
  })

  /**
   * Reads what exists, and the observations since the cursor. Those committed meanwhile are in the log, too,
   * and are judged once.
   */
  async function read(): Promise<number> {
    // A save that begins later saves nothing.
    isReading = true
    await saving.inProgress()
    const position = changes.position()
    const committed = clock.now()
    await readEntities({ changes, types: followedTypes, signal }, streams.take)
    noteCommit(committed)
    if (cursor !== undefined)
      for await (const slice of changes.history({ from: cursor.committed + 1, to: committed }))
        for (const { id, name, time, value } of slice)
          if (name === sosa.hasSimpleResult) observe(id, { time, value, committedAt: committed })
    streamLog.deleteMissing()
    isReading = false
    if (signal.aborted) return position
    cursor = { position, committed }
    noteCaughtUp()
    saving.soon()
    log.info('faults.read', { streams: streams.size() })
    return position
  }

  function noteCaughtUp(): void {
    if (hasCaughtUp || cursor === undefined || cursor.position < changes.position()) return
    hasCaughtUp = true
    noteCommit(clock.now())
    saving.soon()
  }

  /**
   * The gateway was down from the last commit of its former process to the first one of this process. Devices
   * need some seconds to connect again.
   */
  function noteCommit(committed: number): void {
    if (lastCommitted !== undefined && lastCommitted < startedAt && committed >= startedAt)
      missed({ from: lastCommitted, to: clock.now() + limits.faultsSilenceMinMs.value })
    lastCommitted = Math.max(lastCommitted ?? committed, committed)
  }

  function observe(id: string, arrival: ArrivedValue): void {
    if (streamLog.isPlaced(id)) watching.observe(streams.observedBy(id)!, id, arrival)
  }

  function untimed(id: string, { time, value, committedAt = clock.now() }: LoggedValue): void {
    const stream = streams.observedBy(id)
    const last = stream?.record.last
    // Writes of other attributes change the entity, too.
    if (stream === undefined || (last !== undefined && time <= last.time)) return
    watching.observe(stream, id, { time, value, committedAt })
  }

  async function restore(): Promise<number | undefined> {
    cursor = table.cursor()
    lastCommitted = cursor?.committed
    const yieldIfDue = createYield(clock.monotonic, limits.faultsSaveSliceMs.value)
    for (const { detector, ...stored } of table.all()) {
      const state = changes.entity(stored.id)
      const stream = streams.restore(stored)
      if (state === undefined) streams.delete(stored.id)
      else {
        streams.take(state.entity())
        watching.begin(stream, detector)
        restored(stream)
      }
      await yieldIfDue()
      if (signal.aborted) break
    }
    return cursor?.position
  }

  return Object.freeze({
    async start() {
      await streamLog.start()
      if (!signal.aborted) noteCaughtUp()
    },
    cursor: () => (isReading ? undefined : cursor),
    isReading: () => isReading,
    isBehind: () => !hasCaughtUp || (cursor?.position ?? -1) < changes.position(),
    close: streamLog.close,
  } satisfies LogFollower)
}
