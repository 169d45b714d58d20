/**
 * Follows the streams of the gateway's own broker: a first read of all that exist, then every observation of
 * the log, once. Records are saved with the log number at most once per `limits.qualitySaveMs`; a restart
 * counts the rest of the log again from there.
 */
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { createStreamLog, readEntities } from '#client/streams/stream-log.ts'
import type { ChangesPort } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { dayMs } from '#plugins/quality/measures/day-table.ts'
import type { Downtime } from '#plugins/quality/measures/stream-record.ts'
import { followedTypes, type KnownStreams } from './known-streams.ts'
import type { Cursor, StreamStatements } from './stream-statements.ts'

export interface OwnStreamsPorts {
  readonly changes: ChangesPort
  readonly streams: KnownStreams
  readonly table: StreamStatements
  /** Called in the transaction that saves the records. */
  readonly saved: () => void
  /** Spans during which the gateway was down; the reader adds the latest. */
  readonly downtimes: Downtime[]
  /** When this process began, ms. */
  readonly startedAt: number
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export interface OwnStreams {
  /** Resolves when the streams that exist are known, and the log is followed. */
  start(): Promise<void>
  /** Saves the records, unless what exists is still being read. */
  save(): void
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
  saved,
  downtimes,
  startedAt,
  clock,
  log,
  signal,
}: OwnStreamsPorts): OwnStreams {
  let cursor: Cursor | undefined
  let savedAt = clock.monotonic()
  let lastCommitted = Number.POSITIVE_INFINITY
  let progress = { isReading: false, entities: 0, observations: 0 }
  const streamLog = createStreamLog({
    changes,
    types: followedTypes,
    streams,
    restore,
    read,
    observed(id, arrival) {
      if (arrival.committedAt < cursor!.countsFrom) return
      noteDowntime(arrival.committedAt)
      if (streamLog.isPlaced(id)) streams.observe(id, arrival)
    },
    untimed(id, arrival) {
      if (arrival.committedAt !== undefined && arrival.committedAt >= cursor!.countsFrom)
        streams.observe(id, arrival)
    },
    taken({ through, at }) {
      cursor = { position: through, committed: at, countsFrom: cursor!.countsFrom }
      if (clock.monotonic() - savedAt >= limits.qualitySaveMs.value) save()
    },
    signal,
  })

  function save(): void {
    if (cursor === undefined) return
    table.save({ ...streams.takeUnsaved(), downtimes, cursor, saved })
    savedAt = clock.monotonic()
  }

  /** Counts the observations of a span of commit times. */
  async function readHistory(span: Downtime): Promise<void> {
    for await (const slice of changes.history(span)) {
      if (signal.aborted) return
      for (const { id, name, time, value } of slice)
        if (name === sosa.hasSimpleResult) streams.observe(id, { time, value, committedAt: undefined })
      progress = { ...progress, observations: progress.observations + slice.length }
    }
  }

  /**
   * Reads what exists: all entities, and the observations of the last day or since the cursor. Commit times
   * increase, so everything before `countsFrom` is in history, and the log has everything since.
   */
  async function read(): Promise<number> {
    progress = { isReading: true, entities: 0, observations: 0 }
    const position = changes.position()
    const countsFrom = clock.now()
    await delay(limits.qualityGatherMs.value)
    await readEntities({ changes, types: followedTypes, signal }, streams.take, (entities) => {
      progress = { ...progress, entities: progress.entities + entities }
    })
    const from = cursor === undefined ? countsFrom - dayMs : cursor.committed + 1
    await readHistory({ from, to: countsFrom })
    if (signal.aborted) return position
    streamLog.deleteMissing()
    cursor = { position, committed: countsFrom - 1, countsFrom }
    save()
    progress = { ...progress, isReading: false }
    log.info('quality.read', { streams: streams.size(), ...progress })
    return position
  }

  /** The gateway was down between the last commit of its former process and the start of this one. */
  function noteDowntime(committed: number): void {
    if (committed >= startedAt && lastCommitted < startedAt) {
      downtimes.push({ from: lastCommitted, to: startedAt })
      if (downtimes.length > limits.qualityDowntimesMax.value) downtimes.shift()
    }
    lastCommitted = Math.max(lastCommitted, committed)
  }

  async function restore(): Promise<number | undefined> {
    cursor = table.cursor()
    const stored = table.all()
    streams.restore(stored, table.observations())
    for (const [i, { id }] of stored.entries()) {
      const state = changes.entity(id)
      if (state === undefined) streams.delete(id)
      else streams.take(state.entity())
      if (i % limits.clientReadPage.value === 0) await yieldToEventLoop()
    }
    lastCommitted = cursor?.committed ?? Number.POSITIVE_INFINITY
    downtimes.push(...table.downtimes())
    return cursor?.position
  }

  return Object.freeze({
    start: streamLog.start,
    save,
    progress: () => progress,
    position: () => cursor?.position,
    async close() {
      await streamLog.close()
      if (!progress.isReading) save()
    },
  } satisfies OwnStreams)
}
