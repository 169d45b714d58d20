/**
 * The read interface of followers of the change log. While the log reaches back far enough, a follower reads
 * numbered rows. Beyond that, it reads changed documents, deletions, and the observations of a span of commit
 * times from chunks and tails. Reading pins nothing and changes nothing. Positions are log numbers with their
 * commit times.
 */

import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { Door } from '#broker/commit/door.ts'
import { type CommittedPart, readCommittedPart } from '#broker/history/committed-part.ts'
import { correctionsOf } from '#broker/history/corrections.ts'
import type { EvolutionPorts } from '#broker/history/evolution-sources.ts'
import { type DeletedInstance, deletionsBy, deletionsWith } from '#broker/state/deletions.ts'
import { createView } from '#broker/state/entity-view.ts'
import type { ChangeOrigin, EntityView } from '#broker/state/stored-entity.ts'
import type { StreamName, Streams } from '#broker/state/streams.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { fromShape } from '#ngsi-ld/entity/merge.ts'
import { viaFrom } from '#ngsi-ld/federation/via.ts'
import { decodeChunk } from '#store/chunks/chunk-codec.ts'
import { decodeObservations, type ObservationBatch } from '#store/chunks/observation-blob.ts'
import type { TombstoneRow } from '#store/entities/entity-rows.ts'
import { decodeEntityChanges } from '#store/history/entity-changes.ts'
import type { HistoryErasedRow } from '#store/history/history-edits.ts'
import type { HistorySpans } from '#store/history/history-spans.ts'
import { isOfObservations, type LogRow } from '#store/tables/records.ts'

/** A position in the log: number and commit time (ms) of a row. */
export interface LogPosition {
  readonly n: number
  readonly at: number
}

/** An observation of the log. A late one did not become the current value. */
export interface FollowedObservation {
  readonly kind: 'observation'
  readonly s: number
  readonly time: number
  readonly value: Json
  readonly isLate: boolean
}

/** A change record of the log. A null instance was deleted. */
export interface FollowedChange {
  readonly kind: 'created' | 'updated' | 'deleted' | 'temporal' | 'erased'
  readonly id: string
  readonly rid: number
  readonly by: ChangeOrigin
  readonly at: number
  readonly type?: Entity['type']
  readonly scope?: Entity['scope'] | null
  /** The change replaced the types, or added one. */
  readonly retyped?: true
  readonly instances: readonly (readonly [
    name: string,
    dataset: string,
    instance: AttributeInstance | null,
    type?: string,
    at?: number,
  ])[]
  /** For `erased`: the attribute and instance. */
  readonly name?: string
  readonly dataset?: string
  /** The Via chains of deleted instances, by `name` or `name datasetId`; '' is the entity. */
  readonly via?: Readonly<Record<string, string>>
}

/** An erased history: of an attribute ('' is all), and of an instance of it ('*' is all). */
export type Erased = Pick<HistoryErasedRow, 'name' | 'dataset'>

/** The content of one log row. */
export interface Followed<Observed = readonly FollowedObservation[]> extends LogPosition {
  /** The Via chain of the write; undefined if it originates here. */
  readonly via: string | undefined
  readonly what: Observed | FollowedChange
}

/** A log row whose observations are in one array. */
export interface CodedRow extends Followed<ObservationBatch> {
  /** Size in the log. */
  readonly bytes: number
}

/** The entity and attribute instance of a stream. */
export interface FollowedStream extends StreamName {
  readonly s: number
  readonly rid: number
  readonly id: string
  readonly type: Entity['type']
  /** Log number since which it has this shape, as far as known; earlier observations may have another. */
  readonly shapedAt: number
  readonly isEnded: boolean
}

const everSince = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }

/** A change record with its log number. */
type Recorded = FollowedChange & { readonly n: number }

/** Commit times from <= ms < to. */
export interface CommitSpan {
  readonly from: number
  readonly to: number
}

/** Writes of one entity other than observations, in order. */
export interface FollowedPast extends Pick<FollowedChange, 'id' | 'rid'> {
  readonly type: Entity['type']
  /** For an instance without observedAt, `at` (ms) is when it was written. */
  readonly instances: readonly (readonly [
    name: string,
    instance: AttributeInstance,
    at: number,
    /** The Via chain of the write. */
    via: string | undefined,
  ])[]
  /** Its deleted instances, in order. */
  readonly dropped: readonly DeletedInstance[]
}

export interface ChangeFeedPorts extends Omit<EvolutionPorts, 'streams'> {
  readonly spans: HistorySpans
  readonly door: Door
  /** Whether times wait for correction because the clock was not set. */
  readonly isHeld: () => boolean
  readonly streams: Pick<Streams, 'unfolded' | 'unfoldedEntities'>
}

export function createChangeFeed(ports: ChangeFeedPorts) {
  const { records, entities, history, spans, names, live } = ports

  function streamOf(s: number): FollowedStream | undefined {
    const row = history.stream(s)
    if (row === undefined) return undefined
    const current = entities.byRid(row.rid)
    const owner = current ?? entities.tombstoneOf(row.rid)
    if (owner === undefined) return undefined
    const { type } = JSON.parse(owner.doc) as Entity
    const mirror = row.mirror === null ? undefined : names.text(row.mirror)
    const { rid, dataset, shape } = row
    const isEnded = row.retired === 1 || current === undefined
    const name = names.text(row.name)!
    const shapedAt = live.stream(s)?.shapedAt ?? Number.POSITIVE_INFINITY
    return { s, rid, id: owner.id, type, name, dataset, mirror, shape, shapedAt, isEnded }
  }

  function read<T>(row: LogRow, decode: (body: Uint8Array) => T): Followed<T> & Pick<CodedRow, 'bytes'> {
    const { n, at } = row
    const bytes = row.body.length
    if (isOfObservations(row)) return { n, at, via: row.via ?? undefined, what: decode(row.body), bytes }
    const change = JSON.parse(Buffer.from(row.body).toString()) as FollowedChange
    return { n, at, via: viaFrom(change.by), what: { ...change, rid: row.rid! }, bytes }
  }

  /** Reads each row when it is requested, because a body may be large and a follower may stop at any row. */
  function after<T>(
    n: number,
    decode: (body: Uint8Array) => T,
  ): Iterable<ReturnType<typeof read<T>>> | undefined {
    const last = ports.door.status().number
    if (last <= n) return []
    const first = records.logNext(n)
    if (first === undefined || first.n > n + 1) return undefined
    const rows = function* () {
      for (
        let row: LogRow | undefined = first;
        row !== undefined && row.n <= last;
        row = records.logNext(row.n)
      )
        yield read(row, decode)
    }
    return rows()
  }

  /** The shape of an observation; undefined if history no longer holds it. */
  function shapeThen(s: number, time: number, value: Json): string | undefined {
    const text = JSON.stringify(value)
    const tail = live.stream(s)?.tail
    for (let i = (tail?.committed ?? 0) - 1; i >= 0; i--) {
      if (tail!.times[i] === time && JSON.stringify(tail!.values[i]) === text)
        return tail!.shapes.findLast((one) => one.from <= i)!.shape
    }
    const chunk = history.chunkAt(s, time)
    if (chunk === undefined || time > chunk.t1) return undefined
    const { times, values, shapes, shapeOf } = decodeChunk(chunk)
    const at = times.findIndex((one, i) => one === time && JSON.stringify(values[i]) === text)
    return at < 0 ? undefined : shapes[shapeOf?.[at] ?? 0]
  }

  /** Change records of an entity that were committed within from <= ms < to. */
  function recordsOf(rid: number, { from, to }: CommitSpan): readonly Recorded[] {
    const parts = history.entityChanges(rid)
    const folded = parts.at(-1)?.n1 ?? 0
    const texts = parts.flatMap((part) => decodeEntityChanges(part))
    for (const n of ports.streams.unfolded(rid)) {
      const row = n > folded ? records.logAt(n) : undefined
      if (row !== undefined) texts.push(Buffer.from(row.body).toString())
    }
    return texts.map((text) => JSON.parse(text) as Recorded).filter(({ at }) => at >= from && at < to)
  }

  /** The contents of these records. */
  function pastOf(rid: number, span: CommitSpan): FollowedPast | undefined {
    const owner = entities.byRid(rid) ?? entities.tombstoneOf(rid)
    if (owner === undefined) return undefined
    const { type } = JSON.parse(owner.doc) as Entity
    const changes = recordsOf(rid, span)
    const { isRecordErased } = correctionsOf(ports.edits, rid)
    const instances = changes.flatMap((change) =>
      change.instances.flatMap(([name, dataset, instance, , at]) =>
        instance === null || isRecordErased(name, dataset, change.n)
          ? []
          : [[name, instance, at ?? change.at, viaFrom(change.by)] as const],
      ),
    )
    return { id: owner.id, rid, type, instances, dropped: deletionsBy(changes) }
  }

  function entityWithRid(id: string): { readonly rid: number; readonly view: EntityView } | undefined {
    const row = entities.byId(id)
    return row && { rid: row.rid, view: createView(row, live.dirtyEntity(row.rid)) }
  }

  const foldedOf = (s: number): number => history.stream(s)?.folded ?? 0

  return Object.freeze({
    /** The position of the last row on disk. */
    position(): LogPosition {
      const { number: n, at } = ports.door.status()
      return { n, at }
    },
    /** A commit time (ms) that no row behind this position precedes. */
    since({ n, at }: LogPosition): number {
      const next = records.logNext(n)
      const isReached = next?.n === n + 1
      const { datedUpTo, number } = ports.door.status()
      if (n >= datedUpTo) return isReached ? next.at : at
      const earlierMs = limits.batchOneTimeMs.value
      if (isReached) {
        const last = n + limits.batchSearchRowsMax.value
        const { earliest, latest } = records.logTimes(n, last)
        // Items of a batch are at most that much earlier than their group: no later row precedes these.
        if (number <= last || latest > next.at + earlierMs) return earliest
      }
      return Math.max(0, at - earlierMs)
    },
    /** Rows after a number, in order; undefined if the log does not reach back that far. */
    after(n: number, limit: number): readonly Followed[] | undefined {
      const rows = after(n, observationsOf)
      return rows && [...Iterator.from(rows).take(limit)]
    },
    /**
     * Like `after` with the observations of a row in one array, at a tenth of the cost. To be read within one
     * turn of the event loop.
     */
    codedAfter: (n: number): Iterable<CodedRow> | undefined => after(n, decodeObservations),
    streamOf,
    isHeld: ports.isHeld,
    /** The attribute instance of an observation, in the shape it had then. */
    instanceOf(
      { s, shape, shapedAt, isEnded }: FollowedStream,
      { n, time, value }: { n: number; time: number; value: Json },
    ): AttributeInstance {
      const then = n > shapedAt && !isEnded ? shape : (shapeThen(s, time, value) ?? shape)
      return fromShape(then, value, time)
    },
    /** The tombstone of a deleted entity. */
    tombstoneOf: (rid: number): TombstoneRow | undefined => entities.tombstoneOf(rid),
    entity: (id: string): EntityView | undefined => entityWithRid(id)?.view,
    entityWithRid,
    /** The current entity of this number, or its last state if it was deleted. */
    lastState(rid: number): Entity | undefined {
      const row = entities.byRid(rid)
      if (row !== undefined) return createView(row, live.dirtyEntity(row.rid)).entity()
      const tombstone = entities.tombstoneOf(rid)
      return tombstone && (JSON.parse(tombstone.doc) as Entity)
    },
    /** The attribute instance of a stream, also if its entity left no trace. */
    attributeOf(s: number): Pick<FollowedStream, 'name' | 'dataset'> | undefined {
      const row = history.stream(s)
      return row && { name: names.text(row.name)!, dataset: row.dataset }
    },
    /** The first entities with a higher rid, in their current state. Large ones make a shorter page. */
    entities: (rid: number, limit: number): readonly (readonly [rid: number, view: EntityView])[] =>
      entities
        .rowsAfter(rid, limit)
        .map((row) => [row.rid, createView(row, live.dirtyEntity(row.rid))] as const),
    /** Attribute instances deleted at this commit time or later, with their Via chains. */
    deletionsSince: (rid: number, since: number): readonly DeletedInstance[] =>
      deletionsBy(recordsOf(rid, { from: since, to: Number.POSITIVE_INFINITY })),
    /** Erasures of the history of an entity after a log number. */
    erased: (rid: number, n: number): readonly Erased[] => ports.edits.erased(rid).filter((row) => row.n > n),
    /** All deletions under an id, oldest first; the deletion of an entity includes all its attributes. */
    deletionsUnder: (id: string): readonly DeletedInstance[] => {
      const rid = entities.byId(id)?.rid
      return [
        ...entities
          .tombstones(id)
          .flatMap((tombstone) => [
            ...deletionsBy(recordsOf(tombstone.rid, everSince)),
            ...deletionsWith(tombstone),
          ]),
        ...(rid === undefined ? [] : deletionsBy(recordsOf(rid, everSince))),
      ]
    },
    /** Entities deleted within from <= ms < to, in order. */
    tombstonesBetween: ({ from, to }: CommitSpan) => entities.tombstonesBetween(from, to),
    /** The first entities deleted after a log number, in order. */
    tombstonesSince: (n: number, limit: number) => entities.tombstonesSince(n, limit),
    /** The tombstone of an id with this log number. */
    tombstoneAt: (id: string, n: number): TombstoneRow | undefined =>
      entities.tombstones(id).find((tombstone) => tombstone.n === n),
    /** The tombstones of an id after a log number, in order. */
    tombstonesAfter: (id: string, n: number): readonly TombstoneRow[] =>
      entities.tombstones(id).filter((tombstone) => tombstone.n > n),
    /** Approximate earliest commit time of the contents of chunks, at `from` or later. */
    firstCommit: (from: number) => spans.firstCommit(from),
    /** Entities that may have change records committed within from <= ms < to, each with its reader. */
    changes(span: CommitSpan): readonly (() => FollowedPast | undefined)[] {
      // Spans of folded records are by commit, which is later than the commit time of a batch.
      const rids = new Set(spans.changed(span.from, span.to + limits.batchOneTimeMs.value))
      for (const rid of ports.streams.unfoldedEntities()) rids.add(rid)
      return [...rids].map((rid) => () => pastOf(rid, span))
    },
    /** Streams that may have observations committed within from <= ms < to, each with its reader. */
    observations(
      span: CommitSpan,
    ): readonly (readonly [s: number, read: (yieldIfDue: YieldIfDue) => Promise<CommittedPart>])[] {
      const touched = spans.touched(span.from, span.to)
      for (const { s, tail } of live.streams())
        if (tail.committed > 0 && tail.modified[tail.committed - 1]! >= span.from && !touched.has(s))
          touched.set(s, [])
      return [...touched]
        .sort(([a], [b]) => a - b)
        .map(([s, keys]) => {
          const known = { keys, folded: foldedOf(s) }
          return [
            s,
            (yieldIfDue) =>
              readCommittedPart(
                { s, span, erasedUntil: erasedUntil(ports, s), known },
                { spans, live, foldedOf },
                yieldIfDue,
              ),
          ] as const
        })
    },
  })
}

/** Commit time (ms) up to which observations were erased from a stream. */
function erasedUntil({ history, edits, names }: ChangeFeedPorts, s: number): number {
  const row = history.stream(s)
  if (row === undefined) return Number.NEGATIVE_INFINITY
  return correctionsOf(edits, row.rid).ofStream(s, names.text(row.name)!, row.dataset).erasedUntil
}

export type ChangeFeed = ReturnType<typeof createChangeFeed>

function observationsOf(body: Uint8Array): readonly FollowedObservation[] {
  const { triples, others } = decodeObservations(body)
  const otherValues = new Map<number, Json>(others)
  return Array.from({ length: triples.length / 3 }, (_, i) => {
    const coded = triples[i * 3]!
    return {
      kind: 'observation',
      s: Math.floor(coded / 2),
      time: triples[i * 3 + 1]!,
      value: otherValues.has(i) ? otherValues.get(i)! : triples[i * 3 + 2]!,
      isLate: coded % 2 === 1,
    }
  })
}
