/**
 * Follows the streams of the gateway's own broker: a first read of all that exist, then every observation of
 * the log, once. Records are saved with the log number every `limits.qualitySaveMs`; a restart counts the
 * rest of the log from there.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createStreamLog, type LoggedObservation, readEntities } from '#client/streams/stream-log.ts'
import type { ChangesPort } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { dayMs } from '#plugins/quality/measures/day-table.ts'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import type { Downtimes } from './downtimes.ts'
import { followedTypes, type KnownStreams } from './known-streams.ts'
import type { Stream } from './stream.ts'
import { createStreamSaving, type StreamSaving, type StreamSavingPorts } from './stream-saving.ts'
import type { Cursor, StoredStream, StreamStatements } from './stream-statements.ts'

export interface OwnStreamsPorts {
  readonly changes: ChangesPort
  readonly streams: KnownStreams
  readonly table: StreamStatements
  readonly journal: StreamSavingPorts['journal']
  readonly downtimes: Downtimes
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export interface OwnStreams {
  /** Resolves when the streams that exist are known, and the log is followed. */
  start(): Promise<void>
  readonly saving: StreamSaving
  /** Progress of reading what exists. */
  readonly progress: () => {
    readonly isReading: boolean
    readonly entities: number
    readonly observations: number
  }
  /** Log number up to which everything is counted. */
  readonly position: () => number | undefined
  close(): Promise<void>
}

export function createOwnStreams({
  changes,
  streams,
  table,
  journal,
  downtimes,
  clock,
  log,
  signal,
}: OwnStreamsPorts): OwnStreams {
  let cursor: Cursor | undefined
  /** Streams whose saved records reach further than the cursor, since a kill interrupted a save. */
  const ahead = new Map<Stream, StoredStream>()
  /** Values of observation entities without a known stream. */
  const waiting = new Map<string, LoggedObservation[]>()
  /** The log at the start. */
  const beganAt = changes.position()
  const lastCommitAt = changes.lastCommitAt()
  let progress = { isReading: false, entities: 0, observations: 0 }
  const streamLog = createStreamLog({
    changes,
    types: followedTypes,
    streams,
    restore,
    read,
    observed(id, arrival) {
      if (arrival.committedAt < cursor!.countsFrom) return
      downtimes.noteCommit(arrival.committedAt)
      if (streamLog.isPlaced(id)) count(id, arrival)
      else wait(id, arrival)
    },
    untimed(id, arrival) {
      if (arrival.committedAt !== undefined && arrival.committedAt >= cursor!.countsFrom)
        streams.observe(id, arrival)
    },
    taken({ through, at }) {
      cursor = { position: through, committed: at, countsFrom: cursor!.countsFrom }
      for (const [id, arrivals] of waiting) {
        if (streams.observedBy(id) === undefined) continue
        waiting.delete(id)
        for (const arrival of arrivals) count(id, arrival)
      }
      downtimes.noteCommit(at)
      if (through >= beganAt) downtimes.settle()
      for (const [stream, { position }] of ahead) if (position <= through) ahead.delete(stream)
      saving.attemptIfDue()
    },
    signal,
  })
  const saving = createStreamSaving({
    table,
    streams,
    cursor: () => (progress.isReading ? undefined : cursor),
    journal,
    downtimes,
    clock,
    log,
  })

  function count(id: string, arrival: LoggedObservation): void {
    if (arrival.n > (aheadOf(id)?.position ?? 0)) streams.observe(id, arrival)
  }

  /** An uplink may bring a value before the entity names its stream. */
  function wait(id: string, arrival: LoggedObservation): void {
    const arrivals = waiting.get(id) ?? []
    waiting.set(id, arrivals)
    arrivals.push(arrival)
    if (arrivals.length > limits.qualityWaitingValues.value) arrivals.shift()
    if (waiting.size > limits.qualityWaitingMax.value) waiting.delete(waiting.keys().next().value!)
  }

  const aheadOf = (observationId: string): StoredStream | undefined =>
    ahead.size === 0 ? undefined : ahead.get(streams.observedBy(observationId)!)

  /** Counts the observations of a span of commit times, but not those that a record ahead includes. */
  async function readHistory(span: Downtime): Promise<void> {
    for await (const slice of changes.history(span)) {
      if (signal.aborted) return
      for (const { id, name, time, value } of slice)
        if (name === sosa.hasSimpleResult && (aheadOf(id)?.committed ?? 0) < span.from)
          streams.observe(id, { time, value, committedAt: undefined })
      progress = { ...progress, observations: progress.observations + slice.length }
    }
  }

  /**
   * Reads what exists: all entities, and the observations of the last day or since the cursor, up to the last
   * row of the log. The log has everything since; a commit may be on its way to the disk now.
   */
  async function read(): Promise<number> {
    await saving.settled()
    progress = { isReading: true, entities: 0, observations: 0 }
    const position = changes.position()
    const committed = changes.lastCommitAt()
    await readEntities({ changes, types: followedTypes, signal }, streams.take, (entities) => {
      progress = { ...progress, entities: progress.entities + entities }
    })
    const from = cursor === undefined ? clock.now() - dayMs : cursor.committed + 1
    const begins = new Set([from, ...[...ahead.values()].map(({ committed }) => committed + 1)])
    const bounds = [...[...begins].toSorted((a, b) => a - b), committed + 1]
    for (const [i, to] of bounds.slice(1).entries()) await readHistory({ from: bounds[i]!, to })
    if (signal.aborted) return position
    streamLog.deleteMissing()
    ahead.clear()
    cursor = { position, committed, countsFrom: committed }
    progress = { ...progress, isReading: false }
    downtimes.settle()
    await saving.now()
    log.info('quality.read', { streams: streams.size(), ...progress })
    return position
  }

  async function restore(): Promise<number | undefined> {
    cursor = table.cursor()
    // The streams of an interrupted first save are read again.
    if (cursor === undefined) table.clear()
    else downtimes.restore(table.downtimes(), [cursor.committed, table.aliveUntil(), lastCommitAt])
    if (cursor === undefined || cursor.position >= beganAt) downtimes.settle()
    const stored = table.all()
    streams.restore(stored, table.observations())
    for (const [i, one] of stored.entries()) {
      const state = changes.entity(one.id)
      if (one.position > cursor!.position) ahead.set(streams.get(one.id)!, one)
      if (state === undefined) streams.delete(one.id)
      else streams.take(state.entity())
      if (i % limits.clientReadPage.value === 0) await nextTurn()
    }
    return cursor?.position
  }

  return Object.freeze({
    start: streamLog.start,
    saving,
    progress: () => progress,
    position: () => cursor?.position,
    async close() {
      await streamLog.close()
      await saving.now()
    },
  } satisfies OwnStreams)
}
