/**
 * The streams that the analyser knows, their observation entities, and the entities that describe them. It
 * takes entities and observations of any broker, in the order in which the broker reports them.
 */
import { limits } from '#base/limits/limits.ts'
import { isFarAhead } from '#client/streams/far-future.ts'
import { createIdIndex } from '#client/streams/id-index.ts'
import type { LeftOutStreams } from '#client/streams/left-out-streams.ts'
import { createPlacedObservations } from '#client/streams/placed-observations.ts'
import { linksOf, sensorOf } from '#client/streams/stream-entities.ts'
import { iotLite, iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { qualityId } from '#plugins/quality/entities/quality-entity.ts'
import type { RecordRows } from '#plugins/quality/measures/record-rows.ts'
import { metadataOf, propertyOf, type StreamMetadata } from '#plugins/quality/measures/stream-metadata.ts'
import { type Arrival, type Downtime, observe } from '#plugins/quality/measures/stream-record.ts'
import type { UsualProperties } from '#plugins/quality/measures/usual-properties.ts'
import type { Concordances } from './concordances.ts'
import { idsIn, withId, withoutId } from './id-set.ts'
import { describedBy, onlyOwnLink, ownLink, type Stream } from './stream.ts'
import type { StoredStream } from './stream-statements.ts'

/** Canonical names of the types that the analyser follows. */
export const followedTypes: ReadonlySet<string> = new Set([
  iotStream.IotStream,
  iotStream.StreamObservation,
  sosa.Sensor,
  sosa.ObservableProperty,
  sosa.Platform,
  iotLite.Service,
])

export interface KnownStreamsPorts {
  /** The current state of an entity at the broker. */
  readonly entityOf: (id: string) => Entity | undefined
  readonly usual: UsualProperties
  readonly records: RecordRows
  readonly monotonic: () => number
  /** Wall clock, ms. */
  readonly now: () => number
  readonly concordances: Concordances
  /** Streams beyond the ceiling. */
  readonly leftOut: Pick<LeftOutStreams, 'hasRoom' | 'delete'>
  readonly downtimes: () => readonly Downtime[]
  /** Called after the quality of a stream may have changed. */
  readonly changed: (stream: Stream) => void
  readonly removed: (stream: Stream) => void
  /** Called after streams may have another source of data. */
  readonly moved: () => void
}

export interface KnownStreams {
  /** Adds streams of the table; their metadata is read from the broker. */
  restore(streams: readonly StoredStream[], observations: readonly (readonly [id: string, n: number])[]): void
  /** Takes the current state of a stream, of an observation, or of an entity that describes streams. */
  take(entity: Entity): void
  delete(id: string): void
  /** The stream of an observation entity. */
  observedBy(observationId: string): Stream | undefined
  /**
   * Counts an observation of an observation entity, unless its time is far ahead. Returns false if it belongs
   * to no known stream.
   */
  observe(observationId: string, arrival: Arrival): boolean
  /** Counts an observation of a stream that came from its source; nothing if the stream is unknown. */
  count(id: string, arrival: Arrival): void
  /** Notes that a stream is to be saved. */
  noteUnsaved(stream: Stream): void
  readonly all: () => MapIterator<Stream>
  get(id: string): Stream | undefined
  readonly size: () => number
  /** Observation entities that belong to no known stream. */
  readonly unplaced: () => number
  /** Changes since the last call, to be saved. */
  takeUnsaved(): {
    readonly streams: ReadonlySet<Stream>
    /** Numbers of the streams of observation entities; undefined for those that are not known any more. */
    readonly observations: ReadonlyMap<string, number | undefined>
    readonly removed: readonly number[]
  }
}

const qualityIds = qualityId('')
const none: readonly string[] = []

export function createKnownStreams({
  entityOf,
  usual,
  records,
  monotonic,
  now,
  concordances,
  leftOut,
  downtimes,
  changed,
  removed,
  moved,
}: KnownStreamsPorts): KnownStreams {
  const streams = new Map<string, Stream>()
  /** Streams by the ids of the entities that describe them. */
  const described = createIdIndex<Stream>()
  const observations = createPlacedObservations<Stream>({
    streamOf: (id) => streams.get(id),
    describedBy: described.of,
    moved(id, stream, before) {
      if (before !== undefined) before.observedBy = withoutId(before.observedBy, id)
      stream.observedBy = withId(stream.observedBy, id)
      unsaved.observations.set(id, stream.n)
      const [oldest, ...others] = idsIn(stream.observedBy)
      if (others.length >= limits.clientObservationsMax.value) drop(oldest!)
      moved()
    },
  })
  let unsaved = {
    streams: new Set<Stream>(),
    observations: new Map<string, number | undefined>(),
    removed: [] as number[],
  }
  let lastNumber = 0
  /** Ranges and labels by their JSON; streams share equal ones. */
  const equals = new Map<string, unknown>()

  function equal<T>(value: T): T {
    const key = JSON.stringify(value)
    const known = (equals.get(key) ?? value) as T
    if (equals.size >= limits.qualityPropertiesMax.value) equals.clear()
    equals.set(key, known)
    return known
  }

  function add(n: number, stored: Pick<Stream, 'id' | 'record' | 'written'>): Stream {
    // Members by name: copied ones would lie outside of the object.
    const stream: Stream = {
      id: stored.id,
      record: stored.record,
      written: stored.written,
      n,
      sensor: undefined,
      property: undefined,
      others: none,
      services: none,
      observedBy: undefined,
      metadata: { isInferred: false },
      links: none,
    }
    stream.record.linksAt = monotonic()
    streams.set(stream.id, stream)
    lastNumber = Math.max(lastNumber, n)
    return stream
  }

  /** Reads what describes a stream, and its links. Returns whether they differ from what was known. */
  function describe(stream: Stream, entity: Entity): boolean {
    const sensorId = sensorOf(entity)
    const sensor = sensorId === undefined ? undefined : entityOf(sensorId)
    const propertyId = propertyOf(entity) ?? (sensor && propertyOf(sensor))
    const platformId = sensor && linksOf(sensor, sosa.isHostedBy)[0]
    const ownId = qualityId(stream.id)
    const links = linksOf(entity, qoi.hasQuality).map((id) => (id === ownId ? ownLink : id))
    const foreign = links.filter((id) => id !== ownLink)
    for (const id of describedBy(stream)) described.delete(id, stream)
    stream.sensor = sensorId
    stream.property = propertyId
    stream.others = shared([platformId, ...foreign].filter((id) => id !== undefined))
    for (const id of describedBy(stream)) described.add(id, stream)
    const { intervalMs, range, label, place, isInferred } = metadataOf(
      {
        stream: entity,
        sensor,
        property: propertyId === undefined ? undefined : entityOf(propertyId),
        platform: platformId === undefined ? undefined : entityOf(platformId),
      },
      usual,
    )
    const metadata = {
      intervalMs,
      range: range && equal(range),
      label: label && equal(label),
      place,
      isInferred,
    }
    const isNew = !isSame(metadata, stream.metadata)
    stream.metadata = metadata
    if (isNew) noteCounted(concordances.describe(stream))
    const services = linksOf(entity, iotStream.providedBy)
    if (services.join(' ') !== stream.services.join(' ')) {
      stream.services = shared(services)
      moved()
    }
    if (links.join(' ') === stream.links.join(' ')) return isNew
    stream.links = shared(links)
    stream.record.linksAt = monotonic()
    return true
  }

  /** The streams that an entity describes; the quality of a stream is found by its id. */
  function streamsOf(id: string): readonly Stream[] {
    const rated = id.startsWith(qualityIds) ? streams.get(id.slice(qualityIds.length)) : undefined
    return rated === undefined ? described.of(id) : [rated, ...described.of(id)]
  }

  function takeStream(entity: Entity): void {
    const known = streams.get(entity.id)
    if (known === undefined && !leftOut.hasRoom(streams.size, entity.id)) return
    const stream =
      known ?? add(lastNumber + 1, { id: entity.id, record: records.create(), written: undefined })
    const isNew = describe(stream, entity)
    if (known === undefined) {
      unsaved.streams.add(stream)
      observations.takeWaiting(stream)
    }
    if (isNew || known === undefined) changed(stream)
  }

  /** Forgets that an observation entity belongs to a stream; it is placed again with its next value. */
  function drop(observation: string): void {
    const stream = observations.of(observation)
    if (stream === undefined) return
    stream.observedBy = withoutId(stream.observedBy, observation)
    observations.delete(observation)
    unsaved.observations.set(observation, undefined)
  }

  function count(stream: Stream, arrival: Arrival): void {
    if (isFarAhead(arrival.time, arrival.committedAt ?? now())) return
    observe(stream.record, arrival, stream.metadata, downtimes())
    noteCounted([stream, ...concordances.observe(stream, arrival)])
  }

  /** Notes that the records of streams changed. */
  function noteCounted(counted: readonly Stream[]): void {
    for (const stream of counted) {
      unsaved.streams.add(stream)
      changed(stream)
    }
  }

  return Object.freeze({
    restore(stored, placed) {
      const numbers = new Map(stored.map((one) => [one.n, add(one.n, one)] as const))
      for (const [id, n] of placed) {
        const stream = numbers.get(n)
        if (stream === undefined) continue
        observations.restore(id, stream)
        stream.observedBy = withId(stream.observedBy, id)
      }
    },
    take(entity) {
      const types = listOf(entity.type)
      if (types.includes(iotStream.IotStream)) takeStream(entity)
      if (types.includes(iotStream.StreamObservation)) observations.take(entity)
      if (types.includes(iotLite.Service)) moved()
      for (const stream of streamsOf(entity.id)) {
        const owner = entityOf(stream.id)
        if (owner !== undefined && describe(stream, owner)) changed(stream)
      }
    },
    delete(id) {
      drop(id)
      observations.delete(id)
      leftOut.delete(id)
      moved()
      for (const stream of streamsOf(id)) changed(stream)
      const stream = streams.get(id)
      if (stream === undefined) return
      streams.delete(id)
      for (const source of describedBy(stream)) described.delete(source, stream)
      for (const observation of [...idsIn(stream.observedBy)]) drop(observation)
      concordances.delete(stream)
      unsaved.streams.delete(stream)
      unsaved.removed.push(stream.n)
      removed(stream)
      records.release(stream.record)
    },
    observe(observationId, arrival) {
      const stream = observations.of(observationId)
      if (stream !== undefined) count(stream, arrival)
      return stream !== undefined
    },
    count(id, arrival) {
      const stream = streams.get(id)
      if (stream !== undefined) count(stream, arrival)
    },
    observedBy: observations.of,
    noteUnsaved(stream) {
      if (streams.get(stream.id) === stream) unsaved.streams.add(stream)
    },
    all: () => streams.values(),
    get: (id) => streams.get(id),
    size: () => streams.size,
    unplaced: observations.unplaced,
    takeUnsaved() {
      const taken = unsaved
      unsaved = { streams: new Set(), observations: new Map(), removed: [] }
      return taken
    },
  } satisfies KnownStreams)
}

/** A list of ids; the usual ones are shared, since memory is scarce. */
const shared = (ids: readonly string[]): readonly string[] =>
  [none, onlyOwnLink].find((list) => list.length === ids.length && list[0] === ids[0]) ?? ids

const isSame = (a: StreamMetadata, b: StreamMetadata): boolean => JSON.stringify(a) === JSON.stringify(b)
