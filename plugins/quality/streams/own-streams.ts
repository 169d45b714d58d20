/**
 * Follows the streams of the gateway's own broker: a first read of all that exist, then every observation of
 * the log, once. Records are saved with the log number at most once per `limits.qualitySaveMs`; a restart
 * counts the rest of the log again from there.
 */
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { timedResult } from '#client/stream-entities.ts'
import type { ChangeBatch, ChangesPort, EntityState } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { dayMs } from '#plugins/quality/measures/day-table.ts'
import type { Arrival, Downtime } from '#plugins/quality/measures/stream-record.ts'
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
  /** Observed entities that belong to no stream, until a followed entity changes. */
  const others = new Set<string>()
  let savedAt = clock.monotonic()
  let lastCommitted = Number.POSITIVE_INFINITY
  let following: { close(): void } | undefined
  let working: Promise<void> = Promise.resolve()
  let progress = { isReading: false, entities: 0, observations: 0 }

  function save(): void {
    if (cursor === undefined) return
    table.save({ ...streams.takeUnsaved(), downtimes, cursor, saved })
    savedAt = clock.monotonic()
  }

  /** Takes all entities that the analyser follows. */
  async function readEntities(): Promise<void> {
    for (let behind = 0; !signal.aborted; ) {
      const page = changes.entities(behind, limits.qualityReadPage.value)
      if (page.length === 0) return
      for (const state of page)
        if (state.types.some((type) => followedTypes.has(type))) streams.take(state.entity())
      progress = { ...progress, entities: progress.entities + page.length }
      behind = page.at(-1)!.rid
      await yieldToEventLoop()
    }
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
    await readEntities()
    const from = cursor === undefined ? countsFrom - dayMs : cursor.committed + 1
    await readHistory({ from, to: countsFrom })
    if (signal.aborted) return position
    for (const { id } of [...streams.all()]) if (changes.entity(id) === undefined) streams.delete(id)
    cursor = { position, committed: countsFrom - 1, countsFrom }
    save()
    progress = { ...progress, isReading: false }
    log.info('quality.read', { streams: streams.size(), ...progress })
    return position
  }

  function take(batch: ChangeBatch): void {
    const { countsFrom } = cursor!
    // A created stream may be the one that an observation entity waits for.
    if (batch.changed.length > 0) others.clear()
    for (const id of batch.deleted) streams.delete(id)
    // Streams come before the observation entities that belong to them.
    const isStream = ({ types }: EntityState): boolean => types.includes(iotStream.IotStream)
    for (const state of batch.changed.filter(isStream)) streams.take(state.entity())
    for (const state of batch.changed) if (!isStream(state)) takeEntity(state, countsFrom)
    for (const { id, name, time, value, committed } of batch.observed) {
      if (name !== sosa.hasSimpleResult || committed < countsFrom) continue
      noteDowntime(committed)
      observe(id, { time, value, committedAt: committed })
    }
    cursor = { position: batch.through, committed: batch.at, countsFrom }
    if (clock.monotonic() - savedAt >= limits.qualitySaveMs.value) save()
  }

  /** Counts an observation. An unknown observation entity is read: its stream may be known by now. */
  function observe(id: string, arrival: Arrival): void {
    if (streams.observe(id, arrival) || others.has(id)) return
    const state = changes.entity(id)
    if (state?.types.includes(iotStream.StreamObservation) === true) {
      streams.take(state.entity())
      if (streams.observe(id, arrival)) return
    }
    if (others.size >= limits.qualityOthersMax.value) others.clear()
    others.add(id)
  }

  /** The gateway was down between the last commit of its former process and the start of this one. */
  function noteDowntime(committed: number): void {
    if (committed >= startedAt && lastCommitted < startedAt) {
      downtimes.push({ from: lastCommitted, to: startedAt })
      if (downtimes.length > limits.qualityDowntimesMax.value) downtimes.shift()
    }
    lastCommitted = Math.max(lastCommitted, committed)
  }

  function takeEntity(state: EntityState, countsFrom: number): void {
    const entity = state.entity()
    streams.take(entity)
    const result = timedResult(entity)
    if (result?.isUntimed !== true) return
    const [, committedAt] = state.times().attributes[sosa.hasSimpleResult] ?? []
    if (committedAt !== undefined && committedAt >= countsFrom)
      streams.observe(state.id, { time: result.time, value: result.value, committedAt })
  }

  async function begin(): Promise<void> {
    cursor = table.cursor()
    const stored = table.all()
    streams.restore(stored, table.observations())
    for (const [i, { id }] of stored.entries()) {
      const state = changes.entity(id)
      if (state === undefined) streams.delete(id)
      else streams.take(state.entity())
      if (i % limits.qualityReadPage.value === 0) await yieldToEventLoop()
    }
    lastCommitted = cursor?.committed ?? Number.POSITIVE_INFINITY
    downtimes.push(...table.downtimes())
    const from = cursor?.position ?? (await read())
    if (signal.aborted) return
    following = changes.follow(from, {
      types: followedTypes,
      observes: 'each',
      take,
      async readAnew() {
        let position = from
        working = read().then((read) => {
          position = read
        })
        await working
        return position
      },
    })
  }

  return Object.freeze({
    start() {
      working = begin()
      return working
    },
    save,
    progress: () => progress,
    position: () => cursor?.position,
    async close() {
      following?.close()
      await working.catch(() => undefined)
      if (!progress.isReading) save()
    },
  } satisfies OwnStreams)
}
