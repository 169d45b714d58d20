/**
 * Follows the log of the gateway's own broker for the registered models: every observation, once. Cached
 * values are saved with the log number at most once per `limits.patternSaveMs`; a restart reads the rest of
 * the log again from there, which makes the same events. Nothing is followed while there is no model.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { timedResult } from '#client/streams/stream-entities.ts'
import { readEntities } from '#client/streams/stream-log.ts'
import type { ChangeBatch, ChangesPort, EntityState, PastObservation } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { EventWriter } from '#plugins/patterns/events/event-writer.ts'
import type { LabelQueue } from '#plugins/patterns/labelling/label-queue.ts'
import { cachedValueOf } from '#plugins/patterns/windows/cached-series.ts'
import type { Analysis, StreamValue } from './analysis.ts'
import type { CachedValue, LogCursor, PatternStatements } from './pattern-statements.ts'
import { followedTypes, type PlacedStreams } from './placed-streams.ts'

export interface LogReaderPorts {
  readonly changes: ChangesPort
  readonly streams: PlacedStreams
  readonly analysis: Analysis
  readonly writer: EventWriter
  readonly labels: LabelQueue
  readonly table: PatternStatements
  readonly yieldIfDue: YieldIfDue
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export interface LogReader {
  /** Follows the log if there is a model. Resolves when the streams that exist are known. */
  start(): Promise<void>
  /** Runs work when no batch is in progress, and before the next one; then applies the models. */
  change(work: () => void): Promise<void>
  /** Takes values that did not come by the log, and saves them. */
  observe(values: readonly StreamValue[]): Promise<void>
  /** Reads streams, and entities that describe them, again. */
  reread(ids: readonly string[]): Promise<void>
  /** Log number up to which everything is analysed. */
  readonly position: () => number | undefined
  readonly isReading: () => boolean
  close(): Promise<void>
}

const onlyStreams = new Set([iotStream.IotStream])

/** An observation of an observation entity. */
type Observed = PastObservation

export function createLogReader({
  changes,
  streams,
  analysis,
  writer,
  labels,
  table,
  yieldIfDue,
  clock,
  log,
  signal,
}: LogReaderPorts): LogReader {
  let cursor: LogCursor | undefined
  let savedAt = clock.monotonic()
  let following: { close(): void } | undefined
  let isReading = false
  /** Counts the times that following began or ended; batches of before are ignored. */
  let generation = 0
  /** The work in progress; the next one waits for it. */
  let last: Promise<unknown> = Promise.resolve()

  /** Runs one work after the other. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work)
    last = turn.catch(() => undefined)
    return turn
  }

  function save(): void {
    if (cursor === undefined) return
    const waiting = [...writer.waiting()].map(
      ([id, entity]) => [id, entity === undefined ? undefined : JSON.stringify(entity)] as const,
    )
    // If the disk fails, all of it is saved later.
    table.save({ ...analysis.unsaved(), unlabelled: labels.unsaved(), waiting, cursor })
    analysis.forgetUnsaved()
    labels.forgetUnsaved()
    savedAt = clock.monotonic()
  }

  /** Saves if much is unsaved, and waits while many events are unwritten or many windows unlabelled. */
  async function between(): Promise<void> {
    await writer.room()
    await labels.room()
    if (analysis.unsavedCount() >= limits.patternUnsavedMax.value) save()
    await yieldIfDue()
  }

  /** Takes all streams and what describes them. */
  async function readStreams(): Promise<void> {
    streams.clear()
    await readEntities({ changes, types: onlyStreams, signal }, streams.take)
  }

  async function restore(): Promise<void> {
    const saved = table.streams()
    analysis.restore(saved, table.groups())
    const ids = new Map(saved.map(([id, n]) => [n, id] as const))
    let after: CachedValue | undefined
    for (;;) {
      const page = table.cachedAfter(after, limits.patternValuesPage.value)
      if (page.length === 0) break
      analysis.restoreValues(page, ids)
      after = page.at(-1)
      await nextTurn()
    }
    labels.restore(table.unlabelled())
    for (const [id, entity] of table.waiting())
      writer.put(id, entity === null ? undefined : (JSON.parse(entity) as Parameters<typeof writer.put>[1]))
  }

  /** Takes the observations of a span of commit times, in order of time. */
  async function readHistory(from: number, to: number): Promise<void> {
    for (let begin = from; begin < to && !signal.aborted; begin += limits.patternHistoryMs.value) {
      const past: PastObservation[] = []
      const span = { from: begin, to: Math.min(to, begin + limits.patternHistoryMs.value) }
      for await (const slice of changes.history(span)) past.push(...slice.filter(isResult))
      await analysis.observe(valuesOf(past.sort((a, b) => a.time - b.time)), between)
    }
  }

  function valuesOf(observed: readonly Observed[]): StreamValue[] {
    return observed.flatMap(({ id, time, value }) => {
      const number = cachedValueOf(value)
      const stream = number === undefined ? undefined : streams.streamOf(id)
      return stream === undefined ? [] : [{ stream, time, value: number! }]
    })
  }

  async function take(batch: ChangeBatch): Promise<void> {
    let isNew = false
    for (const id of batch.deleted) if (streams.delete(id)) isNew = true
    const unobserved: Observed[] = []
    for (const state of batch.changed) {
      const entity = state.entity()
      if (streams.take(entity)) isNew = true
      unobserved.push(...withoutTime(state, entity))
    }
    if (isNew) await analysis.regroup(between)
    await analysis.observe(valuesOf([...unobserved, ...batch.observed.filter(isResult)]), between)
    cursor = { position: batch.through, committed: batch.at }
    if (clock.monotonic() - savedAt >= limits.patternSaveMs.value) save()
  }

  async function begin(): Promise<void> {
    if (analysis.isEmpty() || following !== undefined || signal.aborted) return
    isReading = true
    cursor = table.cursor()
    const from = cursor?.position ?? changes.position()
    await restore()
    await readStreams()
    // Streams that were not read must not be dropped.
    if (signal.aborted) return
    await analysis.regroup(between)
    isReading = false
    cursor ??= { position: from, committed: clock.now() }
    save()
    log.info('patterns.read', { streams: streams.size(), ...analysis.counts(), from })
    const since = ++generation
    following = changes.follow(from, {
      types: followedTypes,
      observes: 'each',
      take: (batch) => inTurn(async () => (generation === since ? take(batch) : undefined)),
      readAnew: () => inTurn(async () => (generation === since ? readAnew() : changes.position())),
    })
  }

  /** The log does not reach back to the cursor: what it had is read from history. */
  async function readAnew(): Promise<number> {
    const position = changes.position()
    const now = clock.now()
    await readStreams()
    if (signal.aborted) return position
    await analysis.regroup(between)
    await readHistory(cursor!.committed + 1, now)
    if (signal.aborted) return position
    cursor = { position, committed: now }
    save()
    return position
  }

  /** Ends following after the last model was removed. */
  async function end(): Promise<void> {
    following?.close()
    following = undefined
    generation++
    cursor = undefined
    await analysis.regroup(async () => undefined)
    analysis.forgetUnsaved()
    labels.forgetUnsaved()
    streams.clear()
    table.clear()
  }

  return Object.freeze({
    start: () => inTurn(begin),
    change: (work) =>
      inTurn(async () => {
        work()
        if (analysis.isEmpty()) return end()
        if (following === undefined) return begin()
        await analysis.regroup(between)
        save()
      }),
    observe: (values) =>
      inTurn(async () => {
        await analysis.observe(values, between)
        save()
      }),
    reread: (ids) =>
      inTurn(async () => {
        if (following === undefined) return
        const changed = ids.filter((id) => {
          const state = changes.entity(id)
          return state === undefined ? streams.delete(id) : streams.take(state.entity())
        })
        if (changed.length > 0) await analysis.regroup(between)
      }),
    position: () => cursor?.position,
    isReading: () => isReading,
    async close() {
      following?.close()
      await last
      if (!isReading) save()
    },
  } satisfies LogReader)
}

/** Results of other datasets, such as estimates, are not the observed ones. */
const isResult = ({ name, dataset }: Observed): boolean => name === sosa.hasSimpleResult && dataset === ''

/** The value of an observation entity without observedAt, which the log does not report as an observation. */
function withoutTime({ types }: EntityState, entity: Entity): readonly Observed[] {
  if (!types.includes(iotStream.StreamObservation)) return []
  const observed = timedResult(entity)
  if (observed?.isUntimed !== true) return []
  return [{ id: entity.id, name: sosa.hasSimpleResult, dataset: '', ...observed }]
}
