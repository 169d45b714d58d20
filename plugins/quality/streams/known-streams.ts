/**
 * The streams that the analyser knows, their observation entities, and the entities that describe them. It
 * takes entities and observations of any broker, in the order in which the broker reports them.
 */
import { limits } from '#base/limits/limits.ts'
import { createIdIndex } from '#client/id-index.ts'
import { linksOf, sensorOf } from '#client/stream-entities.ts'
import { iotLite, iotStream, qoi, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { qualityId } from '#plugins/quality/entities/quality-entity.ts'
import { metadataOf, propertyOf, type StreamMetadata } from '#plugins/quality/measures/stream-metadata.ts'
import { type Arrival, type Downtime, newRecord, observe } from '#plugins/quality/measures/stream-record.ts'
import type { UsualProperties } from '#plugins/quality/measures/usual-properties.ts'
import type { Concordances } from './concordances.ts'
import { idsIn, withId, withoutId } from './id-set.ts'
import { onlyOwnLink, ownLink, type Stream } from './stream.ts'
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
  readonly monotonic: () => number
  readonly concordances: Concordances
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
  /** Counts an observation of an observation entity. Returns false if it belongs to no known stream. */
  observe(observationId: string, arrival: Arrival): boolean
  /** Counts an observation of a stream that came from its source; nothing if the stream is unknown. */
  count(id: string, arrival: Arrival): void
  /** Notes that figures of a stream were written, so that they are saved. */
  noteWritten(stream: Stream): void
  readonly all: () => MapIterator<Stream>
  get(id: string): Stream | undefined
  readonly size: () => number
  /** Observation entities that belong to no known stream. */
  readonly unplaced: () => number
  /** Changes since the last call, to be saved. */
  takeUnsaved(): {
    readonly streams: ReadonlySet<Stream>
    readonly observations: ReadonlyMap<string, number>
    readonly removed: readonly number[]
  }
}

const qualityIds = qualityId('')
/** Types of most streams; shared, since memory is scarce. */
const onlyStream = [iotStream.IotStream]
const none: readonly string[] = []

export function createKnownStreams({
  entityOf,
  usual,
  monotonic,
  concordances,
  downtimes,
  changed,
  removed,
  moved,
}: KnownStreamsPorts): KnownStreams {
  const streams = new Map<string, Stream>()
  /** Streams by the ids of the entities that describe them. */
  const described = createIdIndex<Stream>()
  const observations = new Map<string, Stream>()
  /** Observation entities without a stream, with the ids that they name; the oldest are dropped. */
  const unplaced = new Map<string, readonly string[]>()
  let unsaved = {
    streams: new Set<Stream>(),
    observations: new Map<string, number>(),
    removed: [] as number[],
  }
  let lastNumber = 0

  function add(n: number, stored: Pick<Stream, 'id' | 'record' | 'written'>): Stream {
    // Members by name: copied ones would lie outside of the object.
    const stream: Stream = {
      id: stored.id,
      record: stored.record,
      written: stored.written,
      n,
      types: onlyStream,
      sources: none,
      services: none,
      observedBy: undefined,
      metadata: { isInferred: false },
      links: none,
      linksAt: monotonic(),
      writtenAt: Number.NEGATIVE_INFINITY,
      compared: Number.NaN,
    }
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
    const sources = [sensorId, propertyId, platformId, ...foreign].filter((id) => id !== undefined).slice()
    for (const id of stream.sources) described.delete(id, stream)
    for (const id of sources) described.add(id, stream)
    const metadata = metadataOf(
      {
        stream: entity,
        sensor,
        property: propertyId === undefined ? undefined : entityOf(propertyId),
        platform: platformId === undefined ? undefined : entityOf(platformId),
      },
      usual,
    )
    const isNew = !isSame(metadata, stream.metadata)
    stream.sources = sources
    stream.metadata = metadata
    if (isNew) noteCounted(concordances.describe(stream))
    const types = listOf(entity.type)
    stream.types = types.length === 1 ? onlyStream : types
    const services = linksOf(entity, iotStream.providedBy)
    if (services.join(' ') !== stream.services.join(' ')) {
      stream.services = shared(services)
      moved()
    }
    if (links.join(' ') === stream.links.join(' ')) return isNew
    stream.links = shared(links)
    stream.linksAt = monotonic()
    return true
  }

  /** The streams that an entity describes; the quality of a stream is found by its id. */
  function describedBy(id: string): readonly Stream[] {
    const rated = id.startsWith(qualityIds) ? streams.get(id.slice(qualityIds.length)) : undefined
    return rated === undefined ? described.of(id) : [rated, ...described.of(id)]
  }

  function takeStream(entity: Entity): void {
    const known = streams.get(entity.id)
    if (known === undefined && streams.size >= limits.qualityStreamsMax.value) return
    const stream = known ?? add(lastNumber + 1, { id: entity.id, record: newRecord(), written: undefined })
    const isNew = describe(stream, entity)
    if (known === undefined) {
      unsaved.streams.add(stream)
      for (const [id, names] of unplaced) if (names.includes(stream.id)) place(id, stream)
    }
    if (isNew || known === undefined) changed(stream)
  }

  function takeObservation(entity: Entity): void {
    const names = linksOf(entity, iotStream.belongsTo)
    const sensors = linksOf(entity, sosa.madeBySensor)
    const [stream] = [
      ...names.flatMap((id) => streams.get(id) ?? []),
      ...(names.length > 0 ? [] : sensors.flatMap(described.of)),
    ]
    if (stream === undefined) unplaced.set(entity.id, names)
    else place(entity.id, stream)
    if (unplaced.size > limits.qualityUnplacedMax.value) unplaced.delete(unplaced.keys().next().value!)
  }

  function place(observationId: string, stream: Stream): void {
    unplaced.delete(observationId)
    const before = observations.get(observationId)
    if (before === stream) return
    if (before !== undefined) before.observedBy = withoutId(before.observedBy, observationId)
    stream.observedBy = withId(stream.observedBy, observationId)
    moved()
    observations.set(observationId, stream)
    unsaved.observations.set(observationId, stream.n)
  }

  function count(stream: Stream, arrival: Arrival): void {
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
        observations.set(id, stream)
        stream.observedBy = withId(stream.observedBy, id)
      }
    },
    take(entity) {
      const types = listOf(entity.type)
      if (types.includes(iotStream.IotStream)) takeStream(entity)
      if (types.includes(iotStream.StreamObservation)) takeObservation(entity)
      if (types.includes(iotLite.Service)) moved()
      for (const stream of describedBy(entity.id)) {
        const owner = entityOf(stream.id)
        if (owner !== undefined && describe(stream, owner)) changed(stream)
      }
    },
    delete(id) {
      const observed = observations.get(id)
      if (observed !== undefined) observed.observedBy = withoutId(observed.observedBy, id)
      moved()
      observations.delete(id)
      unplaced.delete(id)
      for (const stream of describedBy(id)) changed(stream)
      const stream = streams.get(id)
      if (stream === undefined) return
      streams.delete(id)
      for (const source of stream.sources) described.delete(source, stream)
      for (const observation of idsIn(stream.observedBy)) observations.delete(observation)
      concordances.delete(stream)
      unsaved.streams.delete(stream)
      unsaved.removed.push(stream.n)
      removed(stream)
    },
    observe(observationId, arrival) {
      const stream = observations.get(observationId)
      if (stream !== undefined) count(stream, arrival)
      return stream !== undefined
    },
    count(id, arrival) {
      const stream = streams.get(id)
      if (stream !== undefined) count(stream, arrival)
    },
    observedBy: (observationId) => observations.get(observationId),
    noteWritten(stream) {
      if (streams.get(stream.id) === stream) unsaved.streams.add(stream)
    },
    all: () => streams.values(),
    get: (id) => streams.get(id),
    size: () => streams.size,
    unplaced: () => unplaced.size,
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
