/**
 * Live state: the current values of observed attributes, in memory over the stored documents, and the
 * unfolded tail of each stream. A value is *staged* while its group is being written and *published* when the
 * group is on disk; readers see published values only. A live value overrides the document only if its log
 * number is newer, which makes replay after a crash idempotent.
 */

import { limits } from '#base/limits/limits.ts'
import { footprintOf } from '#base/process/footprint.ts'
import { assert } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Json } from '#contract/pipeline.ts'
import { createUnwritten, type LiveEntity, type LiveStream, type Tail } from './unwritten.ts'

export interface StreamSeed {
  readonly s: number
  readonly entity: LiveEntity
  readonly name: string
  readonly dataset: string
  readonly shape: string
  readonly mirror: string | undefined
  /** The value in the document. */
  readonly time: number
  readonly value: Json
  readonly modified: number
  readonly number: number
  readonly via: string | undefined
  /** Newest observedAt anywhere in its history. */
  readonly newestTime: number
}

export function createLiveState(clock: Clock) {
  const entities = new Map<number, LiveEntity>()
  const streams = new Map<number, LiveStream>()
  /** Names of attributes that are rendered from observedAt in some stream. */
  const mirrors = new Set<string>()
  const unwritten = createUnwritten()
  /** By rid, those with values that their documents do not include. */
  const dirtyEntities = new Map<number, LiveEntity>()
  let tailTotal = 0
  let tailBytes = 0

  const addDirty = (stream: LiveStream): void => {
    unwritten.note(stream)
    if (stream.entity.dirtySince === undefined) {
      stream.entity.dirtySince = clock.monotonic()
      dirtyEntities.set(stream.entity.rid, stream.entity)
    }
  }
  const shrink = (tail: Tail, values: readonly Json[]): void => {
    const bytes = values.reduce((sum: number, value) => sum + instanceBytes(value), 0)
    tail.bytes -= bytes
    tailBytes -= bytes
    tailTotal -= values.length
  }
  const drop = (stream: LiveStream): void => {
    if (streams.get(stream.s) !== stream) return
    unwritten.remove(stream)
    shrink(stream.tail, stream.tail.values)
    stream.dropped = true
    streams.delete(stream.s)
    const siblings = stream.entity.streams
    siblings.splice(siblings.indexOf(stream), 1)
    if (siblings.length === 0) {
      entities.delete(stream.entity.rid)
      dirtyEntities.delete(stream.entity.rid)
    }
  }

  return Object.freeze({
    entity: (rid: number) => entities.get(rid),
    stream: (s: number) => streams.get(s),
    streams: () => streams.values(),
    streamCount: () => streams.size,
    tailCount: () => tailTotal,
    /** Approximate memory of all tails. */
    tailBytes: () => tailBytes,
    /** Streams whose published value is newer than the document's. */
    unwritten,
    /** The unwritten streams from which an attribute of this name is rendered. */
    unwrittenMirrors: (mirror: string): readonly LiveStream[] =>
      mirrors.has(mirror) ? unwritten.mirrored(mirror) : [],
    dirtyEntities: () => dirtyEntities.values(),
    /** The entity if it has values that its document does not include. */
    dirtyEntity: (rid: number) => dirtyEntities.get(rid),

    /** Renders an attribute from observedAt of this stream from now on; undefined ends that. */
    mirror(stream: LiveStream, name: string | undefined): void {
      stream.mirror = name
      if (name !== undefined) mirrors.add(name)
    },

    /** @param written the log number that its document includes */
    enterEntity(rid: number, id: string, types: readonly string[], written: number): LiveEntity {
      let entity = entities.get(rid)
      if (entity === undefined) {
        entity = { rid, id, types, streams: [], written, dirtySince: undefined }
        entities.set(rid, entity)
      }
      return entity
    },

    enterStream(seed: StreamSeed): LiveStream {
      assert(!streams.has(seed.s), 'a stream enters memory once')
      const stream: LiveStream = {
        s: seed.s,
        entity: seed.entity,
        name: seed.name,
        dataset: seed.dataset,
        shape: seed.shape,
        shapedAt: seed.number,
        mirror: seed.mirror,
        time: seed.time,
        value: seed.value,
        modified: seed.modified,
        number: seed.number,
        via: seed.via,
        nextTime: seed.time,
        nextValue: seed.value,
        nextModified: seed.modified,
        nextNumber: seed.number,
        nextVia: seed.via,
        newestTime: seed.newestTime,
        newestValue: seed.newestTime === seed.time ? seed.value : null,
        newestTimeBefore: seed.newestTime,
        newestValueBefore: seed.newestTime === seed.time ? seed.value : null,
        touched: false,
        dirtyAt: -1,
        tail: {
          times: [],
          modified: [],
          values: [],
          shapes: [],
          committed: 0,
          folding: 0,
          bytes: 0,
          firstNumber: 0,
          since: 0,
        },
        dropped: false,
        candidates: undefined,
        candidatesVersion: -1,
      }
      streams.set(seed.s, stream)
      if (seed.mirror !== undefined) mirrors.add(seed.mirror)
      seed.entity.streams.push(stream)
      return stream
    },

    /** Stages one instance: into the tail, and as the next current value when `current`. */
    stage(
      stream: LiveStream,
      time: number,
      value: Json,
      modified: number,
      number: number,
      current: boolean,
    ): void {
      const { tail } = stream
      if (tail.times.length === 0) {
        tail.firstNumber = number
        tail.since = clock.monotonic()
        tail.shapes = [{ from: 0, shape: stream.shape }]
      } else if (tail.shapes.at(-1)!.shape !== stream.shape) {
        tail.shapes.push({ from: tail.times.length, shape: stream.shape })
      }
      tail.times.push(time)
      tail.modified.push(modified)
      tail.values.push(value)
      tailTotal++
      tail.bytes += instanceBytes(value)
      tailBytes += instanceBytes(value)
      if (current) {
        stream.nextTime = time
        stream.nextValue = value
        stream.nextModified = modified
        stream.nextNumber = number
      }
      if (time >= stream.newestTime) {
        stream.newestTime = time
        stream.newestValue = value
      }
    },

    /** Stages a current value whose instance is already in chunks (replay). */
    setCurrent(stream: LiveStream, time: number, value: Json, modified: number, number: number): void {
      stream.nextTime = time
      stream.nextValue = value
      stream.nextModified = modified
      stream.nextNumber = number
    },

    /** Publishes the staged values of a stream: the group is on disk. */
    publish(stream: LiveStream): void {
      stream.touched = false
      if (stream.dropped) return
      stream.tail.committed = stream.tail.times.length
      stream.newestTimeBefore = stream.newestTime
      stream.newestValueBefore = stream.newestValue
      if (stream.nextNumber === stream.number) return
      stream.time = stream.nextTime
      stream.value = stream.nextValue
      stream.modified = stream.nextModified
      stream.number = stream.nextNumber
      stream.via = stream.nextVia
      if (stream.number > stream.entity.written) addDirty(stream)
      else unwritten.remove(stream)
    },

    /** Discards the staged values of a stream: the group was undone. */
    undo(stream: LiveStream): void {
      stream.touched = false
      const { tail } = stream
      shrink(tail, tail.values.slice(tail.committed))
      tail.times.length = tail.modified.length = tail.values.length = tail.committed
      tail.shapes = tail.shapes.filter((shape) => shape.from < tail.committed)
      if (tail.committed === 0) tail.firstNumber = 0
      stream.nextTime = stream.time
      stream.nextValue = stream.value
      stream.nextModified = stream.modified
      stream.nextNumber = stream.number
      stream.nextVia = stream.via
      stream.newestTime = stream.newestTimeBefore
      stream.newestValue = stream.newestValueBefore
    },

    /**
     * Records that the document includes everything up to `number`: without newer values the entity is clean.
     */
    settle(entity: LiveEntity, number: number): void {
      entity.written = number
      let clean = true
      for (const stream of entity.streams) {
        if (stream.number <= number) unwritten.remove(stream)
        else clean = false
      }
      dirtyEntities.delete(entity.rid)
      entity.dirtySince = clean ? undefined : clock.monotonic()
      if (!clean) dirtyEntities.set(entity.rid, entity)
    },

    /**
     * Removes the first `count` instances of a tail, now in chunks. `number` is the log number they reach.
     */
    folded(stream: LiveStream, count: number, number: number): void {
      const { tail } = stream
      tail.times.splice(0, count)
      tail.modified.splice(0, count)
      shrink(tail, tail.values.splice(0, count))
      tail.committed -= count
      tail.folding -= count
      tail.shapes = tail.shapes
        .map(({ from, shape }) => ({ from: Math.max(0, from - count), shape }))
        .filter(({ from }, i, all) => all[i + 1]?.from !== from)
      tail.firstNumber = tail.times.length === 0 ? 0 : number + 1
      tail.since = clock.monotonic()
    },

    /** Removes a stream: its entity or attribute was deleted, or the group that created it was undone. */
    drop,

    /** Evicts idle streams above the ceiling: those with an empty tail and no unwritten value. */
    evictIdle(): void {
      if (streams.size <= limits.streamsLiveMax.value) return
      let excess = streams.size - limits.streamsLiveMax.value
      for (const stream of streams.values()) {
        if (excess <= 0) break
        if (stream.touched || stream.dirtyAt >= 0 || stream.tail.times.length > 0) continue
        drop(stream)
        excess--
      }
    },
  })
}

/** Time, commit time and value of an instance in a tail. */
const instanceBytes = (value: Json): number => 16 + (typeof value === 'number' ? 8 : footprintOf(value))

export type LiveState = ReturnType<typeof createLiveState>
