/**
 * Follows the streams of the gateway's own broker: a first read of all that exist, then every observation of
 * the log, once. Detectors are saved with the log number; a restart judges the rest of the log again.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { timedResult } from '#client/stream-entities.ts'
import type { ChangeBatch, ChangesPort, EntityState } from '#contract'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import type { JudgedUntil, WatchStatements } from '#plugins/faults/streams/watched-stream-statements.ts'
import { followedTypes, type WatchedStreams } from '#plugins/faults/streams/watched-streams.ts'
import type { ArrivedValue, Watching } from '#plugins/faults/streams/watching.ts'

export interface LogFollowerPorts {
  readonly changes: ChangesPort
  readonly streams: WatchedStreams
  readonly watching: Watching
  /** Called with each stream of the table. */
  readonly restored: (stream: FaultStream) => void
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
}

export interface LogFollower {
  /** Resolves when the streams that exist are known, and the log is followed. */
  start(): Promise<void>
  /** Log number and commit time up to which everything is judged. */
  readonly cursor: () => JudgedUntil | undefined
  readonly isReading: () => boolean
  close(): Promise<void>
}

export function createLogFollower(ports: LogFollowerPorts): LogFollower {
  const { changes, streams, watching, restored, saving, table, clock, log, signal } = ports
  let cursor: JudgedUntil | undefined
  /** Observed entities that belong to no stream, until a followed entity changes. */
  const others = new Set<string>()
  let following: { close(): void } | undefined
  let working: Promise<void> = Promise.resolve()
  let isReading = false
  /** Whether the log that was committed before the start has been judged. */
  let hasCaughtUp = false

  /** Takes all entities that are followed. */
  async function readEntities(): Promise<void> {
    for (let behind = 0; !signal.aborted; ) {
      const page = changes.entities(behind, limits.faultsReadPage.value)
      if (page.length === 0) return
      for (const state of page)
        if (state.types.some((type) => followedTypes.has(type))) streams.take(state.entity())
      behind = page.at(-1)!.rid
      await yieldToEventLoop()
    }
  }

  /**
   * Reads what exists, and the observations since the cursor. Those committed meanwhile are in the log, too,
   * and are judged once.
   */
  async function read(): Promise<number> {
    isReading = true
    const position = changes.position()
    const committed = clock.now()
    await readEntities()
    if (cursor !== undefined)
      for await (const slice of changes.history({ from: cursor.committed + 1, to: committed }))
        for (const { id, name, time, value } of slice)
          if (name === sosa.hasSimpleResult) observe(id, { time, value, committedAt: committed })
    for (const { id } of [...streams.all()]) if (changes.entity(id) === undefined) streams.delete(id)
    isReading = false
    if (signal.aborted) return position
    cursor = { position, committed }
    saving.soon()
    log.info('faults.read', { streams: streams.size() })
    return position
  }

  function take(batch: ChangeBatch): void {
    // A created stream may be the one that an observation entity waits for.
    if (batch.changed.length > 0) others.clear()
    for (const id of batch.deleted) streams.delete(id)
    // Streams come before the observation entities that belong to them.
    const isStream = ({ types }: EntityState): boolean => types.includes(iotStream.IotStream)
    for (const state of batch.changed.filter(isStream)) streams.take(state.entity())
    for (const state of batch.changed) if (!isStream(state)) takeEntity(state)
    let count = 0
    for (const { id, name, time, value, committed } of batch.observed) {
      if (name !== sosa.hasSimpleResult) continue
      observe(id, { time, value, committedAt: committed })
      count++
    }
    cursor = { position: batch.through, committed: batch.at }
    saving.count(count)
    if (hasCaughtUp || batch.through < changes.position()) return
    hasCaughtUp = true
    saving.soon()
  }

  /** Judges an observation. An unknown observation entity is read: its stream may be known by now. */
  function observe(id: string, arrival: ArrivedValue): void {
    const stream = streams.observedBy(id) ?? placed(id)
    if (stream !== undefined) watching.observe(stream, id, arrival)
    else {
      if (others.size >= limits.faultsOthersMax.value) others.clear()
      others.add(id)
    }
  }

  function placed(id: string): FaultStream | undefined {
    if (others.has(id)) return undefined
    const state = changes.entity(id)
    if (state?.types.includes(iotStream.StreamObservation) !== true) return undefined
    streams.take(state.entity())
    return streams.observedBy(id)
  }

  /** Takes an entity, and a result without observedAt, which the log does not report as an observation. */
  function takeEntity(state: EntityState): void {
    const entity = state.entity()
    streams.take(entity)
    const result = timedResult(entity)
    if (result?.isUntimed !== true) return
    const [, committedAt] = state.times().attributes[sosa.hasSimpleResult] ?? []
    const stream = streams.observedBy(state.id)
    const last = stream?.record.last
    // Writes of other attributes change the entity, too.
    if (stream === undefined || (last !== undefined && result.time <= last.time)) return
    watching.observe(stream, state.id, { ...result, committedAt: committedAt ?? clock.now() })
  }

  async function restore(): Promise<void> {
    cursor = table.cursor()
    for (const [i, { detector, ...stored }] of table.all().entries()) {
      const state = changes.entity(stored.id)
      const stream = streams.restore(stored)
      if (state === undefined) streams.delete(stored.id)
      else {
        streams.take(state.entity())
        watching.begin(stream, detector)
        restored(stream)
      }
      if (i % limits.faultsReadPage.value === 0) await yieldToEventLoop()
    }
  }

  async function begin(): Promise<void> {
    await restore()
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
    cursor: () => (isReading ? undefined : cursor),
    isReading: () => isReading,
    async close() {
      following?.close()
      await working.catch(() => undefined)
    },
  } satisfies LogFollower)
}
