/**
 * Follows the streams in the log of this gateway's own broker for a component: a first read of all that
 * exist, then every observation, once. The component saves the log number with what it derives from it; after
 * a restart it continues there.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import type { ChangeBatch, ChangesPort, EntityState, Observation, PastObservation } from '#contract'
import { iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { timedResult } from './stream-entities.ts'

/** An observation of an observation entity. */
export interface LoggedValue extends Pick<PastObservation, 'time' | 'value'> {
  /** Commit time, ms; undefined if it is not known. */
  readonly committedAt: number | undefined
}

/** An observation of the log, with the number of its row. */
export interface LoggedObservation extends LoggedValue, Pick<Observation, 'n'> {
  readonly committedAt: number
}

export interface StreamLogPorts {
  readonly changes: ChangesPort
  /** Canonical names of the followed types. */
  readonly types: ReadonlySet<string>
  readonly streams: {
    take(entity: Entity): void
    delete(id: string): void
    observedBy(observationId: string): object | undefined
    readonly all: () => Iterable<{ readonly id: string }>
  }
  /** Work during which nothing may be taken. */
  readonly busy?: () => Promise<void> | undefined
  /** Reads what was saved. Returns the log number to continue after; undefined in a new folder. */
  readonly restore: () => Promise<number | undefined>
  /** Reads all that exists. Returns the log number to continue after. */
  readonly read: () => Promise<number>
  /** Called with each observation of the log. */
  readonly observed: (id: string, value: LoggedObservation) => void
  /** Called with a result without observedAt, which the log does not report as an observation. */
  readonly untimed: (id: string, value: LoggedValue) => void
  /** Called when all of a batch is taken. */
  readonly taken: (batch: ChangeBatch) => void
  readonly signal: AbortSignal
}

/** Reads all entities of this gateway's own broker of some types, in order of creation. */
export async function readEntities(
  { changes, types, signal }: Pick<StreamLogPorts, 'changes' | 'types' | 'signal'>,
  take: (entity: Entity) => void,
  progress: (entities: number) => void = () => {},
): Promise<void> {
  for (let behind = 0; !signal.aborted; ) {
    const page = changes.entities(behind, limits.clientReadPage.value)
    if (page.length === 0) return
    for (const state of page) if (state.types.some((type) => types.has(type))) take(state.entity())
    progress(page.length)
    behind = page.at(-1)!.rid
    await nextTurn()
  }
}

export function createStreamLog(ports: StreamLogPorts) {
  const { changes, types, streams, observed, untimed, signal } = ports
  /** Observed entities that belong to no stream, until a followed entity changes. */
  const others = new Set<string>()
  let following: { close(): void } | undefined
  let working: Promise<unknown> = Promise.resolve()

  function take(batch: ChangeBatch): void {
    // A created stream may be the one that an observation entity waits for.
    if (batch.changed.some((state) => !state.types.includes(qoi.Quality))) others.clear()
    for (const id of batch.deleted) streams.delete(id)
    // Streams come before the observation entities that belong to them.
    const isStream = (state: EntityState): boolean => state.types.includes(iotStream.IotStream)
    for (const state of batch.changed.filter(isStream)) streams.take(state.entity())
    for (const state of batch.changed) if (!isStream(state)) takeEntity(state)
    for (const { id, name, time, value, n, committed } of batch.observed)
      if (name === sosa.hasSimpleResult) observed(id, { time, value, n, committedAt: committed })
    ports.taken(batch)
  }

  function takeEntity(state: EntityState): void {
    const entity = state.entity()
    streams.take(entity)
    const result = timedResult(entity)
    if (result?.isUntimed !== true) return
    const [, committedAt] = state.times().attributes[sosa.hasSimpleResult] ?? []
    untimed(state.id, { time: result.time, value: result.value, committedAt })
  }

  async function begin(): Promise<void> {
    const from = (await ports.restore()) ?? (await ports.read())
    if (signal.aborted) return
    following = changes.follow(from, {
      types,
      observes: 'each',
      async take(batch) {
        for (let busy = ports.busy?.(); busy !== undefined; busy = ports.busy?.()) await busy
        take(batch)
      },
      readAnew() {
        const reading = ports.read()
        working = reading.catch(() => undefined)
        return reading
      },
    })
  }

  return Object.freeze({
    /** Resolves when the streams that exist are known, and the log is followed. */
    start(): Promise<void> {
      const beginning = begin()
      working = beginning.catch(() => undefined)
      return beginning
    },
    /**
     * Whether an observation entity belongs to a stream. An unknown one is read: its stream may be known by
     * now.
     */
    isPlaced(id: string): boolean {
      if (streams.observedBy(id) !== undefined) return true
      if (others.has(id)) return false
      const state = changes.entity(id)
      if (state?.types.includes(iotStream.StreamObservation) === true) streams.take(state.entity())
      if (streams.observedBy(id) !== undefined) return true
      if (others.size >= limits.clientOthersMax.value) others.clear()
      others.add(id)
      return false
    },
    /** Deletes the streams that the broker no longer has. */
    deleteMissing(): void {
      for (const { id } of [...streams.all()]) if (changes.entity(id) === undefined) streams.delete(id)
    },
    /** Resolves when no read is in progress. */
    async close(): Promise<void> {
      following?.close()
      await working
    },
  })
}
