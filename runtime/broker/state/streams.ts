/**
 * Streams: the observed attribute instances. Finds or opens the stream of an instance, stages observations
 * with their identity rule (entity, attribute, datasetId, observedAt, value), and applies entity writes to
 * streams. A stream's current value is in memory; its past is in the tail and in chunks.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Names } from '#broker/commit/interned-names.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Attribute, AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { shapeOf } from '#ngsi-ld/entity/merge.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import type { StreamFold } from '#store/history/fold.ts'
import type { History, StreamRow } from '#store/history/history-rows.ts'
import type { Collisions } from './collisions.ts'
import type { LiveState } from './live-state.ts'
import { createUnfolded } from './unfolded.ts'
import type { LiveEntity, LiveStream, Tail } from './unwritten.ts'

/** Identifies the attribute instance of a stream. */
export interface StreamName {
  readonly name: string
  readonly dataset: string
  readonly mirror: string | undefined
  /** The instance without value and observedAt, as JSON text. */
  readonly shape: string
}

/** The facts about an entity that a stream needs to enter memory. */
export interface StreamOwner {
  readonly rid: number
  readonly id: string
  readonly entity: Entity
  /** Log number that `entity` includes. */
  readonly number: number
}

export type ObservationVerdict = 'new' | 'late' | 'duplicate'

export interface StreamsPorts {
  readonly history: History
  readonly names: Names
  readonly live: LiveState
  readonly collisions: Pick<Collisions, 'note'>
}

export function createStreams({ history, names, live, collisions }: StreamsPorts) {
  let lastStream = history.lastStream()

  /** The stream of an instance if it exists; loads it into memory. */
  function existing(stage: Stage, owner: StreamOwner, name: string, dataset: string): LiveStream | undefined {
    const found = live
      .entity(owner.rid)
      ?.streams.find((stream) => stream.name === name && stream.dataset === dataset && !stream.dropped)
    if (found !== undefined) return found
    const nameNumber = names.find(name)
    if (nameNumber === undefined) return undefined
    const row = history.streamOf(owner.rid, nameNumber, dataset)
    // A stream still in memory was retired by this group.
    if (row === undefined || live.stream(row.s) !== undefined) return undefined
    const stream = enter(row, owner)
    // The owner's facts may be only staged.
    stage.undone(() => live.drop(stream))
    return stream
  }

  /** Loads a stream into memory with the values of its document. */
  function enter(row: StreamRow, owner: StreamOwner): LiveStream {
    const name = names.text(row.name)!
    const instance = instanceOf(owner.entity, name, row.dataset)
    const time = dateTimeToMs(instance?.observedAt ?? '') ?? Number.NEGATIVE_INFINITY
    return live.enterStream({
      s: row.s,
      entity: live.enterEntity(owner.rid, owner.id, typesOf(owner.entity), owner.number),
      name,
      dataset: row.dataset,
      shape: row.shape,
      mirror: row.mirror === null ? undefined : names.text(row.mirror),
      time,
      value: instance?.value ?? null,
      modified: 0,
      number: owner.number,
      via: undefined,
      newestTime: Math.max(time, history.lastTime(row.s) ?? Number.NEGATIVE_INFINITY),
    })
  }

  /** The stream of an existing instance of this entity, opened if there is none. */
  function open(
    stage: Stage,
    owner: StreamOwner,
    name: string,
    dataset: string,
    mirror?: string,
  ): LiveStream {
    const known = existing(stage, owner, name, dataset)
    if (known !== undefined) return known
    const instance = instanceOf(owner.entity, name, dataset)
    if (instance === undefined) {
      throw new GatewayError('ngsi-ld.not-found', `${owner.id} has no attribute ${name}`)
    }
    if (kindOf(instance).member !== 'value') {
      throw new GatewayError(
        'ngsi-ld.bad-request-data',
        `${name} is a ${instance.type}, which cannot be observed`,
      )
    }
    if (lastStream >= limits.streamsMax.value) {
      throw new GatewayError('store.failed', `the maximum of ${limits.streamsMax.value} streams is reached`)
    }
    const shape = shapeOf(instance)
    const row: StreamRow = {
      s: ++lastStream,
      rid: owner.rid,
      name: names.intern(stage, name),
      dataset,
      folded: 0,
      retired: 0,
      shape,
      mirror: mirror === undefined ? null : names.intern(stage, mirror),
    }
    stage.write('stream.insert', row.s, row.rid, row.name, dataset, 0, shape, row.mirror)
    const stream = enter(row, owner)
    stage.undone(() => live.drop(stream))
    return stream
  }

  /** The stream of an instance that renders `mirror`; undefined if another stream does so already. */
  function mirrored(
    stage: Stage,
    owner: StreamOwner,
    { name, dataset, mirror }: { readonly name: string; readonly dataset: string; readonly mirror: string },
  ): LiveStream | undefined {
    const known = existing(stage, owner, name, dataset)
    if (known?.mirror === mirror) return known
    const number = names.intern(stage, mirror)
    const isTaken = history.streamsOf(owner.rid).some((row) => row.retired === 0 && row.mirror === number)
    const isTakenNow = live.entity(owner.rid)?.streams.some((one) => !one.dropped && one.mirror === mirror)
    if (isTaken || isTakenNow === true || known?.mirror !== undefined) return undefined
    if (known === undefined) return open(stage, owner, name, dataset, mirror)
    stage.write('stream.mirror', number, known.s)
    live.mirror(known, mirror)
    stage.undone(() => live.mirror(known, undefined))
    return known
  }

  /**
   * Stages one observation. If it is not newer than the stream, the past is searched for the same identity.
   * A late one becomes current only with `replace` (HTTP writes, whose value must be readable afterwards).
   */
  function observe(
    stage: Stage,
    stream: LiveStream,
    time: number,
    value: Json,
    replace: boolean,
  ): ObservationVerdict {
    if (time === stream.nextTime && same(stream.nextValue, value)) return 'duplicate'
    if (!replace && time <= stream.newestTime && isKnown(history, stream, time, value)) return 'duplicate'
    const current = replace || time >= stream.nextTime
    touch(stage, stream)
    const number = stage.observation(stream.s, time, value, !current)
    live.stage(stream, time, value, stage.at, number, current)
    if (current) {
      collisions.note(stream.entity.rid, stream.nextVia, stage.via)
      stream.nextVia = stage.via
    }
    return current ? 'new' : 'late'
  }

  /**
   * Adds distinct observations, in order of time, to the past of a stream; its current value stays. Unlike
   * `observe`, it compares many at once with the tail, and chunk by chunk with folded history.
   */
  function addPast(
    stage: Stage,
    stream: LiveStream,
    past: readonly (readonly [time: number, value: Json])[],
  ): void {
    const [from, to] = [past[0]?.[0] ?? 0, past.at(-1)?.[0] ?? 0]
    const known = new Set<string>()
    const isFirst = (time: number, value: Json): boolean =>
      known.size < known.add(identityOf(time, value)).size
    const note = (times: ArrayLike<number>, values: ArrayLike<Json>): void => {
      for (let i = 0; i < times.length; i++)
        if (times[i]! >= from && times[i]! <= to) isFirst(times[i]!, values[i]!)
    }
    note(stream.tail.times, stream.tail.values)
    isFirst(stream.newestTime, stream.newestValue)
    isFirst(stream.nextTime, stream.nextValue)
    const folded = history.summaries(stream.s, from, to)
    let next = 0
    touch(stage, stream)
    for (const [time, value] of past) {
      for (; next < folded.length && folded[next]!.t0 <= time; next++) {
        if (folded[next]!.t1 < time) continue
        const series = decodeChunk(history.chunkAt(stream.s, folded[next]!.t0)!)
        note(series.times, series.values)
      }
      if (!isFirst(time, value)) continue
      const number = stage.observation(stream.s, time, value, true)
      live.stage(stream, time, value, stage.at, number, false)
    }
  }

  /** Publishes or undoes a stream's staged state together with its group. */
  function touch(stage: Stage, stream: LiveStream): void {
    if (stream.touched) return
    stream.touched = true
    stage.published(() => live.publish(stream))
    stage.undone(() => live.undo(stream))
  }

  /**
   * Makes a value or shape from an entity write current. Folds instances of the old shape with this commit,
   * since a stream has one shape at replay. `time` is -Infinity if the instance has no observedAt.
   */
  function overwrite(
    stage: Stage,
    stream: LiveStream,
    next: { shape: string; value: Json; time: number; number: number; via: string | undefined },
  ): void {
    touch(stage, stream)
    const { shape, shapedAt } = stream
    if (next.shape !== shape) {
      foldTail(stage, stream, stream.tail.times.length, next.number)
      stage.write('stream.shape', next.shape, stream.s)
      stream.shape = next.shape
      stream.shapedAt = next.number
      stage.undone(() => {
        stream.shape = shape
        stream.shapedAt = shapedAt
      })
    }
    stream.nextTime = next.time
    stream.nextValue = next.value
    stream.nextModified = stage.at
    stream.nextNumber = next.number
    stream.nextVia = next.via
    if (next.time >= stream.newestTime) {
      stream.newestTime = next.time
      stream.newestValue = next.value
    }
  }

  /** Ends the stream of a deleted attribute: folds its tail with this commit. Its number is never reused. */
  function retire(stage: Stage, stream: LiveStream): void {
    stage.write('stream.retire', stream.s)
    end(stage, stream)
  }

  function retireEntity(stage: Stage, rid: number): void {
    stage.write('stream.retire-entity', rid)
    for (const stream of [...(live.entity(rid)?.streams ?? [])]) if (!stream.dropped) end(stage, stream)
  }

  function end(stage: Stage, stream: LiveStream): void {
    foldTail(stage, stream, stream.tail.times.length, Number.MAX_SAFE_INTEGER)
    stream.dropped = true
    stage.undone(() => {
      stream.dropped = false
    })
    stage.published(() => live.drop(stream))
  }

  /** Packs the first `end` instances of a tail into chunks; `folded` is the log number they reach. */
  function foldTail(stage: Stage, stream: LiveStream, end: number, folded: number): boolean {
    const { tail } = stream
    const from = tail.folding
    if (end <= from) return false
    stage.foldStream(foldOf(stream, from, end, folded))
    tail.folding = end
    stage.undone(() => {
      tail.folding = from
    })
    stage.published(() => live.folded(stream, end - from, folded))
    return true
  }

  /** Sets new types of an entity, and makes the matcher select its candidate subscriptions again. */
  function retyped(stage: Stage, rid: number, types: readonly string[]): void {
    const entity = live.entity(rid)
    if (entity === undefined) return
    const before = entity.types
    setTypes(entity, types)
    stage.undone(() => setTypes(entity, before))
  }

  return Object.freeze({
    open,
    existing,
    mirrored,
    observe,
    addPast,
    touch,
    overwrite,
    retire,
    retireEntity,
    enter,
    foldTail,
    liveOf: (rid: number) => live.entity(rid),
    /** Records that the document includes everything up to `number` once this group is on disk. */
    documentWritten(stage: Stage, rid: number, number: number): void {
      stage.published(() => {
        const entity = live.entity(rid)
        if (entity !== undefined) live.settle(entity, number)
      })
    },
    retyped,
    ...createUnfolded(),
  })
}

export type Streams = ReturnType<typeof createStreams>

function setTypes(entity: LiveEntity, types: readonly string[]): void {
  entity.types = types
  for (const stream of entity.streams) stream.candidatesVersion = -1
}

/** Two observations of a stream with equal identity are the same observation. */
export const identityOf = (time: number, value: Json): string =>
  `${time} ${typeof value === 'number' ? value : JSON.stringify(value)}`

/** Whether a stream already has this value at this time. */
function isKnown(history: History, stream: LiveStream, time: number, value: Json): boolean {
  if (time === stream.newestTime && same(stream.newestValue, value)) return true
  const { tail } = stream
  for (let i = tail.times.length - 1; i >= 0; i--) {
    if (tail.times[i] === time && same(tail.values[i]!, value)) return true
  }
  const chunk = history.chunkAt(stream.s, time)
  if (chunk === undefined || time > chunk.t1) return false
  const series = decodeChunk(chunk)
  for (let i = 0; i < series.times.length; i++) {
    if (series.times[i] === time && same(series.values[i]!, value)) return true
  }
  return false
}

/** Copies the instances from `from` to `end` of a tail for folding. */
function foldOf(stream: LiveStream, from: number, end: number, folded: number): StreamFold {
  const { tail } = stream
  const kept = tail.values.slice(from, end)
  const shapes = tail.shapes.map(({ shape }) => shape)
  return {
    s: stream.s,
    folded,
    times: new Float64Array(tail.times.slice(from, end)),
    modified: new Float64Array(tail.modified.slice(from, end)),
    values: Float64Array.from(kept, (value) => (typeof value === 'number' ? value : Number.NaN)),
    others: kept.flatMap((value, i): [number, Json][] => (typeof value === 'number' ? [] : [[i, value]])),
    shapes,
    shapeOf: shapes.length === 1 ? undefined : kept.map((_, i) => shapeIndex(tail, from + i)),
  }
}

function shapeIndex(tail: Tail, position: number): number {
  return tail.shapes.findLastIndex(({ from }) => from <= position)
}

function same(a: Json, b: Json): boolean {
  return (
    a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))
  )
}

export function typesOf(entity: Entity): readonly string[] {
  return typeof entity.type === 'string' ? [entity.type] : entity.type
}

/** An instance of an attribute, by its datasetId ('' is the default instance). */
export function instanceOf(entity: Entity, name: string, dataset: string): AttributeInstance | undefined {
  const attribute = entity[name] as Attribute | undefined
  if (attribute === undefined) return undefined
  const instances = Array.isArray(attribute)
    ? (attribute as AttributeInstance[])
    : [attribute as AttributeInstance]
  return instances.find((instance) => (instance.datasetId ?? '') === dataset)
}
