/**
 * The streams that fault detection knows, their observation entities, and the entities that describe them. It
 * takes entities of any broker, in the order in which the broker reports them.
 */
import { limits } from '#base/limits/limits.ts'
import { createIdIndex } from '#client/id-index.ts'
import { linksOf, sensorOf } from '#client/stream-entities.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { type FaultStream, newRecord, type WatchRecord } from './fault-stream.ts'
import { metadataOf, noMetadata, type WatchedMetadata } from './watched-metadata.ts'

/** Canonical names of the followed types. */
export const followedTypes: ReadonlySet<string> = new Set([
  iotStream.IotStream,
  iotStream.StreamObservation,
  sosa.Sensor,
  sosa.ObservableProperty,
  sosa.Platform,
])

export interface WatchedStreamsPorts {
  /** The current state of an entity at the broker. */
  readonly entityOf: (id: string) => Entity | undefined
  /** Called after a new stream was described. */
  readonly discovered: (stream: FaultStream) => void
  /** Called after the first observation entity of a stream became known, so that it has a history. */
  readonly added: (stream: FaultStream) => void
  /** Called after the metadata of a stream changed. */
  readonly described: (stream: FaultStream, before: WatchedMetadata) => void
  readonly removed: (stream: FaultStream) => void
}

export interface WatchedStreams {
  /** Adds a stream of the table; its metadata is read from the broker. */
  restore(stream: Pick<FaultStream, 'id' | 'record' | 'observations'>): FaultStream
  /** Takes the current state of a stream, of an observation, or of an entity that describes streams. */
  take(entity: Entity): void
  delete(id: string): void
  /** The stream of an observation entity. */
  observedBy(observationId: string): FaultStream | undefined
  /** The streams of a Sensor. */
  ofSensor(sensorId: string): readonly FaultStream[]
  readonly all: () => MapIterator<FaultStream>
  get(id: string): FaultStream | undefined
  readonly size: () => number
}

export type StreamDescription = Pick<FaultStream, 'sensorId' | 'sources' | 'types' | 'metadata'>

export function createWatchedStreams(ports: WatchedStreamsPorts): WatchedStreams {
  const { entityOf, discovered, added, described: changed, removed } = ports
  const streams = new Map<string, FaultStream>()
  /** Streams by the ids of the entities that describe them. */
  const described = createIdIndex<FaultStream>()
  const observations = new Map<string, FaultStream>()
  /** Observation entities without a stream, with the ids that they name; the oldest are dropped. */
  const unplaced = new Map<string, readonly string[]>()

  function add(given: {
    readonly id: string
    readonly record: WatchRecord
    readonly observations: Set<string>
  }): FaultStream {
    const stream: FaultStream = {
      ...given,
      types: [iotStream.IotStream],
      sensorId: undefined,
      sources: [],
      metadata: noMetadata,
      detector: undefined,
      buffered: [],
    }
    streams.set(stream.id, stream)
    for (const id of stream.observations) observations.set(id, stream)
    return stream
  }

  /** Reads what describes a stream. */
  function describe(stream: FaultStream, entity: Entity): void {
    const before = stream.metadata
    for (const id of stream.sources) described.delete(id, stream)
    Object.assign(stream, descriptionOf(entity, entityOf))
    for (const id of stream.sources) described.add(id, stream)
    if (JSON.stringify(before) !== JSON.stringify(stream.metadata)) changed(stream, before)
  }

  function takeStream(entity: Entity): void {
    const known = streams.get(entity.id)
    if (known === undefined && streams.size >= limits.faultsStreamsMax.value) return
    const stream = known ?? add({ id: entity.id, record: newRecord(), observations: new Set() })
    describe(stream, entity)
    if (known !== undefined) return
    discovered(stream)
    for (const [id, names] of unplaced) if (names.includes(stream.id)) place(id, stream)
  }

  function takeObservation(entity: Entity): void {
    const names = linksOf(entity, iotStream.belongsTo)
    const sensors = names.length > 0 ? [] : linksOf(entity, sosa.madeBySensor)
    const [stream] = [...names.flatMap((id) => streams.get(id) ?? []), ...sensors.flatMap(described.of)]
    if (stream === undefined) unplaced.set(entity.id, names)
    else place(entity.id, stream)
    if (unplaced.size > limits.faultsUnplacedMax.value) unplaced.delete(unplaced.keys().next().value!)
  }

  function place(observationId: string, stream: FaultStream): void {
    unplaced.delete(observationId)
    const before = observations.get(observationId)
    if (before === stream) return
    before?.observations.delete(observationId)
    observations.set(observationId, stream)
    stream.observations.add(observationId)
    if (stream.observations.size === 1) added(stream)
  }

  return Object.freeze({
    restore: add,
    take(entity) {
      const types = listOf(entity.type)
      if (types.includes(iotStream.IotStream)) takeStream(entity)
      if (types.includes(iotStream.StreamObservation)) takeObservation(entity)
      for (const stream of described.of(entity.id)) {
        const owner = entityOf(stream.id)
        if (owner !== undefined) describe(stream, owner)
      }
    },
    delete(id) {
      observations.get(id)?.observations.delete(id)
      observations.delete(id)
      unplaced.delete(id)
      const stream = streams.get(id)
      if (stream === undefined) return
      streams.delete(id)
      for (const source of stream.sources) described.delete(source, stream)
      for (const observation of stream.observations) observations.delete(observation)
      removed(stream)
    },
    observedBy: (observationId) => observations.get(observationId),
    ofSensor: (sensorId) => described.of(sensorId).filter((stream) => stream.sensorId === sensorId),
    all: () => streams.values(),
    get: (id) => streams.get(id),
    size: () => streams.size,
  } satisfies WatchedStreams)
}

function descriptionOf(stream: Entity, entityOf: (id: string) => Entity | undefined): StreamDescription {
  const sensorId = sensorOf(stream)
  const sensor = sensorId === undefined ? undefined : entityOf(sensorId)
  const observed = (entity: Entity) => linksOf(entity, sosa.observes, iotStream.observes)[0]
  const propertyId = observed(stream) ?? (sensor && observed(sensor))
  const platformId = sensor && linksOf(sensor, sosa.isHostedBy)[0]
  return {
    sensorId,
    types: listOf(stream.type),
    sources: [sensorId, propertyId, platformId].filter((id) => id !== undefined),
    metadata: metadataOf({
      stream,
      sensor,
      property: propertyId === undefined ? undefined : entityOf(propertyId),
      platform: platformId === undefined ? undefined : entityOf(platformId),
    }),
  }
}
