/**
 * Streams: the observed attribute instances. Finds or opens the stream of an instance, stages observations with
 * their identity rule (entity, attribute, datasetId, observedAt, value), and carries what entity writes mean for
 * them. A stream's current value lives in memory; its past in the tail and in chunks.
 */
import { GatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import { dateTimeToMs } from '#ngsi-ld/datetime.ts'
import type { Attribute, AttributeInstance, Entity } from '#ngsi-ld/entity.ts'
import { shapeOf } from '#ngsi-ld/merge.ts'
import { decodeChunk } from '#store/chunk-codec.ts'
import type { StreamFold } from '#store/fold.ts'
import type { History, StreamRow } from '#store/history.ts'
import type { LiveState, LiveStream } from './live.ts'
import type { Names } from './names.ts'
import type { Stage } from './stage.ts'

/** What a stream needs to know of its entity to enter memory. */
export interface StreamOwner {
  readonly rid: number
  readonly id: string
  readonly entity: Entity
}

export type Verdict = 'new' | 'late' | 'duplicate'

export interface StreamsPorts {
  readonly history: History
  readonly names: Names
  readonly live: LiveState
}

const monotonic = (): number => performance.now()

export function createStreams({ history, names, live }: StreamsPorts) {
  let lastStream = history.lastStream()
  /** Log numbers of entity records not yet folded, by entity. */
  const unfolded = new Map<number, number[]>()
  let unfoldedCount = 0

  /** The stream of an instance if there is one; it enters memory. */
  function existing(rid: number, name: string, dataset: string, owner: StreamOwner): LiveStream | undefined {
    const found = live
      .entity(rid)
      ?.streams.find((stream) => stream.name === name && stream.dataset === dataset && !stream.gone)
    if (found !== undefined) return found
    const nameNumber = names.find(name)
    if (nameNumber === undefined) return undefined
    const row = history.streamOf(rid, nameNumber, dataset)
    return row === undefined || live.stream(row.s) !== undefined ? undefined : enter(row, owner)
  }

  /** Brings a stream into memory as its document says; `number` is the log number the document includes. */
  function enter(row: StreamRow, owner: StreamOwner, number = 0): LiveStream {
    const name = names.text(row.name)!
    const instance = instanceOf(owner.entity, name, row.dataset)
    const time = dateTimeToMs(instance?.observedAt ?? '') ?? Number.NEGATIVE_INFINITY
    return live.enterStream({
      s: row.s,
      entity: live.enterEntity(owner.rid, owner.id, typesOf(owner.entity)),
      name,
      dataset: row.dataset,
      shape: row.shape,
      mirror: row.mirror === null ? undefined : names.text(row.mirror),
      time,
      value: (instance?.value ?? null) as Json,
      modified: 0,
      number,
      newestTime: Math.max(time, history.lastChunk(row.s)?.t1 ?? Number.NEGATIVE_INFINITY),
    })
  }

  /** The stream of an instance of this entity, opened if there is none. The instance must exist in the entity. */
  function open(
    stage: Stage,
    owner: StreamOwner,
    name: string,
    dataset: string,
    mirror?: string,
  ): LiveStream {
    const known = existing(owner.rid, name, dataset, owner)
    if (known !== undefined) return known
    const instance = instanceOf(owner.entity, name, dataset)
    if (instance === undefined)
      throw new GatewayError('ngsi-ld.not-found', `${owner.id} has no attribute ${name}`)
    if (lastStream >= limits.streamsMax.value) {
      throw new GatewayError(
        'store.failed',
        `no more than ${limits.streamsMax.value} streams can be numbered`,
      )
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

  /**
   * Stages one observation. Newer than the stream's newest is new at once; otherwise its past is searched for the
   * same identity. A late one enters history and becomes current only when `replace` says so (writes by HTTP, which
   * must be readable afterwards even where they repeat the past; history keeps it once).
   */
  function observe(stage: Stage, stream: LiveStream, time: number, value: Json, replace: boolean): Verdict {
    if (time === stream.nextTime && same(stream.nextValue, value)) return 'duplicate'
    if (!replace && time <= stream.newestTime && isKnown(stream, time, value)) return 'duplicate'
    const current = replace || time >= stream.nextTime || stream.nextTime === Number.NEGATIVE_INFINITY
    touch(stage, stream)
    const number = stage.observation(stream.s, time, value, !current)
    live.stage(stream, time, value, stage.at, number, current, monotonic())
    return current ? 'new' : 'late'
  }

  function isKnown(stream: LiveStream, time: number, value: Json): boolean {
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

  /** Publishes or takes back a stream's staged state with its group. */
  function touch(stage: Stage, stream: LiveStream): void {
    if (stream.touched) return
    stream.touched = true
    stage.published(() => live.publish(stream, monotonic()))
    stage.undone(() => live.undo(stream))
  }

  /** An entity write gave the observed instance another value or shape: that is current now. */
  function overwrite(
    stage: Stage,
    stream: LiveStream,
    next: { shape: string; value: Json; time: number; number: number },
  ): void {
    touch(stage, stream)
    const { shape } = stream
    if (next.shape !== shape) {
      stage.write('stream.shape', next.shape, stream.s)
      stream.shape = next.shape
      stage.undone(() => {
        stream.shape = shape
      })
    }
    stream.nextTime = next.time
    stream.nextValue = next.value
    stream.nextModified = stage.at
    stream.nextNumber = next.number
    if (next.time >= stream.newestTime) {
      stream.newestTime = next.time
      stream.newestValue = next.value
    }
  }

  /** Ends a stream whose attribute was deleted: its tail is folded with this commit, its number never used again. */
  function retire(stage: Stage, stream: LiveStream): void {
    stage.write('stream.retire', stream.s)
    leave(stage, stream)
  }

  function retireEntity(stage: Stage, rid: number): void {
    stage.write('stream.retire-entity', rid)
    for (const stream of [...(live.entity(rid)?.streams ?? [])]) leave(stage, stream)
  }

  function leave(stage: Stage, stream: LiveStream): void {
    const fold = foldOf(stream, stream.tail.times.length, Number.MAX_SAFE_INTEGER)
    if (fold !== undefined) stage.foldStream(fold)
    stream.gone = true
    stage.undone(() => {
      stream.gone = false
    })
    stage.published(() => live.drop(stream))
  }

  /** Copies the first `count` instances of a tail for the folder; `folded` is the log number they reach to. */
  function foldOf(stream: LiveStream, count: number, folded: number): StreamFold | undefined {
    if (count === 0) return undefined
    const { tail } = stream
    const values = new Float64Array(count)
    const others: [number, Json][] = []
    for (let i = 0; i < count; i++) {
      const value = tail.values[i]!
      if (typeof value === 'number') values[i] = value
      else {
        values[i] = Number.NaN
        others.push([i, value])
      }
    }
    return {
      s: stream.s,
      folded,
      times: Float64Array.from(tail.times.slice(0, count)),
      modified: Float64Array.from(tail.modified.slice(0, count)),
      values,
      others,
      shapes: tail.shapes.map(({ shape }) => shape),
      shapeOf:
        tail.shapes.length === 1
          ? undefined
          : tail.times.slice(0, count).map((_, i) => shapeIndex(stream, i)),
    }
  }

  return Object.freeze({
    open,
    existing,
    observe,
    overwrite,
    retire,
    retireEntity,
    enter,
    foldOf,
    liveOf: (rid: number) => live.entity(rid),
    /** The document of an entity includes everything up to `number` once this group is on disk. */
    documentWritten(stage: Stage, rid: number, number: number): void {
      stage.published(() => {
        const entity = live.entity(rid)
        if (entity !== undefined) live.settle(entity, number, monotonic())
      })
    },
    /** The types of an entity changed, and with them who may want to know of its streams. */
    retyped(stage: Stage, rid: number, types: readonly string[]): void {
      stage.published(() => {
        const entity = live.entity(rid)
        if (entity === undefined) return
        entity.types = types
        for (const stream of entity.streams) stream.candidatesVersion = -1
      })
    },
    /** A change record was logged: remembered until folded into the entity's history. */
    recorded(stage: Stage, rid: number, number: number): void {
      stage.published(() => remember(rid, number))
    },
    remember,
    unfolded: (rid: number): readonly number[] => unfolded.get(rid) ?? [],
    unfoldedEntities: () => unfolded as ReadonlyMap<number, readonly number[]>,
    unfoldedCount: () => unfoldedCount,
    /** The first `count` records of an entity are folded. */
    forget(rid: number, count: number): void {
      const numbers = unfolded.get(rid)
      if (numbers === undefined) return
      unfoldedCount -= numbers.splice(0, count).length
      if (numbers.length === 0) unfolded.delete(rid)
    },
  })

  function remember(rid: number, number: number): void {
    const numbers = unfolded.get(rid)
    if (numbers === undefined) unfolded.set(rid, [number])
    else numbers.push(number)
    unfoldedCount++
  }
}

export type Streams = ReturnType<typeof createStreams>

function shapeIndex(stream: LiveStream, position: number): number {
  return stream.tail.shapes.findLastIndex(({ from }) => from <= position)
}

function same(a: Json, b: Json): boolean {
  return (
    a === b || (typeof a === 'object' && typeof b === 'object' && JSON.stringify(a) === JSON.stringify(b))
  )
}

export function typesOf(entity: Entity): readonly string[] {
  return typeof entity.type === 'string' ? [entity.type] : entity.type
}

/** One instance of an attribute, by its datasetId ('' is the default instance). */
export function instanceOf(entity: Entity, name: string, dataset: string): AttributeInstance | undefined {
  const attribute = entity[name] as Attribute | undefined
  if (attribute === undefined) return undefined
  const instances = Array.isArray(attribute)
    ? (attribute as AttributeInstance[])
    : [attribute as AttributeInstance]
  return instances.find((instance) => (instance.datasetId ?? '') === dataset)
}
